package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/loadout-dev/loadout/internal/near"
	"github.com/loadout-dev/loadout/skill"
)

// Snapshot is one immutable state of the catalog. It is safe for concurrent
// use.
type Snapshot struct {
	// Version grows by one with every snapshot that differs from the one
	// before it.
	Version uint64
	// Disabled says that skills are switched off: there are no entries.
	Disabled bool

	entries  []*Entry // in order of precedence
	problems []Problem
	named    []*Entry          // the same by name, then in order of precedence
	hidden   map[*Entry]string // reason
	twins    []twin            // reached another way
	runs     [][]*Entry        // parts of entries that are of one source and scope
	shown    []*Entry          // what wins its name and is not hidden, by name
}

// twin is a skill whose directory or archive is also that of another, which
// stands for both.
type twin struct{ entry, first *Entry }

// ErrNotFound says that no skill answers to a name.
var ErrNotFound = fmt.Errorf("no such skill: %w", fs.ErrNotExist)

// NotFoundError names what was looked for and what comes close.
type NotFoundError struct {
	Ref    string
	Reason string   // why a known skill is not available, or ""
	Near   []string // names that are spelled alike, at most 3
}

func (e *NotFoundError) Error() string {
	ref := e.Ref
	if r := []rune(ref); len(r) > 200 {
		ref = string(r[:200]) + "…"
	}
	s := fmt.Sprintf("no skill answers to %q", ref)
	switch {
	case e.Reason != "":
		s = fmt.Sprintf("skill %q is not available: %s", ref, e.Reason)
	case len(e.Near) > 0:
		s += "; did you mean " + strings.Join(e.Near, ", ") + "?"
	}
	return s
}

// Is makes the error match [ErrNotFound] and [fs.ErrNotExist].
func (e *NotFoundError) Is(target error) bool {
	return target == ErrNotFound || target == fs.ErrNotExist
}

// newSnapshot orders entries, which come grouped by source in the order of
// the sources, and decides what every name stands for.
func newSnapshot(entries []*Entry, problems []Problem, f *filter) *Snapshot {
	s := &Snapshot{problems: problems, Disabled: f.disabled}
	if f.disabled {
		return s
	}
	slices.SortStableFunc(entries, func(a, b *Entry) int { return cmp.Compare(b.Scope, a.Scope) })
	seen := make(map[fileID]*Entry, len(entries))
	s.entries = make([]*Entry, 0, len(entries))
	for _, e := range entries {
		if first := seen[e.id]; first != nil && e.id != (fileID{}) {
			s.twins = append(s.twins, twin{e, first})
			continue
		}
		seen[e.id] = e
		s.entries = append(s.entries, e)
		if why := f.hides(e); why != "" {
			if s.hidden == nil {
				s.hidden = map[*Entry]string{}
			}
			s.hidden[e] = why
		}
	}
	s.runs = runs(s.entries)
	s.named = slices.Clone(s.entries)
	slices.SortStableFunc(s.named, func(a, b *Entry) int { return cmp.Compare(a.Name, b.Name) })
	s.shown = make([]*Entry, 0, len(s.named))
	for i := 0; i < len(s.named); {
		candidates := s.of(s.named[i].Name)
		if e := s.winner(candidates); e != nil {
			s.shown = append(s.shown, e)
		}
		i += len(candidates)
	}
	return s
}

func runs(entries []*Entry) [][]*Entry {
	var out [][]*Entry
	for i := 0; i < len(entries); {
		j := i + 1
		for j < len(entries) && entries[j].Scope == entries[i].Scope && entries[j].Origin == entries[i].Origin {
			j++
		}
		out = append(out, entries[i:j:j])
		i = j
	}
	return out
}

// of returns the skills of a name, visible and hidden, in order of precedence.
func (s *Snapshot) of(name string) []*Entry {
	i, _ := slices.BinarySearchFunc(s.named, name, func(e *Entry, name string) int { return cmp.Compare(e.Name, name) })
	j := i
	for j < len(s.named) && s.named[j].Name == name {
		j++
	}
	return s.named[i:j]
}

func (s *Snapshot) winner(candidates []*Entry) *Entry {
	for _, e := range candidates {
		if s.hidden[e] == "" {
			return e
		}
	}
	return nil
}

