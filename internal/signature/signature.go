// Package signature signs skills and verifies signatures. A signature proves
// that the holder of a key signed exactly these files. [Pins] detects whether
// the key has changed.
//
// A signature is a file in the skill, [FileName]. It is a signed note in the
// format of the Go checksum database (https://c2sp.org/signed-note). Its
// Ed25519 signature covers the name of the skill and the hash of each file. The
// note contains the public key, so that [Pins] can store the key of a new
// publisher. It also contains a counter and a time, so that an older version
// can be distinguished from a newer one: [History] stores the highest counter
// seen. Signatures of earlier programs have neither; they stay valid, but have
// no history.
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
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/mod/sumdb/note"

	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/skill"
)

// FileName is the path of the signature file in a skill. It is the only file
// that the signature does not cover.
const FileName = "SKILL.sig"

// MaxBytes is the maximum size of a signature in bytes. It is enough for about
// 9,000 files.
const MaxBytes = 1 << 20

// MaxCounter is the highest counter of a signature. It is exact even in
// programs that read JSON numbers as floating point.
const MaxCounter = 1<<53 - 1

// The first line of a signature, and the prefixes of the other lines before the
// list of files. A signature with a counter has a different first line, because
// earlier programs would mistake the line with the counter for a file.
const (
	headingWithoutCounter = "loadout skill signature v1"
	heading               = "loadout skill signature v2"

	namePrefix    = "name "
	keyPrefix     = "key "
	counterPrefix = "counter "
	timePrefix    = "time "

	// These lines are optional.
	expiresPrefix  = "key-expires "
	rotationPrefix = "key-replaces "
)

// timeFormat is the format of times in signatures, always in UTC.
const timeFormat = "2006-01-02T15:04:05Z"

// Signature is the content of a signature file.
type Signature struct {
	Name string // name of the skill
	Key  string // public key in the signature
	Release
	KeyExpires time.Time  // when the key expires; zero means never
	Rotations  []Rotation // rotations from the publisher's first key to this one
	// Files lists the signed files sorted by path. Only Path and SHA256 are
	// set.
	Files skill.Manifest
}

// Release is the position of a signed version in the history of a skill. The
// zero Release is that of a signature without history.
type Release struct {
	// Counter is at least 1, and higher in each version of a skill.
	Counter uint64
	// Time is when the version was signed, according to the publisher's clock.
	Time time.Time
}

// Next returns the release after r, signed at now.
func (r Release) Next(now time.Time) Release {
	return Release{r.Counter + 1, now.UTC().Truncate(time.Second)}
}

func (r Release) check() error {
	switch {
	case r == Release{}:
		return nil
	case r.Counter == 0 || r.Counter > MaxCounter:
		return fmt.Errorf("invalid counter %d, want 1 to %d", r.Counter, uint64(MaxCounter))
	case r.Time.Year() < 1970 || r.Time.Year() > 9999:
		return fmt.Errorf("invalid time %v, want a year from 1970 to 9999", r.Time)
	}
	return nil
}

// Sign returns the content of [FileName] for the files of a manifest. The
// manifest must contain hashes. An existing signature in the manifest is
// ignored. private is a key created by [GenerateKey]. The counter of r must be
// higher than in all earlier versions; the zero Release makes a signature
// without history. The time of r is truncated to seconds.
//
// Sign returns an error if the name or a path contains characters that are not
// allowed in a signature, such as line ends, or if the signature exceeds
// [MaxBytes].
func Sign(m skill.Manifest, skillName, private string, r Release) ([]byte, error) {
	return PrivateKey{Private: private}.Sign(m, skillName, r)
}

