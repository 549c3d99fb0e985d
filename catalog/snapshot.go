package catalog

import (
	"cmp"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/loadout-dev/loadout/internal/editdistance"
	"github.com/loadout-dev/loadout/internal/semver"
	"github.com/loadout-dev/loadout/internal/skillname"
)

// Snapshot is an immutable state of the catalog. It is safe for concurrent use.
type Snapshot struct {
	// Version increases by one with every published snapshot, starting at 1.
	// It is 0 if none was published.
	Version uint64
	// Disabled means that skills are disabled and there are no entries.
	Disabled bool

	layers   []*Layer // in order of precedence
	problems []Problem
	filter   *filter
	pending  map[*Entry]string // why each pending skill is hidden; see projectSkills
	twins    []twin            // duplicates listed at another path
	isTwin   map[*Entry]bool   // entries of twins
	// projectSkills holds the skills that are pending or replace another, as
	// [Options.Confirm] decided, sorted by name. Entries with a reason are hidden.
	projectSkills []ProjectSkill

	// keep is whether to cache the result of Skills. It is false if many
	// snapshots share the layers, because each of them should then use little
	// memory.
	keep      bool
	shownOnce sync.Once
	shown     []*Entry
	countOnce sync.Once
	count     int
}

// twin is an entry that is not used, because first, an earlier entry, has the same
// directory or archive.
type twin struct{ entry, first *Entry }

// NotFoundError is returned for a reference that matches no available skill. It
// matches [fs.ErrNotExist].
type NotFoundError struct {
	Ref         string
	Reason      string   // why a known skill is not available; otherwise empty
	Suggestions []string // up to three similar names
}

func (e *NotFoundError) Error() string {
	ref := e.Ref
	if r := []rune(ref); len(r) > 200 {
		ref = string(r[:200]) + "…"
	}
	s := fmt.Sprintf("skill %q not found", ref)
	switch {
	case e.Reason != "":
		s = fmt.Sprintf("skill %q is not available: %s", ref, e.Reason)
	case len(e.Suggestions) > 0:
		s += "; did you mean " + strings.Join(e.Suggestions, ", ") + "?"
	}
	return s
}

// Is reports whether target is [fs.ErrNotExist].
func (e *NotFoundError) Is(target error) bool { return target == fs.ErrNotExist }

// newSnapshot returns a snapshot of the skills in layers. The layers must be
// grouped by source, in the order of the sources. confirm returns the reason why
// a skill is pending; it may be nil.
func newSnapshot(layers []*Layer, problems []Problem, f *filter, keep bool, confirm func(ProjectSkill) string) *Snapshot {
	s := &Snapshot{problems: problems, Disabled: f.disabled, filter: f, keep: keep}
	if f.disabled {
		return s
	}
	s.layers = slices.DeleteFunc(layers, func(l *Layer) bool { return len(l.entries) == 0 })
	slices.SortStableFunc(s.layers, func(a, b *Layer) int { return cmp.Compare(b.entries[0].Scope, a.entries[0].Scope) })
	s.findTwins()
	if confirm != nil {
		s.confirmProjectSkills(confirm)
	}
	if more := slices.Concat(s.lookalikes(), s.sameNames()); len(more) > 0 {
		s.problems = slices.Concat(s.problems, more)
	}
	return s
}

// findTwins finds the skills that have the same directory or archive as an
// earlier skill.
func (s *Snapshot) findTwins() {
	n := 0
	for _, l := range s.layers {
		if l.hasIDs {
			n += len(l.entries)
		}
	}
	if n == 0 {
		return
	}
	seen := make(map[fileID]*Entry, n)
	for _, l := range s.layers {
		if !l.hasIDs {
			continue
		}
		for e := range l.All() {
			if first := seen[e.id]; first != nil && e.id != (fileID{}) {
				if s.isTwin == nil {
					s.isTwin = map[*Entry]bool{}
				}
				s.twins, s.isTwin[e] = append(s.twins, twin{e, first}), true
				continue
			}
			seen[e.id] = e
		}
	}
}