// Skills are the skills that answer to their names, sorted by name. The slice
// must not be changed.
func (s *Snapshot) Skills() []*Entry { return s.shown }

// All yields every skill that is not hidden in order of precedence, also those
// that are shadowed by a skill of the same name.
func (s *Snapshot) All() iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		for _, e := range s.entries {
			if s.hidden[e] == "" && !yield(e) {
				return
			}
		}
	}
}

// Offered are the skills a model may be told of: those of [Snapshot.Skills]
// that are not for people only.
func (s *Snapshot) Offered() []*Entry {
	out := make([]*Entry, 0, len(s.shown))
	for _, e := range s.shown {
		if !e.DisableModelInvocation {
			out = append(out, e)
		}
	}
	return out
}

// Problems are the findings about all sources. The slice must not be changed.
func (s *Snapshot) Problems() []Problem { return s.problems }

// Shadow is a skill that its name does not reach.
type Shadow struct {
	Name   string `json:"name"`
	Origin string `json:"origin"`
	Path   string `json:"path"`
	By     string `json:"by"`     // key of the skill that the name stands for
	Reason string `json:"reason"` // why it lost
}

// Shadowed are all skills that lost their name to another, by name.
func (s *Snapshot) Shadowed() []Shadow {
	var out []Shadow
	for _, e := range s.shown {
		for _, c := range s.of(e.Name) {
			if c != e && s.hidden[c] == "" {
				out = append(out, Shadow{c.Name, c.Origin, c.Path, e.Key(), lost(c, e)})
			}
		}
	}
	return out
}

func lost(loser, winner *Entry) string {
	switch {
	case loser.Scope != winner.Scope:
		return fmt.Sprintf("scope %s comes after %s", loser.Scope, winner.Scope)
	case loser.Origin != winner.Origin:
		return fmt.Sprintf("source %s comes after %s", loser.Origin, winner.Origin)
	default:
		return fmt.Sprintf("%s comes after %s in the same source", loser.Dir, winner.Dir)
	}
}

// Get returns the skill that a reference stands for: its key "origin/dir",
// "name", "origin/name", or a name with a semantic version constraint,
// "name@^1.2". The error is a [*NotFoundError]. For references by digest see
// [Catalog.Resolve].
func (s *Snapshot) Get(ref string) (*Entry, error) {
	if s.Disabled {
		return nil, &NotFoundError{Ref: ref, Reason: "skills are switched off (skills.enabled)"}
	}
	q := s.question(ref)
	if e := s.answer(q); e != nil {
		return e, nil
	}
	return nil, s.notFound(q)
}

// question is a reference taken apart.
type question struct {
	ref        string
	name       string // without the constraint
	constraint string
	want       *semver.Constraints
	bad        bool     // the constraint is none
	candidates []*Entry // in order of precedence
}

func (s *Snapshot) question(ref string) question {
	q := question{ref: strings.TrimSpace(ref)}
	q.name = q.ref
	if e := s.at(q.ref); e != nil {
		q.candidates = []*Entry{e}
		return q
	}
	if at := strings.LastIndexByte(q.ref, '@'); at > 0 {
		q.name, q.constraint = strings.TrimSpace(q.ref[:at]), strings.TrimSpace(q.ref[at+1:])
		if q.candidates = s.candidates(q.name); len(q.candidates) == 0 {
			// A name may hold an @; it comes last, so that no skill can take
			// the place of another's version by calling itself that.
			if q.candidates = s.candidates(q.ref); len(q.candidates) > 0 {
				q.name, q.constraint = q.ref, ""
			}
		}
		if q.constraint != "" {
			var err error
			q.want, err = semver.NewConstraint(q.constraint)
			q.bad = err != nil
		}
		return q
	}
	q.candidates = s.candidates(q.ref)
	return q
}

// answer is the first candidate that is available and of a version that will
// do, nil for none.
func (s *Snapshot) answer(q question) *Entry {
	for _, e := range q.candidates {
		if !q.bad && s.hidden[e] == "" && satisfies(e.Version, q.want) {
			return e
		}
	}
	return nil
}

