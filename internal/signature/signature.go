// Package signature signs skills and verifies signatures. A signature proves
// that the holder of a key signed exactly these files. [Pins] detects whether
// the key has changed.
//
// A signature is a file in the skill, [FileName]. It is a signed note in the
// format of the Go checksum database (https://c2sp.org/signed-note). Its
// Ed25519 signature covers the name of the skill and the hash of each file. The
// note contains the public key, so that [Pins] can store the key of a new
// publisher.
//
// A signature says who published the files, not what they do, and grants no
// permission to run them. The package makes no connections, uses no certificate
// authority, and treats a signature as hostile until it is verified. Start
// reading at [Sign] and [Verify].
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

// FileName is the path of the signature file in a skill. It is the only file
// that the signature does not cover.
const FileName = "SKILL.sig"

// MaxBytes is the maximum size of a signature in bytes. It is enough for about
// 9,000 files.
const MaxBytes = 1 << 20

// Prefixes of the header lines before the list of files.
const (
	heading    = "loadout skill signature v1"
	namePrefix = "name "
	keyPrefix  = "key "
)

// Signature is the content of a signature file.
type Signature struct {
	Name string // name of the skill
	Key  string // public key in the signature
	// Files lists the signed files sorted by path. Only Path and SHA256 are
	// set.
	Files skill.Manifest
}

// Sign returns the content of [FileName] for the files of a manifest. The
// manifest must contain hashes. An existing signature in the manifest is
// ignored. private is a key created by [GenerateKey].
//
// Sign returns an error if the name or a path contains characters that are not
// allowed in a signature, such as line ends, or if the signature exceeds
// [MaxBytes].
func Sign(m skill.Manifest, skillName, private string) ([]byte, error) {
	public, err := PublicKey(private)
	if err != nil {
		return nil, fmt.Errorf("sign skill %.100q: %w", skillName, err)
	}
	signer, err := note.NewSigner(private)
	if err != nil {
		return nil, fmt.Errorf("sign skill %.100q: %w", skillName, errInvalidPrivateKey)
	}
	s := Signature{Name: skillName, Key: public, Files: signableFiles(m)}
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("sign skill %.100q: %w", skillName, err)
	}
	out, err := note.Sign(&note.Note{Text: s.text()}, signer)
	if err != nil {
		return nil, fmt.Errorf("sign skill %q: %w", skillName, err)
	}
	if len(out) > MaxBytes {
		return nil, fmt.Errorf("sign skill %q: too many files (%d) for a signature of at most %d bytes", skillName, len(s.Files), MaxBytes)
	}
	return out, nil
}

// signableFiles returns the files covered by a signature, sorted by path.
func signableFiles(m skill.Manifest) skill.Manifest {
	var out skill.Manifest
	for _, f := range m {
		if f.Path != FileName {
			out = append(out, skill.File{Path: f.Path, SHA256: f.SHA256})
		}
	}
	slices.SortFunc(out, func(a, b skill.File) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// text returns the text to sign.
func (s *Signature) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s%s\n%s%s\n", heading, namePrefix, s.Name, keyPrefix, s.Key)
	for _, f := range s.Files {
		b.WriteString(f.SHA256 + "  " + f.Path + "\n")
	}
	return b.String()
}

// check returns an error if the content cannot be signed.
func (s *Signature) check() error {
	if !isOneLine(s.Name) || len(s.Name) > maxName {
		return fmt.Errorf("invalid skill name, want 1 to %d bytes without control characters", maxName)
	}
	if len(s.Files) == 0 {
		return errors.New("no files to sign")
	}
	for i, f := range s.Files {
		switch {
		case !isOneLine(f.Path) || !fs.ValidPath(f.Path) || f.Path == FileName:
			return fmt.Errorf("invalid path %.200q, want one line of UTF-8", f.Path)
		case !isHash(f.SHA256):
			return fmt.Errorf("file %q has no SHA-256", f.Path)
		case i > 0 && f.Path <= s.Files[i-1].Path:
			return fmt.Errorf("file %q is repeated or out of order", f.Path)
		}
	}
	return nil
}

// isOneLine reports whether s can be part of a line of a signature.
func isOneLine(s string) bool {
	return s != "" && utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsControl(r) || r == '\u2028' || r == '\u2029'
	})
}

func isHash(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}

// DamagedError is returned if a signature was not written by [Sign] or was
// modified. Its content cannot be trusted.
type DamagedError struct{ Reason string }

func (e *DamagedError) Error() string { return "damaged signature: " + e.Reason }

// Parse parses a signature without verifying it. The content is untrusted until
// [Verify] accepts it. For empty input, the error is ErrUnsigned. For anything
// that [Sign] would not write, including several signatures, it is a
// [*DamagedError].
func Parse(sig []byte) (*Signature, error) {
	switch {
	case len(sig) == 0:
		return nil, ErrUnsigned
	case len(sig) > MaxBytes:
		return nil, &DamagedError{fmt.Sprintf("too large (limit %d bytes)", MaxBytes)}
	}
	_, err := note.Open(sig, nil)
	unverified, ok := errors.AsType[*note.UnverifiedNoteError](err)
	if !ok {
		return nil, &DamagedError{"not a signed note"}
	}
	n := unverified.Note
	if len(n.UnverifiedSigs) != 1 {
		return nil, &DamagedError{"more than one signature"}
	}
	by := n.UnverifiedSigs[0]
	if _, err := base64.StdEncoding.Strict().DecodeString(by.Base64); err != nil ||
		string(sig) != n.Text+"\n— "+by.Name+" "+by.Base64+"\n" {
		return nil, &DamagedError{"not in the form that Sign writes"}
	}
	s, err := parseText(n.Text)
	if err != nil {
		return nil, &DamagedError{err.Error()}
	}
	v, err := newVerifier(s.Key)
	switch {
	case err != nil:
		return nil, &DamagedError{"invalid key line"}
	case v.Name() != by.Name || v.KeyHash() != by.Hash:
		return nil, &DamagedError{fmt.Sprintf("contains the key %q but is signed by %q", v.Name(), by.Name)}
	}
	return s, nil
}

// parseText parses the signed text.
func parseText(text string) (*Signature, error) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if lines[0] != heading {
		return nil, fmt.Errorf("first line is not %q: the signature may come from a newer version of this program", heading)
	}
	s := &Signature{}
	for i, f := range []struct {
		prefix string
		to     *string
	}{{namePrefix, &s.Name}, {keyPrefix, &s.Key}} {
		var ok bool
		if len(lines) <= i+1 {
			return nil, errors.New("unexpected end of signature")
		}
		if *f.to, ok = strings.CutPrefix(lines[i+1], f.prefix); !ok {
			return nil, fmt.Errorf("invalid line %d, want prefix %q", i+2, f.prefix)
		}
	}
	for i, line := range lines[3:] {
		hash, path, ok := strings.Cut(line, "  ")
		if !ok {
			return nil, fmt.Errorf("invalid line %d, want a hash and a path", i+4)
		}
		s.Files = append(s.Files, skill.File{Path: path, SHA256: hash})
	}
	return s, s.check()
}
