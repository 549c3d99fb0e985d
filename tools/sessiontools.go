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

// A Lease holds the tools that one conversation needs. Connections shared by
// several leases are released with the last one. It is safe for concurrent use.
type Lease struct{ tools *Set }

var _ session.Tools = (*Lease)(nil)

// NewLease returns an empty lease for one conversation, for use as
// [session.Options.Tools].
func (s *Set) NewLease() *Lease { return &Lease{s} }

// Connect implements [session.Tools]. It connects the servers of the skills in
// parallel. A tool that several skills name is returned once.
func (h *Lease) Connect(ctx context.Context, skills []session.ID) ([]session.Tool, []string) {
	answers := make([]*SkillTools, len(skills))
	var running sync.WaitGroup
	for i, id := range skills {
		e, err := h.tools.opts.Skills.Catalog().Snapshot().Get(id.Key())
		if err != nil {
			answers[i] = &SkillTools{Problems: []string{fmt.Sprintf("tools of skill %s: %v", id.Name, err)}}
			continue
		}
		h.tools.addLease(id.Key(), h)
		running.Go(func() { answers[i] = h.tools.connectSkills(ctx, []*catalog.Entry{e}) })
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
				found = append(found, t.sessionTool(skills[i]))
			}
		}
	}
	return found, problems
}

// Release implements [session.Tools]. The pool keeps idle connections for a
// while in case a skill is loaded again.
func (h *Lease) Release(skills []session.ID) {
	for _, id := range skills {
		if b := h.tools.removeLease(id.Key(), h); b != nil {
			b.release()
		}
	}
}

// sessionTool converts the tool for the conversation, with the skill that
// provides it.
func (t *Tool) sessionTool(id session.ID) session.Tool {
	schema, _ := json.Marshal(t.Definition.InputSchema)
	return session.Tool{
		Name: t.Name, Title: t.Definition.Title, Description: t.Definition.Description, InputSchema: schema,
		Server: t.Server, Skill: id, State: string(t.State), NeedsApproval: t.NeedsApproval,
	}
}

func (s *Set) addLease(key string, h *Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.leases[key], h) {
		s.leases[key] = append(s.leases[key], h)
	}
}

// removeLease records that a conversation no longer needs a skill. It returns
// the group that nothing needs any more, or nil.
func (s *Set) removeLease(key string, h *Lease) *serverGroup {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := slices.DeleteFunc(s.leases[key], func(o *Lease) bool { return o == h })
	if len(left) > 0 {
		s.leases[key] = left
		return nil
	}
	delete(s.leases, key)
	b := s.groups[key]
	if b == nil || s.persistent[key] {
		return nil
	}
	delete(s.groups, key)
	return b
}
