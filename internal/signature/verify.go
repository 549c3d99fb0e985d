package signature

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/note"

	"github.com/loadout-dev/loadout/skill"
)

// ErrUnsigned is returned if a skill has no signature.
var ErrUnsigned = errors.New("skill is not signed")

// KeyError is returned if a skill is signed by a key other than the expected
// one.
type KeyError struct {
	SignedBy string // public key in the signature
	Expected string // expected public key
}

func (e *KeyError) Error() string {
	return fmt.Sprintf("signed by another key: got %s, want %s", describeKey(e.SignedBy), describeKey(e.Expected))
}

// describeKey formats a public key for messages.
func describeKey(key string) string {
	return fmt.Sprintf("%q (%s)", KeyName(key), Fingerprint(key))
}

// MismatchError is returned if the name or the files of a skill differ from
// those in its signature. Paths are sorted and spelled as in the skill or the
// signature.
type MismatchError struct {
	Name       string // skill name
	SignedName string // name in the signature
	// Changed lists files whose content is not what was signed, Missing lists
	// signed files that do not exist, and Added lists files that were not
	// signed.
	Changed []string
	Missing []string
	Added   []string
}

// Error lists the first few changed, missing and added files.
func (e *MismatchError) Error() string {
	var parts []string
	if e.Name != e.SignedName {
		parts = append(parts, fmt.Sprintf("the signature is for the skill %q", e.SignedName))
	}
	for _, p := range []struct {
		what  string
		paths []string
	}{{"changed", e.Changed}, {"missing", e.Missing}, {"added", e.Added}} {
		if len(p.paths) > 0 {
			parts = append(parts, p.what+": "+formatPaths(p.paths))
		}
	}
	return fmt.Sprintf("skill %q differs from the signed one: %s", e.Name, strings.Join(parts, "; "))
}

// formatPaths formats the first few paths and the number of remaining paths.
func formatPaths(paths []string) string {
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

// Verify verifies that sig is a signature by the key public for the skill with
// the given name and exactly the files of m. It returns nil only if that is
// true. If there is no signature, the error is ErrUnsigned. If the signature is
// invalid, it is a [*DamagedError]; if the key differs, a [*KeyError]; and if
// the name or the files differ, a [*MismatchError].
//
// Verify checks the hashes in m. The caller must ensure that the files still
// have these hashes when it uses them.
func Verify(m skill.Manifest, name string, sig []byte, public string) error {
	v, err := newVerifier(public)
	if err != nil {
		return fmt.Errorf("verify skill %.100q: %w", name, err)
	}
	s, err := Parse(sig)
	if err != nil {
		return fmt.Errorf("verify skill %.100q: %w", name, err)
	}
	if s.Key != public {
		return fmt.Errorf("verify skill %.100q: %w", name, &KeyError{SignedBy: s.Key, Expected: public})
	}
	if _, err := note.Open(sig, note.VerifierList(v)); err != nil {
		return fmt.Errorf("verify skill %.100q: %w", name, &DamagedError{"signature does not match its text"})
	}
	if e := s.compare(signableFiles(m), name); e != nil {
		return fmt.Errorf("verify skill %.100q: %w", name, e)
	}
	return nil
}

// compare returns a [*MismatchError] if the name or the files differ from those
// in the signature, and nil otherwise. Both lists must be sorted. A repeated
// path in files counts as added.
func (s *Signature) compare(files skill.Manifest, name string) error {
	e := &MismatchError{Name: name, SignedName: s.Name}
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
	if e.Name == e.SignedName && len(e.Changed)+len(e.Missing)+len(e.Added) == 0 {
		return nil
	}
	return e
}