// hidden returns the reason why a skill is hidden, or "" if it is not.
func (s *Snapshot) hidden(e *Entry) string {
	if why := s.pending[e]; why != "" {
		return why
	}
	if !s.filter.selects() {
		return ""
	}
	return s.filter.reason(e)
}

// withName returns the visible and hidden skills with the given name, in order
// of precedence.
func (s *Snapshot) withName(name string) []*Entry {
	var out []*Entry
	for _, l := range s.layers {
		found := l.withName(name)
		if s.isTwin != nil {
			found = slices.DeleteFunc(slices.Clone(found), func(e *Entry) bool { return s.isTwin[e] })
		}
		if out == nil {
			out = slices.Clip(found) // most names are in one layer
		} else {
			out = append(out, found...)
		}
	}
	return out
}

func (s *Snapshot) winner(candidates []*Entry) *Entry {
	for _, e := range candidates {
		if s.hidden(e) == "" {
			return e
		}
	}
	return nil
}

// ByName returns the skill of [Snapshot.Skills] with exactly the given name, or
// nil.
func (s *Snapshot) ByName(name string) *Entry {
	for _, l := range s.layers {
		for _, e := range l.withName(name) {
			if !s.isTwin[e] && s.hidden(e) == "" {
				return e
			}
		}
	}
	return nil
}

// Skills returns the visible skill with the highest precedence for each name,
// sorted by name. The slice must not be modified.
func (s *Snapshot) Skills() []*Entry {
	if !s.keep {
		return slices.Collect(s.Visible())
	}
	s.shownOnce.Do(func() { s.shown = slices.AppendSeq(make([]*Entry, 0, s.size()), s.Visible()) })
	return s.shown
}

// size returns the number of all skills.
func (s *Snapshot) size() int {
	n := 0
	for _, l := range s.layers {
		n += len(l.entries)
	}
	return n
}

// All yields every visible skill, including shadowed ones, in order of
// precedence.
func (s *Snapshot) All() iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		for _, l := range s.layers {
			for e := range l.All() {
				if !s.isTwin[e] && s.hidden(e) == "" && !yield(e) {
					return
				}
			}
		}
	}
}

// Entries yields every skill that the sources listed, including hidden ones, in
// order of precedence.
func (s *Snapshot) Entries() iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		for _, l := range s.layers {
			for e := range l.All() {
				if !yield(e) {
					return
				}
			}
		}
	}
}

// ForModel returns a new slice of the skills of [Snapshot.Skills] that a model
// may load.
func (s *Snapshot) ForModel() []*Entry {
	out := make([]*Entry, 0, min(s.size(), 1000))
	for e := range s.Visible() {
		if !e.DisableModelInvocation {
			out = append(out, e)
		}
	}
	return out
}

// Problems returns the problems of all sources. The slice must not be modified.
func (s *Snapshot) Problems() []Problem { return s.problems }

// Shadow is a skill whose name resolves to another skill.
type Shadow struct {
	Name   string `json:"name"`
	Origin string `json:"origin"`
	Path   string `json:"path"`
	Winner string `json:"by"`     // key of the skill that the name resolves to
	Reason string `json:"reason"` // why the other skill takes precedence
}

// Shadowed returns all skills that are shadowed by another, sorted by name.
func (s *Snapshot) Shadowed() []Shadow {
	var out []Shadow
	for e := range s.Visible() {
		for _, c := range s.withName(e.Name) {
			if c != e && s.hidden(c) == "" {
				out = append(out, Shadow{c.Name, c.Origin, c.Path, e.Key(), precedenceReason(c, e)})
			}
		}
	}
	return out
}

func precedenceReason(loser, winner *Entry) string {
	switch {
	case loser.Scope != winner.Scope:
		return fmt.Sprintf("scope %s comes after %s", loser.Scope, winner.Scope)
	case loser.Origin != winner.Origin:
		return fmt.Sprintf("source %s comes after %s", loser.Origin, winner.Origin)
	default:
		return fmt.Sprintf("%s comes after %s in the same source", loser.Dir, winner.Dir)
	}
}

