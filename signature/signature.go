// Package signature signs what a skill is, and checks it: that its files are
// those that the holder of a key signed, and that the key is the one that was
// seen before.
//
// A signature is a file in the skill, [FileName]: a signed note as the Go
// checksum database has them (https://c2sp.org/signed-note), with an Ed25519
// signature over the name of the skill and the hash of each of its files. It
// names its key, so that whoever meets a publisher for the first time can keep
// that key in [Pins] and notice another one later.
//
// A signature says who made the files, and nothing of what is in them: it gives
// no leave to run anything. The package connects to nothing, knows no authority
// that would vouch for keys, and takes every byte of a signature as hostile
// until it is verified.
package signature

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/mod/sumdb/note"

	"github.com/loadout-dev/loadout/skill"
)

// FileName is the file at the top of a skill that holds its signature. It is the
// only file that no signature is about.
const FileName = "SKILL.sig"

// MaxBytes is the most bytes of a signature, which is about 9,000 files.
const MaxBytes = 1 << 20

// The lines before those of the files.
const (
	heading    = "loadout skill signature v1"
	namePrefix = "name "
	keyPrefix  = "key "
)

// Signed is what a signature says.
type Signed struct {
	Name string // of the skill
	Key  string // the public key that it says it is signed by
	// Files are those that it is about, sorted by path, of which only Path and
	// SHA256 are known.
	Files skill.Manifest
}

// Sign returns the content of [FileName] for the files of a manifest, with their
// hashes, which one that is there already does not count among. private is of
// [GenerateKey].
//
// It fails where a name or a path has characters that a signature cannot hold,
// as line ends, and where there are too many files for [MaxBytes].
func Sign(m skill.Manifest, skillName, private string) ([]byte, error) {
	public, err := Public(private)
	if err != nil {
		return nil, fmt.Errorf("sign skill %.100q: %w", skillName, err)
	}
	signer, err := note.NewSigner(private)
	if err != nil {
		return nil, fmt.Errorf("sign skill %.100q: %w", skillName, errNoPrivate)
	}
	s := Signed{Name: skillName, Key: public, Files: signable(m)}
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("sign skill %.100q: %w", skillName, err)
	}
	out, err := note.Sign(&note.Note{Text: s.text()}, signer)
	if err != nil {
		return nil, fmt.Errorf("sign skill %q: %w", skillName, err)
	}
	if len(out) > MaxBytes {
		return nil, fmt.Errorf("sign skill %q: its %d files are too many for a signature of at most %d bytes", skillName, len(s.Files), MaxBytes)
	}
	return out, nil
}

// signable are the files that a signature is about, sorted by path.
func signable(m skill.Manifest) skill.Manifest {
	var out skill.Manifest
	for _, f := range m {
		if f.Path != FileName {
			out = append(out, skill.File{Path: f.Path, SHA256: f.SHA256})
		}
	}
	slices.SortFunc(out, func(a, b skill.File) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// text is what is signed.
func (s *Signed) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s%s\n%s%s\n", heading, namePrefix, s.Name, keyPrefix, s.Key)
	for _, f := range s.Files {
		b.WriteString(f.SHA256 + "  " + f.Path + "\n")
	}
	return b.String()
}

// check finds what cannot be signed, and is in no signature that counts.
func (s *Signed) check() error {
	if !oneLine(s.Name) || len(s.Name) > maxName {
		return fmt.Errorf("the name of the skill is empty, longer than %d bytes, or has control characters", maxName)
	}
	if len(s.Files) == 0 {
		return errors.New("there are no files")
	}
	for i, f := range s.Files {
		switch {
		case !oneLine(f.Path) || !fs.ValidPath(f.Path) || f.Path == FileName:
			return fmt.Errorf("a signature cannot hold the path %.200q", f.Path)
		case !isHash(f.SHA256):
			return fmt.Errorf("the file %q has no SHA-256", f.Path)
		case i > 0 && f.Path <= s.Files[i-1].Path:
			return fmt.Errorf("the file %q is there twice or out of order", f.Path)
		}
	}
	return nil
}

// oneLine reports whether a text stays within its line in a signature.
func oneLine(s string) bool {
	return s != "" && utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsControl(r) || r == '\u2028' || r == '\u2029'
	})
}

func isHash(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}

// DamagedError says that something is no signature as [Sign] writes them, or was
// changed since: nothing in it counts.
type DamagedError struct{ Reason string }

func (e *DamagedError) Error() string { return "the signature is damaged: " + e.Reason }

// Read reads a signature without trusting it: what it says may be said by
// anybody until [Verify] accepts it. The error is ErrUnsigned for no bytes, else
// a [*DamagedError].
//
// It accepts what [Sign] writes and nothing else, so that each signature has one
// form. One by several keys is refused.
func Read(sig []byte) (*Signed, error) {
	switch {
	case len(sig) == 0:
		return nil, ErrUnsigned
	case len(sig) > MaxBytes:
		return nil, &DamagedError{fmt.Sprintf("it has more than %d bytes", MaxBytes)}
	}
	_, err := note.Open(sig, nil)
	unverified, ok := errors.AsType[*note.UnverifiedNoteError](err)
	if !ok {
		return nil, &DamagedError{"it is no signed note"}
	}
	n := unverified.Note
	if len(n.UnverifiedSigs) != 1 {
		return nil, &DamagedError{"it has more than one signature"}
	}
	by := n.UnverifiedSigs[0]
	if _, err := base64.StdEncoding.Strict().DecodeString(by.Base64); err != nil ||
		string(sig) != n.Text+"\n— "+by.Name+" "+by.Base64+"\n" {
		return nil, &DamagedError{"it is not in the form in which it was written"}
	}
	s, err := parse(n.Text)
	if err != nil {
		return nil, &DamagedError{err.Error()}
	}
	v, err := verifier(s.Key)
	switch {
	case err != nil:
		return nil, &DamagedError{"its key line holds no key"}
	case v.Name() != by.Name || v.KeyHash() != by.Hash:
		return nil, &DamagedError{fmt.Sprintf("it names the key %q, and is signed by another, %q", v.Name(), by.Name)}
	}
	return s, nil
}

// parse reads what is signed.
func parse(text string) (*Signed, error) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if lines[0] != heading {
		return nil, fmt.Errorf("its first line is not %q: a newer program may have written it", heading)
	}
	s := &Signed{}
	for i, f := range []struct {
		prefix string
		to     *string
	}{{namePrefix, &s.Name}, {keyPrefix, &s.Key}} {
		var ok bool
		if len(lines) <= i+1 {
			return nil, errors.New("it ends too early")
		}
		if *f.to, ok = strings.CutPrefix(lines[i+1], f.prefix); !ok {
			return nil, fmt.Errorf("line %d does not begin with %q", i+2, f.prefix)
		}
	}
	for i, line := range lines[3:] {
		hash, path, ok := strings.Cut(line, "  ")
		if !ok {
			return nil, fmt.Errorf("line %d has no hash and path", i+4)
		}
		s.Files = append(s.Files, skill.File{Path: path, SHA256: hash})
	}
	return s, s.check()
}
