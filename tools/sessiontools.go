package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/session"
)

// sessionTools connects the tools of a conversation. A connection shared by
// several conversations is released when the last one releases it.
type sessionTools struct {
	set       *Set
	principal policy.Principal
	session   string
}

var _ session.Tools = (*sessionTools)(nil)

// ForSession returns the tools of a conversation of the local user, for
// [session.Options.Tools]. The session connects the servers of the skills that it
// loads, and later releases them. A connection shared by several conversations is
// released when the last one releases it. The result is safe for concurrent use.
func (s *Set) ForSession() session.Tools { return s.ForSessionOf(policy.LocalUser(), "") }

// ForSessionOf is like [Set.ForSession], for the conversation of a principal. id is
// the ID of the session. The principal and the ID select the stored grants when
// the model gets alternatives to a skill that could not be loaded.
func (s *Set) ForSessionOf(p policy.Principal, id string) session.Tools {
	return &sessionTools{set: s, principal: p, session: id}
}

// Connect implements [session.Tools]. It connects the skills' servers
// concurrently. A tool listed by several skills is returned once.
func (t *sessionTools) Connect(ctx context.Context, skills []session.ID) ([]session.Tool, []string) {
	answers := make([]*ToolList, len(skills))
	var running sync.WaitGroup
	for i, id := range skills {
		e, err := t.set.rt.Catalog().Snapshot().Get(id.Key())
		if err != nil {
			answers[i] = &ToolList{Problems: []string{fmt.Sprintf("tools of skill %s: %v", id.Name, err)}}
			continue
		}
		t.set.addConversation(id.Key(), t)
		running.Go(func() { answers[i] = t.set.connectSkills(ctx, []*catalog.Entry{e}) })
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

// Release implements [session.Tools]. The pool keeps idle connections open for
// a while, in case a skill is loaded again.
func (t *sessionTools) Release(skills []session.ID) {
	for _, id := range skills {
		if b := t.set.removeConversation(id.Key(), t); b != nil {
			b.release()
		}
	}
}

// DescribeSkillAlternatives is called by the session if a skill cannot be
// loaded.
func (t *sessionTools) DescribeSkillAlternatives(ctx context.Context, ref string, err error) string {
	return t.set.DescribeSkillAlternatives(ctx, ref, err, &Call{Principal: t.principal, Session: t.session})
}

// sessionTool converts the tool to a [session.Tool]. id is the skill that
// provides it.
func (t *Tool) sessionTool(id session.ID) session.Tool {
	schema, _ := json.Marshal(t.Definition.InputSchema)
	return session.Tool{
		Name: t.Name, Title: t.Definition.Title, Description: t.Definition.Description, InputSchema: schema,
		Server: t.Server, Skill: id, State: string(t.State), NeedsApproval: t.NeedsApproval,
	}
}

func (s *Set) addConversation(key string, t *sessionTools) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.conversations[key], t) {
		s.conversations[key] = append(s.conversations[key], t)
	}
}

// removeConversation records that a conversation no longer uses a skill. It
// returns the skill's group if no conversation uses it any more, and nil
// otherwise.
func (s *Set) removeConversation(key string, t *sessionTools) *serverGroup {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := slices.DeleteFunc(s.conversations[key], func(o *sessionTools) bool { return o == t })
	if len(left) > 0 {
		s.conversations[key] = left
		return nil
	}
	delete(s.conversations, key)
	b := s.groups[key]
	if b == nil || s.persistent[key] {
		return nil
	}
	delete(s.groups, key)
	return b
}
