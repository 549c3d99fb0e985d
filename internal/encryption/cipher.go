// Package encryption encrypts values that must stay secret even from readers of
// the database or a backup. The key is stored elsewhere. Start reading at
// [Cipher], and at [LoadOrCreateKeys] for the key file.
//
// The package neither logs nor stores anything except the key file, and its
// errors contain neither values nor keys. It does not decide who may read a
// value.
package encryption

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// MaxValue is the maximum size of a plaintext value, in bytes.
const MaxValue = 64 << 10

// formatPrefix is the prefix of each encrypted value. It is followed by the key
// id, and by the nonce and ciphertext in base64.
const formatPrefix = "lo1."

// ErrFormat is returned for a string that is not in the format produced by
// [Cipher.Encrypt].
var ErrFormat = errors.New("not an encrypted value")

// ErrAltered is returned if an encrypted value was modified, or was encrypted
// for another label.
var ErrAltered = errors.New("value was altered or encrypted for another owner or name")

// UnknownKeyError reports that a value was encrypted with a key that the cipher
// does not have.
type UnknownKeyError struct {
	ID string // see [Key.ID]
}

func (e *UnknownKeyError) Error() string {
	return fmt.Sprintf("encrypted with unknown key %q", e.ID)
}

// Label identifies a value by its owner and name. An encrypted value can only
// be decrypted with the same label, so copying a database row to another owner
// is useless.
type Label struct {
	Owner string // for example user/ID or skill/ID
	Name  string // name of the value
}

// associatedData returns an unambiguous encoding of the label and the key id,
// which the cipher authenticates.
func (l Label) associatedData(key string) []byte {
	var b []byte
	for _, s := range []string{formatPrefix, key, l.Owner, l.Name} {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	return b
}

// Cipher encrypts and decrypts values with AES-256-GCM. It is safe for
// concurrent use.
type Cipher struct {
	current string // id of the encryption key
	ciphers map[string]cipher.AEAD
}

// New returns a cipher that encrypts with the first key and decrypts with any
// of them. A key must not encrypt more than 2^32 values.
func New(keys ...Key) (*Cipher, error) {
	if len(keys) == 0 {
		return nil, errors.New("no encryption key")
	}
	s := &Cipher{current: keys[0].ID(), ciphers: map[string]cipher.AEAD{}}
	for _, k := range keys {
		c, err := k.newAEAD()
		if err != nil {
			return nil, fmt.Errorf("create cipher for key %s: %w", k.ID(), err)
		}
		s.ciphers[k.ID()] = c
	}
	return s, nil
}

func (k Key) newAEAD() (cipher.AEAD, error) {
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

// KeyID returns the id of the key used for encryption.
func (s *Cipher) KeyID() string { return s.current }

// Encrypt encrypts a value and returns printable text, about 60 bytes longer
// than the value in base64. Each call returns a different text. Encrypt returns
// an error if the value has more than [MaxValue] bytes, or if the label lacks
// an owner or a name.
func (s *Cipher) Encrypt(value []byte, l Label) (string, error) {
	switch {
	case l.Owner == "" || l.Name == "":
		return "", fmt.Errorf("encrypt: want a label with owner and name, got owner %q and name %q", l.Owner, l.Name)
	case len(value) > MaxValue:
		return "", fmt.Errorf("encrypt %q of %q: value too large (%d bytes, limit %d)", l.Name, l.Owner, len(value), MaxValue)
	}
	encrypted := s.ciphers[s.current].Seal(nil, nil, value, l.associatedData(s.current))
	return formatPrefix + s.current + "." + base64.RawURLEncoding.EncodeToString(encrypted), nil
}

// Decrypt returns the value that was encrypted with the given label. It fails
// with [ErrFormat], [ErrAltered] or an [*UnknownKeyError].
func (s *Cipher) Decrypt(encrypted string, l Label) ([]byte, error) {
	value, err := s.decrypt(encrypted, l)
	if err != nil {
		return nil, fmt.Errorf("decrypt %q of %q: %w", l.Name, l.Owner, err)
	}
	return value, nil
}

func (s *Cipher) decrypt(encrypted string, l Label) ([]byte, error) {
	id, text, ok := splitEncrypted(encrypted)
	if !ok {
		return nil, ErrFormat
	}
	c := s.ciphers[id]
	if c == nil {
		return nil, &UnknownKeyError{ID: id}
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return nil, ErrFormat
	}
	value, err := c.Open(nil, nil, b, l.associatedData(id))
	if err != nil {
		return nil, ErrAltered // omit the cause, which is always the same
	}
	return value, nil
}

// Stale reports whether a value was encrypted with a key other than the current
// one. Such values should be encrypted again.
func (s *Cipher) Stale(encrypted string) bool {
	id, _, ok := splitEncrypted(encrypted)
	return ok && id != s.current
}

// splitEncrypted splits an encrypted value into its key id and base64 text.
func splitEncrypted(encrypted string) (id, text string, ok bool) {
	rest, ok := strings.CutPrefix(encrypted, formatPrefix)
	if !ok || len(rest) > idSize+2*MaxValue || strings.ContainsAny(rest, "\r\n") { // base64 decoding ignores line breaks
		return "", "", false
	}
	id, text, ok = strings.Cut(rest, ".")
	return id, text, ok && len(id) == idSize
}
