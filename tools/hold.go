package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/session"
)

// A Hold is the tools that one conversation needs of a set. What several of them
// need is released with the last. It is safe for concurrent use.
type Hold struct{ set *Set }

var _ session.Tools = (*Hold)(nil)

// Hold returns the tools of the set for a conversation that has brought none yet:
// for [session.Options.Tools].
func (s *Set) Hold() *Hold { return &Hold{s} }

// Bring implements [session.Tools]. The skills are brought in parallel; a tool that
// several of them name is there once.
func (h *Hold) Bring(ctx context.Context, skills []session.ID) ([]session.Tool, []string) {
	answers := make([]*Brought, len(skills))
	var running sync.WaitGroup
	for i, id := range skills {
		e, err := h.set.opts.Skills.Catalog().Snapshot().Get(id.Key())
		if err != nil {
			answers[i] = &Brought{Problems: []string{fmt.Sprintf("the tools of skill %s: %v", id.Name, err)}}
			continue
		}
		h.set.hold(id.Key(), h)
		running.Go(func() { answers[i] = h.set.bringAll(ctx, []*catalog.Entry{e}) })
	}
	running.Wait()
	var found []session.Tool
	var problems []string
	seen := map[string]bool{}
	for i, b := range answers {
		problems = append(problems, b.Problems...)
		for _, t := range b.Tools {
			if !seen[t.Name] {
				seen[t.Name] = true
				found = append(found, t.of(skills[i]))
			}
		}
	}
	return found, problems
}

// Release implements [session.Tools]. Connections stay for a while, for who loads
// the skill again.
func (h *Hold) Release(skills []session.ID) {
	for _, id := range skills {
		if b := h.set.letGo(id.Key(), h); b != nil {
			b.release()
		}
	}
}

// of is the tool as a conversation is told of it, with the skill that brought it.
func (t *Tool) of(id session.ID) session.Tool {
	schema, _ := json.Marshal(t.Definition.InputSchema)
	return session.Tool{
		Name: t.Name, Title: t.Definition.Title, Description: t.Definition.Description, InputSchema: schema,
		Server: t.Server, Skill: id, State: string(t.State), NeedsPerson: t.NeedsPerson,
	}
}

func (s *Set) hold(key string, h *Hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.holders[key], h) {
		s.holders[key] = append(s.holders[key], h)
	}
}

// letGo ends that a conversation needs a skill, and returns what nobody needs any
// more.
func (s *Set) letGo(key string, h *Hold) *bundle {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := slices.DeleteFunc(s.holders[key], func(o *Hold) bool { return o == h })
	if len(left) > 0 {
		s.holders[key] = left
		return nil
	}
	delete(s.holders, key)
	b := s.brought[key]
	if b == nil || s.shared[key] {
		return nil
	}
	delete(s.brought, key)
	return b
}
