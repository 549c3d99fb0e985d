// Package seal keeps values that nobody should read who sees a table of the
// database or a backup of it: it seals them with a key that is elsewhere. A
// [Redactor] keeps the same values out of what is shown and logged.
//
// It never logs, keeps no value, and has neither values nor keys in its errors.
// Who may have a value is not decided here.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// MaxValue is how many bytes a value has at most.
const MaxValue = 64 << 10

// form begins whatever this package sealed. What follows is the id of the key, and
// the nonce with the sealed bytes in base64.
const form = "lo1."

// ErrForm says that a text is not what [Sealer.Seal] returns.
var ErrForm = errors.New("it is not a sealed value")

// ErrAltered says that a sealed value was changed, or belongs elsewhere: it is the
// row of another owner, or of another name.
var ErrAltered = errors.New("it was changed, or sealed for another owner or name")

// UnknownKeyError says that a value was sealed with a key that is not there.
type UnknownKeyError struct {
	ID string // of the key, as [Key.ID]
}

func (e *UnknownKeyError) Error() string {
	return fmt.Sprintf("it was sealed with the key %q, which is not among the keys given", e.ID)
}

// Label is what a value belongs to. A sealed value opens with the same label only,
// so that a row that was copied to somebody else's is worth nothing to him.
type Label struct {
	Owner string // as user/ID or skill/ID: what the value is of
	Name  string // of the value
}

// bytes is the label and the key id, such that no two give the same.
func (l Label) bytes(key string) []byte {
	var b []byte
	for _, s := range []string{form, key, l.Owner, l.Name} {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	return b
}

// Sealer seals and opens values by AES-256-GCM. It is safe for concurrent use.
type Sealer struct {
	current string // id of the key that seals
	ciphers map[string]cipher.AEAD
}

// New returns a sealer that seals with the first key, and opens what was sealed
// with any. A key seals 2^32 values at most; more than anybody has secrets.
func New(keys ...Key) (*Sealer, error) {
	if len(keys) == 0 {
		return nil, errors.New("there is no key to seal with")
	}
	s := &Sealer{current: keys[0].ID(), ciphers: map[string]cipher.AEAD{}}
	for _, k := range keys {
		c, err := k.cipher()
		if err != nil {
			return nil, fmt.Errorf("key %s: %w", k.ID(), err)
		}
		s.ciphers[k.ID()] = c
	}
	return s, nil
}

func (k Key) cipher() (cipher.AEAD, error) {
	own, err := k.derive("sealing", keySize)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(own)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// KeyID is the id of the key that seals.
func (s *Sealer) KeyID() string { return s.current }

// Seal returns a value as it can be kept anywhere: printable, about 4/3 as long and
// 60 bytes. The same value is never sealed to the same text. It fails for a value
// of more than [MaxValue] bytes and a label without owner or name.
func (s *Sealer) Seal(value []byte, l Label) (string, error) {
	switch {
	case l.Owner == "" || l.Name == "":
		return "", fmt.Errorf("seal a value: its label %q of %q lacks an owner or a name", l.Name, l.Owner)
	case len(value) > MaxValue:
		return "", fmt.Errorf("seal %q of %q: the value has %d bytes, more than %d", l.Name, l.Owner, len(value), MaxValue)
	}
	sealed := s.ciphers[s.current].Seal(nil, nil, value, l.bytes(s.current))
	return form + s.current + "." + base64.RawURLEncoding.EncodeToString(sealed), nil
}

// Open returns the value that was sealed with this label. It fails with [ErrForm],
// [ErrAltered] or an [*UnknownKeyError].
func (s *Sealer) Open(sealed string, l Label) ([]byte, error) {
	value, err := s.open(sealed, l)
	if err != nil {
		return nil, fmt.Errorf("open %q of %q: %w", l.Name, l.Owner, err)
	}
	return value, nil
}

func (s *Sealer) open(sealed string, l Label) ([]byte, error) {
	id, text, ok := split(sealed)
	if !ok {
		return nil, ErrForm
	}
	c := s.ciphers[id]
	if c == nil {
		return nil, &UnknownKeyError{ID: id}
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return nil, ErrForm
	}
	value, err := c.Open(nil, nil, b, l.bytes(id))
	if err != nil {
		return nil, ErrAltered // and no more: the cause is always the same
	}
	return value, nil
}

// Stale reports whether a value was sealed with another key than the one that
// seals now: after a change of keys, it is opened and sealed again.
func (s *Sealer) Stale(sealed string) bool {
	id, _, ok := split(sealed)
	return ok && id != s.current
}

// split takes a sealed value apart without looking into it.
func split(sealed string) (id, text string, ok bool) {
	rest, ok := strings.CutPrefix(sealed, form)
	if !ok || len(rest) > idSize+2*MaxValue || strings.ContainsAny(rest, "\r\n") { // which base64 passes over
		return "", "", false
	}
	id, text, ok = strings.Cut(rest, ".")
	return id, text, ok && len(id) == idSize
}