// Sign is like the function Sign. The signature also contains the expiry and
// the rotations in k. If there are any, r must have a counter.
func (k PrivateKey) Sign(m skill.Manifest, skillName string, r Release) ([]byte, error) {
	private := k.Private
	public, err := PublicKey(private)
	if err != nil {
		return nil, fmt.Errorf("sign skill %.100q: %w", skillName, err)
	}
	signer, err := note.NewSigner(private)
	if err != nil {
		return nil, fmt.Errorf("sign skill %.100q: %w", skillName, errInvalidPrivateKey)
	}
	if !r.Time.IsZero() {
		r.Time = r.Time.UTC().Truncate(time.Second)
	}
	s := Signature{Name: skillName, Key: public, Release: r, KeyExpires: truncateTime(k.Expires), Rotations: k.Rotations, Files: signableFiles(m)}
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
	if s.Counter == 0 {
		fmt.Fprintf(&b, "%s\n%s%s\n%s%s\n", headingWithoutCounter, namePrefix, s.Name, keyPrefix, s.Key)
	} else {
		fmt.Fprintf(&b, "%s\n%s%s\n%s%s\n", heading, namePrefix, s.Name, keyPrefix, s.Key)
		fmt.Fprintf(&b, "%s%d\n%s%s\n", counterPrefix, s.Counter, timePrefix, s.Time.Format(timeFormat))
		if !s.KeyExpires.IsZero() {
			fmt.Fprintf(&b, "%s%s\n", expiresPrefix, s.KeyExpires.Format(timeFormat))
		}
		for _, r := range s.Rotations {
			fmt.Fprintf(&b, "%s%s\n", rotationPrefix, r.line())
		}
	}
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
	if err := s.Release.check(); err != nil {
		return err
	}
	if s.Counter == 0 && (!s.KeyExpires.IsZero() || len(s.Rotations) > 0) {
		return errors.New("signature with a key expiry or rotation requires a counter")
	}
	if isExpired(s.KeyExpires, s.Time) {
		return fmt.Errorf("the key expired on %s, before the signature", s.KeyExpires.Format(time.DateOnly))
	}
	if err := checkRotations(s.Rotations, s.Key, s.KeyExpires); err != nil {
		return err
	}
	if len(s.Files) == 0 {
		return errors.New("no files to sign")
	}
	for i, f := range s.Files {
		switch {
		case !isOneLine(f.Path) || !fs.ValidPath(f.Path) || f.Path == FileName:
			return fmt.Errorf("invalid path %.200q, want one line of UTF-8", f.Path)
		case !skillfile.IsHash(f.SHA256):
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
	r := lineReader{lines: strings.Split(strings.TrimSuffix(text, "\n"), "\n")}
	s := &Signature{}
	first := r.next("")
	if first != heading && first != headingWithoutCounter {
		return nil, fmt.Errorf("first line is not %q: a newer loadout may have written the signature; update loadout", heading)
	}
	s.Name, s.Key = r.next(namePrefix), r.next(keyPrefix)
	if first == heading {
		s.Counter = r.nextCounter()
		s.Time = r.nextTime(timePrefix)
		if r.startsWith(expiresPrefix) {
			s.KeyExpires = r.nextTime(expiresPrefix)
		}
		for r.startsWith(rotationPrefix) && len(s.Rotations) <= MaxRotations {
			s.Rotations = append(s.Rotations, r.nextRotation())
		}
	}
	if r.err != nil {
		return nil, r.err
	}
	for r.more() {
		hash, path, ok := strings.Cut(r.next(""), "  ")
		if !ok {
			return nil, fmt.Errorf("invalid line %d, want a hash and a path", r.line)
		}
		s.Files = append(s.Files, skill.File{Path: path, SHA256: hash})
	}
	return s, s.check()
}

// lineReader reads the lines of a signed text. It keeps the first error.
type lineReader struct {
	lines []string
	line  int // number of the line read last
	err   error
}

func (r *lineReader) more() bool { return r.line < len(r.lines) }

// startsWith reports whether the next line has a prefix.
func (r *lineReader) startsWith(prefix string) bool {
	return r.err == nil && r.more() && strings.HasPrefix(r.lines[r.line], prefix)
}

// nextRotation reads and verifies a rotation.
func (r *lineReader) nextRotation() Rotation {
	out, err := parseRotation(r.next(rotationPrefix))
	if r.err == nil && err != nil {
		r.err = fmt.Errorf("invalid line %d: rotation: %w", r.line, err)
	}
	return out
}

// next returns the rest of the next line after its prefix.
func (r *lineReader) next(prefix string) string {
	if r.err != nil {
		return ""
	}
	if !r.more() {
		r.err = errors.New("unexpected end of signature")
		return ""
	}
	rest, ok := strings.CutPrefix(r.lines[r.line], prefix)
	r.line++
	if !ok {
		r.err = fmt.Errorf("invalid line %d, want prefix %q", r.line, prefix)
	}
	return rest
}

// nextCounter reads a counter in its canonical form.
func (r *lineReader) nextCounter() uint64 {
	text := r.next(counterPrefix)
	n, err := strconv.ParseUint(text, 10, 64)
	if r.err == nil && (err != nil || n == 0 || strconv.FormatUint(n, 10) != text) {
		r.err = fmt.Errorf("invalid line %d, want a counter of at least 1", r.line)
	}
	return n
}

// nextTime reads a time in its canonical form.
func (r *lineReader) nextTime(prefix string) time.Time {
	t, err := parseTime(r.next(prefix))
	if r.err == nil && err != nil {
		r.err = fmt.Errorf("invalid line %d: %w", r.line, err)
	}
	return t
}