// Get returns the skill for a reference. A reference is the skill's key
// "origin/dir", "name", "origin/name", or a name with a semantic version
// constraint, as in "name@^1.2". If several skills match, Get returns the one
// with the highest precedence. Get returns a [*NotFoundError] if there is no
// such skill, it is hidden or the constraint is invalid. For references by
// digest, see [Catalog.Resolve].
func (s *Snapshot) Get(ref string) (*Entry, error) {
	if s.Disabled {
		return nil, &NotFoundError{Ref: ref, Reason: "skills are switched off (skills.enabled)"}
	}
	q := s.parseRef(ref)
	if e := s.find(q); e != nil {
		return e, nil
	}
	return nil, s.notFound(q)
}

// query is a parsed reference.
type query struct {
	ref        string
	name       string // without the constraint
	constraint string
	want       *semver.Constraint
	bad        bool     // whether the constraint is invalid
	candidates []*Entry // in order of precedence
}

func (s *Snapshot) parseRef(ref string) query {
	q := query{ref: strings.TrimSpace(ref)}
	q.name = q.ref
	if e := s.byKey(q.ref); e != nil {
		q.candidates = []*Entry{e}
		return q
	}
	if at := strings.LastIndexByte(q.ref, '@'); at > 0 {
		q.name, q.constraint = strings.TrimSpace(q.ref[:at]), strings.TrimSpace(q.ref[at+1:])
		if q.candidates = s.candidates(q.name); len(q.candidates) == 0 {
			// A name may contain an @. This case comes last, so that a skill's
			// name cannot replace a version of another skill.
			if q.candidates = s.candidates(q.ref); len(q.candidates) > 0 {
				q.name, q.constraint = q.ref, ""
			}
		}
		if q.constraint != "" {
			want, ok := semver.ParseConstraint(q.constraint)
			q.want, q.bad = want, !ok
		}
		return q
	}
	q.candidates = s.candidates(q.ref)
	return q
}

// find returns the first candidate that is available and satisfies the
// constraint, or nil.
func (s *Snapshot) find(q query) *Entry {
	for _, e := range q.candidates {
		if !q.bad && s.hidden(e) == "" && satisfies(e.Version, q.want) {
			return e
		}
	}
	return nil
}

// candidates returns the skills that match "name" or "origin/name", in order of
// precedence.
func (s *Snapshot) candidates(name string) []*Entry {
	if found := s.withName(skillname.Normalize(name)); len(found) > 0 {
		return found
	}
	origin, rest, ok := cutName(name)
	if !ok {
		return nil
	}
	var found []*Entry
	for _, e := range s.withName(skillname.Normalize(rest)) {
		if e.Origin == origin {
			found = append(found, e)
		}
	}
	if found != nil {
		return found
	}
	for _, t := range s.twins {
		if t.entry.Key() == name || t.entry.Origin == origin && t.entry.Name == rest {
			return []*Entry{t.first}
		}
	}
	return nil
}

// cutName splits "origin/name". An origin may contain slashes, but a name may
// not.
func cutName(s string) (origin, name string, ok bool) {
	i := strings.LastIndexByte(s, '/')
	if i < 0 {
		return "", s, false
	}
	return s[:i], s[i+1:], true
}

// byKey returns the skill with the given key, or nil.
func (s *Snapshot) byKey(key string) *Entry {
	for _, l := range s.layers {
		dir, ok := strings.CutPrefix(key, l.entries[0].Origin)
		if !ok || !strings.HasPrefix(dir, "/") {
			continue
		}
		dir = dir[1:]
		if i, ok := slices.BinarySearchFunc(l.entries, &Entry{Dir: dir}, byDir); ok {
			if e := l.entries[i]; !l.omitted[e.Name] && !s.isTwin[e] {
				return e
			}
		}
	}
	return nil
}

// ByKey returns the visible skill with the given [Entry.Key], or nil.
func (s *Snapshot) ByKey(key string) *Entry {
	if e := s.byKey(key); e != nil && s.hidden(e) == "" {
		return e
	}
	return nil
}

// IsHidden reports whether the filter hides the skill with the given
// [Entry.Key]. It returns false for an unknown key and if skills are disabled.
func (s *Snapshot) IsHidden(key string) bool {
	e := s.byKey(key)
	return e != nil && s.hidden(e) != ""
}

