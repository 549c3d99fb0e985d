package seal

import (
	"bytes"
	"context"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	"github.com/loadout-dev/loadout/policy"
)

const (
	keySize = 32
	idSize  = 12      // characters
	maxKeys = 16      // in one text
	maxFile = 8 << 10 // bytes of a file of keys
)

// Key is 32 random bytes. It prints as its id. The zero value is no key.
type Key struct{ secret [keySize]byte }

// NewKey returns a new key.
func NewKey() Key {
	var k Key
	_, _ = rand.Read(k.secret[:]) // which never fails
	return k
}

// ID names the key without telling of it: 12 hexadecimal digits.
func (k Key) ID() string {
	b, err := k.derive("id", idSize/2)
	if err != nil {
		return strings.Repeat("0", idSize)
	}
	return hex.EncodeToString(b)
}

// derive makes bytes of the key for one use, which tell nothing of the key or of
// what it gives for another use.
func (k Key) derive(use string, size int) ([]byte, error) {
	return hkdf.Key(sha256.New, k.secret[:], nil, "loadout seal "+use, size)
}

// Reveal returns the key as [ParseKeys] reads it, for the place where it is kept.
func (k Key) Reveal() string { return base64.StdEncoding.EncodeToString(k.secret[:]) }

func (k Key) String() string               { return "key " + k.ID() }
func (k Key) GoString() string             { return k.String() }
func (k Key) Format(f fmt.State, _ rune)   { fmt.Fprint(f, k.String()) }
func (k Key) LogValue() slog.Value         { return slog.StringValue(k.String()) }
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// ParseKeys reads keys from a text, of a file or of the environment: 32 bytes of
// base64 each, in either alphabet, between them white space or commas. Of a line,
// what follows a # is not read. It fails where there is no key, more than 16, or
// one that is not random. Errors repeat nothing of the text.
func ParseKeys(text string) ([]Key, error) {
	var keys []Key
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		for field := range strings.FieldsFuncSeq(line, func(r rune) bool { return r == ',' || r <= ' ' }) {
			if len(keys) == maxKeys {
				return nil, fmt.Errorf("there are more than %d keys", maxKeys)
			}
			k, err := parseKey(field)
			if err != nil {
				return nil, fmt.Errorf("key %d: %w", len(keys)+1, err)
			}
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("there is no key; make one with: openssl rand -base64 32")
	}
	return keys, nil
}

func parseKey(field string) (Key, error) {
	field = strings.TrimRight(strings.NewReplacer("-", "+", "_", "/").Replace(field), "=")
	b, err := base64.RawStdEncoding.DecodeString(field)
	if err != nil || len(b) != keySize {
		return Key{}, fmt.Errorf("it is not %d bytes in base64; make one with: openssl rand -base64 32", keySize)
	}
	seen := map[byte]bool{}
	for _, c := range b {
		seen[c] = true
	}
	if len(seen) < keySize/2 { // of random ones, less than one in 2^60
		return Key{}, errors.New("it is not random; make one with: openssl rand -base64 32")
	}
	return Key{[keySize]byte(b)}, nil
}

// LoadKeys reads keys from the file at path, as [ParseKeys]. The error is
// [fs.ErrNotExist] where there is none, and a [*policy.UnsafeError] where others
// than its owner, who is the one who runs this program, may read or write it.
func LoadKeys(path string) ([]Key, error) {
	data, err := policy.NewOwnFile(path, maxFile).Read()
	if err != nil {
		return nil, fmt.Errorf("read the keys in %s: %w", path, err)
	}
	keys, err := ParseKeys(string(data))
	if err != nil {
		return nil, fmt.Errorf("read the keys in %s: %w", path, err)
	}
	return keys, nil
}

// MountedKeys is [LoadKeys] for a file that somebody else manages, as a secret that
// a container is given: its owner and mode are not looked at, and it may be a link.
func MountedKeys(path string) ([]Key, error) {
	keys, err := mounted(path)
	if err != nil {
		return nil, fmt.Errorf("read the keys in %s: %w", path, err)
	}
	return keys, nil
}

func mounted(path string) ([]Key, error) {
	// Opening a pipe could wait for ever.
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, errors.New("it is no file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("it has more than %d bytes", maxFile)
	}
	return ParseKeys(string(data))
}

// errThere ends a change that is none.
var errThere = errors.New("there is one")

// MakeKeys is [LoadKeys] that makes the file with one new key where there is none,
// of mode 0600 and on disk before it returns. Of several processes that do so at
// once, all get the same key. Who has sealed values already must not call it, but
// LoadKeys: a new key does not open them.
func MakeKeys(ctx context.Context, path string) ([]Key, error) {
	err := policy.NewOwnFile(path, maxFile).Change(ctx, func(old []byte) ([]byte, error) {
		if old != nil {
			return nil, errThere
		}
		return []byte(header + NewKey().Reveal() + "\n"), nil
	})
	if err != nil && !errors.Is(err, errThere) {
		return nil, fmt.Errorf("make a key in %s: %w", path, err)
	}
	return LoadKeys(path)
}

const header = "# Keys of loadout serve: the first seals secrets, all open them. Without them secrets are lost: keep a copy.\n"

// AddKey puts a new key before those in the file at path, which from then on open
// only. It fails where there is no file.
func AddKey(ctx context.Context, path string) (Key, error) {
	k := NewKey()
	err := policy.NewOwnFile(path, maxFile).Change(ctx, func(old []byte) ([]byte, error) {
		if old == nil {
			return nil, fs.ErrNotExist
		}
		if keys, err := ParseKeys(string(old)); err != nil {
			return nil, err
		} else if len(keys) == maxKeys {
			return nil, fmt.Errorf("there are %d keys already; remove those that seal nothing any more", maxKeys)
		}
		old = bytes.TrimPrefix(old, []byte(header))
		return append([]byte(header+k.Reveal()+"\n"), old...), nil
	})
	if err != nil {
		return Key{}, fmt.Errorf("add a key to %s: %w", path, err)
	}
	return k, nil
}
