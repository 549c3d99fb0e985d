package signature

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
)

// MaxRotations is the maximum number of rotations in a signature.
const MaxRotations = 32

// Rotation is a statement that one key replaces another. It is signed by the
// replaced key.
type Rotation struct {
	Old, New string    // public keys
	Time     time.Time // when it was signed, according to the publisher's clock
	Expires  time.Time // when the new key expires; zero means never

	signature string // base64, as in a note
}

const (
	rotationHeading = "loadout key rotation v1"
	never           = "never"
)

// PrivateKey is a publisher's private key, with the statements about it that
// the publisher includes in each signature.
type PrivateKey struct {
	Private   string     // created by [GenerateKey]
	Expires   time.Time  // zero means never
	Rotations []Rotation // rotations from the publisher's first key to this one
}

// Replace returns newKey with a statement, signed by k, that newKey replaces k.
// expires is when newKey expires; zero means never. now is the time of the
// statement. If k has expired, Replace returns an error, because the statement
// would be ignored.
func (k PrivateKey) Replace(newKey string, expires, now time.Time) (PrivateKey, error) {
	if isExpired(k.Expires, now) {
		return PrivateKey{}, fmt.Errorf("replace key: the old key expired on %s, so it cannot sign a replacement", k.Expires.Format(time.DateOnly))
	}
	if len(k.Rotations) == MaxRotations {
		return PrivateKey{}, fmt.Errorf("replace key: too many rotations (limit %d)", MaxRotations)
	}
	signer, err := note.NewSigner(k.Private)
	if err != nil {
		return PrivateKey{}, fmt.Errorf("replace key: %w", errInvalidPrivateKey)
	}
	r := Rotation{Time: now.UTC().Truncate(time.Second), Expires: truncateTime(expires)}
	if r.Old, err = PublicKey(k.Private); err == nil {
		r.New, err = PublicKey(newKey)
	}
	if err != nil {
		return PrivateKey{}, fmt.Errorf("replace key: %w", err)
	}
	signed, err := note.Sign(&note.Note{Text: r.text()}, signer)
	if err != nil {
		return PrivateKey{}, fmt.Errorf("replace key: %w", err)
	}
	last := strings.TrimSuffix(string(signed), "\n")
	r.signature = last[strings.LastIndexByte(last, ' ')+1:]
	return PrivateKey{Private: newKey, Expires: r.Expires, Rotations: append(k.Rotations[:len(k.Rotations):len(k.Rotations)], r)}, nil
}

// text returns the text that the old key signs.
func (r Rotation) text() string {
	return fmt.Sprintf("%s\nold %s\nnew %s\ntime %s\nexpires %s\n", rotationHeading, r.Old, r.New, r.Time.Format(timeFormat), formatExpiry(r.Expires))
}

// line returns the statement as one line of a signature or of a key file.
func (r Rotation) line() string {
	return strings.Join([]string{r.Old, r.New, r.Time.Format(timeFormat), formatExpiry(r.Expires), r.signature}, " ")
}

// parseRotation parses and verifies a statement.
func parseRotation(line string) (Rotation, error) {
	parts := strings.Split(line, " ")
	if len(parts) != 5 {
		return Rotation{}, errors.New("want two keys, two times and a signature")
	}
	r := Rotation{Old: parts[0], New: parts[1], signature: parts[4]}
	var err error
	if r.Time, err = parseTime(parts[2]); err != nil {
		return r, err
	}
	if parts[3] != never {
		if r.Expires, err = parseTime(parts[3]); err != nil {
			return r, err
		}
	}
	old, err := newVerifier(r.Old)
	if err != nil {
		return r, err
	}
	if _, err := newVerifier(r.New); err != nil || r.New == r.Old {
		return r, errInvalidPublicKey
	}
	if _, err := base64.StdEncoding.Strict().DecodeString(r.signature); err != nil {
		return r, errors.New("invalid signature")
	}
	if _, err := note.Open([]byte(r.text()+"\n— "+old.Name()+" "+r.signature+"\n"), note.VerifierList(old)); err != nil {
		return r, errors.New("not signed by the old key")
	}
	return r, nil
}

// checkRotations returns an error unless each statement replaces the new key of
// the previous statement, and the last statement introduces key with the expiry
// time expires.
func checkRotations(all []Rotation, key string, expires time.Time) error {
	if len(all) > MaxRotations {
		return fmt.Errorf("too many rotations (limit %d)", MaxRotations)
	}
	for i, r := range all {
		next, until := key, expires
		if i+1 < len(all) {
			next, until = all[i+1].Old, r.Expires
		}
		if r.New != next || !r.Expires.Equal(until) {
			return errors.New("key rotations do not form a chain that ends with the signing key")
		}
	}
	return nil
}

// Succeeds reports whether the publisher's statements in a signature lead from
// an earlier key to that of the signature. expires is when the earlier key
// expires, or zero. A statement made after its key expired is ignored.
func (s *Signature) Succeeds(key string, expires time.Time) bool {
	found := false
	for _, r := range s.Rotations {
		if found = found || r.Old == key; !found {
			continue
		}
		if isExpired(expires, r.Time) {
			return false
		}
		expires = r.Expires
	}
	return found
}

// isExpired reports whether a key with the given expiry time has expired. The
// zero time means that the key never expires.
func isExpired(expires, now time.Time) bool { return !expires.IsZero() && !now.Before(expires) }

func truncateTime(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Second)
}

func formatExpiry(t time.Time) string {
	if t.IsZero() {
		return never
	}
	return t.Format(timeFormat)
}

// parseTime parses a time in its canonical form. It accepts no other form.
func parseTime(text string) (time.Time, error) {
	t, err := time.Parse(timeFormat, text)
	if err != nil || t.Format(timeFormat) != text {
		return time.Time{}, fmt.Errorf("invalid time, want one such as %s", timeFormat)
	}
	return t, nil
}
