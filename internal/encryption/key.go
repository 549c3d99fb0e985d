package encryption

import (
	"context"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/loadout-dev/loadout/internal/privatefile"
)

const (
	keySize = 32
	idSize  = 12      // length of a key's id in characters
	maxKeys = 16      // maximum number of keys that ParseKeys accepts
	maxFile = 8 << 10 // maximum size of a key file, in bytes
)

// Key is a key of 32 random bytes. It is printed as its id. The zero value is
// not a valid key.
type Key struct{ secret [keySize]byte }

// NewKey returns a new random key.
func NewKey() Key {
	var k Key
	_, _ = rand.Read(k.secret[:]) // never fails
	return k
}

// ID returns 12 hexadecimal digits that identify the key without revealing it.
func (k Key) ID() string {
	b, err := k.derive("id", idSize/2)
	if err != nil {
		return strings.Repeat("0", idSize)
	}
	return hex.EncodeToString(b)
}

// derive returns size bytes derived from the key for the given use. They reveal
// neither the key nor bytes derived for other uses.
func (k Key) derive(use string, size int) ([]byte, error) {
	return hkdf.Key(sha256.New, k.secret[:], nil, "loadout seal "+use, size)
}

// Reveal returns the secret key in the format accepted by [ParseKeys], so that
// it can be stored.
func (k Key) Reveal() string { return base64.StdEncoding.EncodeToString(k.secret[:]) }

func (k Key) String() string               { return "key " + k.ID() }
func (k Key) GoString() string             { return k.String() }
func (k Key) Format(f fmt.State, _ rune)   { fmt.Fprint(f, k.String()) }
func (k Key) LogValue() slog.Value         { return slog.StringValue(k.String()) }
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// ParseKeys parses keys from the text of a file or an environment variable.
// Each key is 32 bytes in base64, in either alphabet. Keys are separated by
// white space or commas, and # starts a comment. ParseKeys returns an error if
// there is no key, if there are more than 16, or if a key is obviously not
// random. Its errors do not quote the text.
func ParseKeys(text string) ([]Key, error) {
	var keys []Key
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		for field := range strings.FieldsFuncSeq(line, func(r rune) bool { return r == ',' || r <= ' ' }) {
			if len(keys) == maxKeys {
				return nil, fmt.Errorf("too many keys (limit %d)", maxKeys)
			}
			k, err := parseKey(field)
			if err != nil {
				return nil, fmt.Errorf("parse key %d: %w", len(keys)+1, err)
			}
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("no key found; generate one with: openssl rand -base64 32")
	}
	return keys, nil
}

func parseKey(field string) (Key, error) {
	field = strings.TrimRight(strings.NewReplacer("-", "+", "_", "/").Replace(field), "=")
	b, err := base64.RawStdEncoding.DecodeString(field)
	if err != nil || len(b) != keySize {
		return Key{}, fmt.Errorf("want %d bytes in base64; generate one with: openssl rand -base64 32", keySize)
	}
	seen := map[byte]bool{}
	for _, c := range b {
		seen[c] = true
	}
	if len(seen) < keySize/2 { // a random key fails this with a probability below 2^-60
		return Key{}, errors.New("key is not random; generate one with: openssl rand -base64 32")
	}
	return Key{[keySize]byte(b)}, nil
}

// LoadKeys reads keys from a file in the format accepted by [ParseKeys]. It
// fails with [fs.ErrNotExist] if the file does not exist, and with a
// [*privatefile.UnsafeError] if another user owns the file or may read or write
// it.
func LoadKeys(path string) ([]Key, error) {
	data, err := privatefile.New(path, maxFile).Read()
	if err != nil {
		return nil, fmt.Errorf("read keys in %s: %w", path, err)
	}
	keys, err := ParseKeys(string(data))
	if err != nil {
		return nil, fmt.Errorf("read keys in %s: %w", path, err)
	}
	return keys, nil
}

// LoadMountedKeys is like [LoadKeys] for a file managed by another system, for
// example a secret mounted into a container. It does not check the owner or
// mode, and follows symbolic links.
func LoadMountedKeys(path string) ([]Key, error) {
	keys, err := readMountedKeys(path)
	if err != nil {
		return nil, fmt.Errorf("read keys in %s: %w", path, err)
	}
	return keys, nil
}

func readMountedKeys(path string) ([]Key, error) {
	// Opening a pipe could block.
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
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
		return nil, fmt.Errorf("key file too large (limit %d bytes)", maxFile)
	}
	return ParseKeys(string(data))
}

// errFileExists is returned if a key file to create already exists.
var errFileExists = errors.New("key file already exists")

// LoadOrCreateKeys is like [LoadKeys], but creates a missing file with a new
// key and mode 0600, synced to disk. Concurrent processes all get the same key.
// Do not call it if encrypted values already exist: a new key cannot decrypt
// them.
func LoadOrCreateKeys(ctx context.Context, path string) ([]Key, error) {
	err := privatefile.New(path, maxFile).Change(ctx, func(old []byte) ([]byte, error) {
		if old != nil {
			return nil, errFileExists
		}
		return []byte(fileHeader + NewKey().Reveal() + "\n"), nil
	})
	if err != nil && !errors.Is(err, errFileExists) {
		return nil, fmt.Errorf("create key in %s: %w", path, err)
	}
	return LoadKeys(path)
}

const fileHeader = "# Keys of loadout serve: the first encrypts secrets, all decrypt them. Without them secrets are lost: keep a copy.\n"