func satisfies(version string, want *semver.Constraint) bool {
	if want == nil {
		return true
	}
	v, ok := semver.Parse(version)
	return ok && want.Allows(v)
}

func (s *Snapshot) notFound(q query) error {
	err := &NotFoundError{Ref: q.ref}
	if len(q.candidates) == 0 {
		err.Suggestions = s.similarNames(q.name)
		return err
	}
	if q.bad {
		err.Reason = fmt.Sprintf("invalid version constraint %q; write for example %s@^1.2", q.constraint, q.name)
		return err
	}
	var reasons []string
	for _, e := range q.candidates[:min(len(q.candidates), 3)] {
		reason := s.hidden(e)
		switch {
		case reason != "":
		case e.Version == "":
			reason = e.Key() + " has no version, so it satisfies no constraint"
		default:
			reason = e.Key() + " has version " + e.Version
		}
		if !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
	}
	err.Reason = strings.Join(reasons, "; ")
	return err
}

// similarNames returns names that differ from name only in case, punctuation or
// up to two letters.
func (s *Snapshot) similarNames(name string) []string {
	type match struct {
		name string
		far  int
	}
	var found []match
	_, name, _ = cutName(name)
	asked := editdistance.Normalize(name)
	most := min(2, (len(asked)+1)/2)
	for e := range s.Visible() {
		if far := editdistance.Distance(asked, editdistance.Normalize(e.label()), most); far <= most {
			found = append(found, match{e.Name, far})
		}
	}
	slices.SortStableFunc(found, func(a, b match) int { return cmp.Compare(a.far, b.far) })
	var out []string
	for _, m := range found[:min(len(found), 3)] {
		out = append(out, m.name)
	}
	return out
}

// Candidate is a skill that a reference could resolve to. It records why
// the reference does or does not resolve to the skill.
type Candidate struct {
	Name    string `json:"name"`
	Origin  string `json:"origin"`
	Scope   Scope  `json:"scope"`
	Path    string `json:"path"`
	Version string `json:"version,omitempty"`
	Chosen  bool   `json:"chosen"`
	Reason  string `json:"reason"`
}

// Explain returns the skills that a reference could resolve to, in order of
// precedence. Each has the reason why it was selected or not. The result
// includes hidden skills and duplicates at another path. For an unknown
// reference, it is nil.
func (s *Snapshot) Explain(ref string) []Candidate {
	q := s.parseRef(ref)
	chosen := s.find(q)
	var out []Candidate
	for _, e := range q.candidates {
		c := Candidate{Name: e.Name, Origin: e.Origin, Scope: e.Scope, Path: e.Path, Version: e.Version, Chosen: e == chosen}
		switch {
		case c.Chosen && len(q.candidates) == 1:
			c.Reason = "the only skill of this name"
		case c.Chosen:
			c.Reason = fmt.Sprintf("first of %d by scope, then by order of sources", len(q.candidates))
		case s.hidden(e) != "":
			c.Reason = s.hidden(e)
		case q.bad:
			c.Reason = fmt.Sprintf("invalid version constraint %q", q.constraint)
		case !satisfies(e.Version, q.want):
			c.Reason = fmt.Sprintf("version %q does not satisfy %s", e.Version, q.constraint)
		default:
			c.Reason = precedenceReason(e, chosen)
		}
		out = append(out, c)
		for _, t := range s.twins {
			if t.first == e {
				out = append(out, Candidate{Name: t.entry.Name, Origin: t.entry.Origin, Scope: t.entry.Scope, Path: t.entry.Path, Version: t.entry.Version,
					Reason: "the same as " + e.Path + ", reached by another path"})
			}
		}
	}
	for e := range s.served() {
		if e.label() == q.name && !slices.Contains(q.candidates, e) {
			out = append(out, Candidate{Name: e.Name, Origin: e.Origin, Scope: e.Scope, Path: e.Path, Version: e.Version,
				Reason: "another skill of this name, of the MCP server " + e.Server + "; use its full name " + e.Name})
		}
	}
	return out
}
