package signature

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/note"

	"github.com/loadout-dev/loadout/skill"
)

// ErrUnsigned says that there is no signature.
var ErrUnsigned = errors.New("the skill is not signed")

// KeyError says that a skill is signed by another key than the one that counts.
type KeyError struct {
	Signed string // the public key that the signature names
	Wanted string // the public key that counts
}

func (e *KeyError) Error() string {
	return fmt.Sprintf("the skill is signed by another key: by %s, and not by %s", describe(e.Signed), describe(e.Wanted))
}

// describe is a key for people.
func describe(key string) string {
	return fmt.Sprintf("%q (%s)", KeyName(key), Fingerprint(key))
}

// MismatchError says that a skill is not what was signed. Paths are sorted, and
// as they are in the skill or the signature.
type MismatchError struct {
	Name   string // that the skill goes by
	Signed string // the name that was signed
	// Changed files have other bytes than were signed, Missing ones were signed
	// and are not there, Added ones are there and were not signed.
	Changed []string
	Missing []string
	Added   []string
}

// Error names the first files of each kind.
func (e *MismatchError) Error() string {
	var parts []string
	if e.Name != e.Signed {
		parts = append(parts, fmt.Sprintf("the signature is for the skill %q", e.Signed))
	}
	for _, p := range []struct {
		what  string
		paths []string
	}{{"changed", e.Changed}, {"missing", e.Missing}, {"added", e.Added}} {
		if len(p.paths) > 0 {
			parts = append(parts, p.what+": "+some(p.paths))
		}
	}
	return fmt.Sprintf("the skill %q is not what was signed: %s", e.Name, strings.Join(parts, "; "))
}

// some are the first paths, and how many more there are.
func some(paths []string) string {
	const most = 5
	shown := make([]string, 0, most)
	for _, p := range paths[:min(len(paths), most)] {
		shown = append(shown, fmt.Sprintf("%.200q", p))
	}
	text := strings.Join(shown, ", ")
	if n := len(paths) - most; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

// Verify reports whether sig, the content of a skill's [FileName], is a signature
// by public over the skill of that name with exactly the files of m, with their
// hashes. Nil is yes; every error is no. ErrUnsigned is for no signature, a
// [*DamagedError] for one that does not hold, a [*KeyError] for one that names
// another key, and a [*MismatchError] for another skill or other files.
//
// It is as good as m is: who uses the files afterwards sees to it that they are
// still those.
func Verify(m skill.Manifest, name string, sig []byte, public string) error {
	v, err := verifier(public)
	if err != nil {
		return fmt.Errorf("verify skill %.100q: %w", name, err)
	}
	s, err := Read(sig)
	if err != nil {
		return fmt.Errorf("verify skill %.100q: %w", name, err)
	}
	if s.Key != public {
		return fmt.Errorf("verify skill %.100q: %w", name, &KeyError{Signed: s.Key, Wanted: public})
	}
	if _, err := note.Open(sig, note.VerifierList(v)); err != nil {
		return fmt.Errorf("verify skill %.100q: %w", name, &DamagedError{"it is not the signature of what it says"})
	}
	if e := s.compare(signable(m), name); e != nil {
		return fmt.Errorf("verify skill %.100q: %w", name, e)
	}
	return nil
}

// compare is how a skill differs from what was signed, nil for not at all. Both
// lists are sorted; a path that comes twice in the one of the skill is added.
func (s *Signed) compare(files skill.Manifest, name string) error {
	e := &MismatchError{Name: name, Signed: s.Name}
	i := 0
	for _, f := range files {
		for i < len(s.Files) && s.Files[i].Path < f.Path {
			e.Missing = append(e.Missing, s.Files[i].Path)
			i++
		}
		switch {
		case i == len(s.Files) || s.Files[i].Path != f.Path:
			e.Added = append(e.Added, f.Path)
			continue
		case s.Files[i].SHA256 != f.SHA256:
			e.Changed = append(e.Changed, f.Path)
		}
		i++
	}
	for _, f := range s.Files[i:] {
		e.Missing = append(e.Missing, f.Path)
	}
	if e.Name == e.Signed && len(e.Changed)+len(e.Missing)+len(e.Added) == 0 {
		return nil
	}
	return e
}
