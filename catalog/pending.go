package catalog

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/loadout-dev/loadout/skill"
)

// ProjectSkill is a skill of a project. Its name does not resolve to it while
// it is pending; see [Options.Confirm].
type ProjectSkill struct {
	Entry    *Entry // of scope [Project]
	Replaced *Entry // the skill of a lower scope that the name resolves to otherwise; nil if there is none
	Reason   string // why Entry is pending
}

// Pending returns a new slice of the skills that are pending, sorted by name.
// Until they are confirmed, their names resolve to the skills that they would
// replace, if any.
func (s *Snapshot) Pending() []ProjectSkill {
	return slices.DeleteFunc(slices.Clone(s.projectSkills), func(r ProjectSkill) bool { return r.Reason == "" })
}

// confirmProjectSkills hides the skills that are pending.
func (s *Snapshot) confirmProjectSkills(confirm func(ProjectSkill) string) {
	var names []string
	for _, l := range s.layers {
		if l.entries[0].Scope == Project {
			for e := range l.All() {
				names = append(names, e.Name)
			}
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		s.confirmName(s.withName(name), confirm)
	}
}

// confirmName hides the pending skills among candidates, which all have the
// same name.
func (s *Snapshot) confirmName(candidates []*Entry, confirm func(ProjectSkill) string) {
	e := s.winner(candidates)
	for e != nil && e.Scope == Project {
		r := ProjectSkill{Entry: e, Replaced: s.firstBelowProject(candidates)}
		r.Reason = confirm(r)
		if r.Replaced != nil || r.Reason != "" {
			s.projectSkills = append(s.projectSkills, r)
		}
		if r.Reason == "" {
			break
		}
		if s.pending == nil {
			s.pending = map[*Entry]string{}
		}
		s.pending[e] = r.Reason
		s.problems = append(slices.Clip(s.problems), Problem{Path: e.Path, Origin: e.Origin, Diagnostic: skill.Diagnostic{
			Severity: skill.Warning, Code: "pending-skill", Message: fmt.Sprintf("%s is %s", e.Name, r.Reason), Fix: "confirm it after a review, or rename it"}})
		e = s.winner(candidates)
	}
}

// firstBelowProject returns the first available skill whose scope is lower than
// [Project], or nil.
func (s *Snapshot) firstBelowProject(candidates []*Entry) *Entry {
	for _, e := range candidates {
		if e.Scope < Project && s.hidden(e) == "" {
			return e
		}
	}
	return nil
}

// confirmProjectSkill calls [Options.Confirm].
func (c *Catalog) confirmProjectSkill(r ProjectSkill) string {
	return c.confirm(r, func() (skill.Manifest, error) { return c.CompleteManifest(context.Background(), r.Entry) })
}

// recheckProjectSkills repeatedly calls [Options.Confirm] until ctx is done,
// and publishes a snapshot whenever the set of pending skills changes. A user
// can confirm a skill in another process, and a confirmed skill can change.
func (c *Catalog) recheckProjectSkills(ctx context.Context) {
	t := time.NewTicker(c.poll)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		c.state.Lock()
		if slices.ContainsFunc(c.current.Load().projectSkills, func(r ProjectSkill) bool { return c.confirmProjectSkill(r) != r.Reason }) {
			c.publish(c.build())
		}
		c.state.Unlock()
	}
}