// candidates are the skills of a name, or of a name in one source.
func (s *Snapshot) candidates(name string) []*Entry {
	if found := s.of(skill.NormalizeName(name)); len(found) > 0 {
		return found
	}
	origin, rest, ok := strings.Cut(name, "/")
	if !ok {
		return nil
	}
	var found []*Entry
	for _, e := range s.of(skill.NormalizeName(rest)) {
		if e.Origin == origin {
			found = append(found, e)
		}
	}
	if found != nil {
		return found
	}
	for _, t := range s.twins {
		if t.entry.Origin == origin && (t.entry.Dir == rest || t.entry.Name == rest) {
			return []*Entry{t.first}
		}
	}
	return nil
}

// at returns the skill of a key.
func (s *Snapshot) at(key string) *Entry {
	origin, dir, ok := strings.Cut(key, "/")
	if !ok {
		return nil
	}
	for _, r := range s.runs {
		if r[0].Origin != origin {
			continue
		}
		if i, ok := slices.BinarySearchFunc(r, &Entry{Dir: dir}, byDir); ok {
			return r[i]
		}
	}
	return nil
}

// Hidden reports whether the skill with that [Entry.Key] is there and may not be
// used.
func (s *Snapshot) Hidden(key string) bool {
	e := s.at(key)
	return e != nil && s.hidden[e] != ""
}

func satisfies(version string, want *semver.Constraints) bool {
	if want == nil {
		return true
	}
	v, err := semver.NewVersion(version)
	return err == nil && want.Check(v)
}

func (s *Snapshot) notFound(q question) error {
	err := &NotFoundError{Ref: q.ref}
	if len(q.candidates) == 0 {
		err.Near = s.near(q.name)
		return err
	}
	if q.bad {
		err.Reason = fmt.Sprintf("%q is no version constraint; write for example %s@^1.2", q.constraint, q.name)
		return err
	}
	var reasons []string
	for _, e := range q.candidates[:min(len(q.candidates), 3)] {
		reason := s.hidden[e]
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

// near finds names that differ from name in case, punctuation or two letters.
func (s *Snapshot) near(name string) []string {
	type match struct {
		name string
		far  int
	}
	var found []match
	if _, rest, ok := strings.Cut(name, "/"); ok {
		name = rest
	}
	asked := near.Letters(name)
	most := min(2, (len(asked)+1)/2)
	for _, e := range s.shown {
		if far := near.Distance(asked, near.Letters(e.Name), most); far <= most {
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

// Candidate is one skill that a name could stand for, and its fate.
type Candidate struct {
	Name    string `json:"name"`
	Origin  string `json:"origin"`
	Scope   Scope  `json:"scope"`
	Path    string `json:"path"`
	Version string `json:"version,omitempty"`
	Chosen  bool   `json:"chosen"`
	Reason  string `json:"reason"`
}

// Explain lists every skill that a reference could stand for, in order of
// precedence, with why it was chosen or not.
func (s *Snapshot) Explain(ref string) []Candidate {
	q := s.question(ref)
	chosen := s.answer(q)
	var out []Candidate
	for _, e := range q.candidates {
		c := Candidate{Name: e.Name, Origin: e.Origin, Scope: e.Scope, Path: e.Path, Version: e.Version, Chosen: e == chosen}
		switch {
		case c.Chosen && len(q.candidates) == 1:
			c.Reason = "the only skill of this name"
		case c.Chosen:
			c.Reason = fmt.Sprintf("first of %d by scope, then by order of sources", len(q.candidates))
		case s.hidden[e] != "":
			c.Reason = s.hidden[e]
		case q.bad:
			c.Reason = fmt.Sprintf("%q is no version constraint", q.constraint)
		case !satisfies(e.Version, q.want):
			c.Reason = fmt.Sprintf("version %q does not satisfy %s", e.Version, q.constraint)
		default:
			c.Reason = lost(e, chosen)
		}
		out = append(out, c)
		for _, t := range s.twins {
			if t.first == e {
				out = append(out, Candidate{Name: t.entry.Name, Origin: t.entry.Origin, Scope: t.entry.Scope, Path: t.entry.Path, Version: t.entry.Version,
					Reason: "the same as " + e.Path + ", reached by another path"})
			}
		}
	}
	return out
}

// IsNotFound reports whether err says that a skill or file is not there.
func IsNotFound(err error) bool { return errors.Is(err, fs.ErrNotExist) }
