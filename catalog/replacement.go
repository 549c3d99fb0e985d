package catalog

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/loadout-dev/loadout/skill"
)

// Replacement is a project's skill with the name of a skill of a lower scope,
// which it replaces unless it is pending: see [Options.Confirm].
type Replacement struct {
	Entry    *Entry // of scope [Project]
	Replaced *Entry // the skill that the name resolves to otherwise
	Reason   string // why Entry is pending
}

// Pending returns a new slice of the skills that are pending, sorted by name.
// References resolve to the skills that they would replace.
func (s *Snapshot) Pending() []Replacement {
	return slices.DeleteFunc(slices.Clone(s.replacements), func(r Replacement) bool { return r.Reason == "" })
}

// confirmReplacements hides the skills that are pending.
func (s *Snapshot) confirmReplacements(confirm func(Replacement) string) {
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

// confirmName hides those of the skills with the same name that are pending.
func (s *Snapshot) confirmName(candidates []*Entry, confirm func(Replacement) string) {
	e := s.winner(candidates)
	for e != nil && e.Scope == Project {
		r := Replacement{Entry: e, Replaced: s.belowProject(candidates)}
		if r.Replaced == nil {
			break
		}
		r.Reason = confirm(r)
		s.replacements = append(s.replacements, r)
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

// belowProject returns the first available skill that is not a project's, or nil.
func (s *Snapshot) belowProject(candidates []*Entry) *Entry {
	for _, e := range candidates {
		if e.Scope < Project && s.hidden(e) == "" {
			return e
		}
	}
	return nil
}

// confirmReplacement calls [Options.Confirm].
func (c *Catalog) confirmReplacement(r Replacement) string {
	return c.confirm(r, func() (skill.Manifest, error) { return c.CompleteManifest(context.Background(), r.Entry) })
}

// recheckReplacements asks again which skills are pending, until ctx is done, and
// publishes a snapshot if that changed. A user can confirm a skill in another
// process, and a confirmed skill can change.
func (c *Catalog) recheckReplacements(ctx context.Context) {
	t := time.NewTicker(c.poll)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		c.state.Lock()
		if slices.ContainsFunc(c.current.Load().replacements, func(r Replacement) bool { return c.confirmReplacement(r) != r.Reason }) {
			c.publish(c.build())
		}
		c.state.Unlock()
	}
}
