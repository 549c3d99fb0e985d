package signature

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/mod/sumdb/note"
)

// Maximum lengths of names and keys in bytes.
const (
	maxName = 256
	maxKey  = 1024

	maxKeyFile = 128 << 10
)

var (
	errInvalidPrivateKey = errors.New("invalid private key, want one created by GenerateKey")
	errInvalidPublicKey  = errors.New("invalid public key, want one created by GenerateKey")
)

// GenerateKey returns a new key pair. Each key is a single line. name
// identifies the owner, for example "example.com/tools", and is part of the
// keys. It must have 1 to 256 bytes of printable characters other than space
// and "+".
func GenerateKey(name string) (private, public string, err error) {
	if !isKeyName(name) {
		return "", "", fmt.Errorf("create key: invalid name %.100q, want 1 to 256 bytes without spaces, + or invisible characters", name)
	}
	private, public, err = note.GenerateKey(rand.Reader, name)
	if err != nil {
		return "", "", fmt.Errorf("create key: %w", err)
	}
	return private, public, nil
}

func isKeyName(s string) bool {
	return isOneLine(s) && len(s) <= maxName && !strings.Contains(s, "+") &&
		!strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) })
}

// PublicKey returns the public key of a private key.
func PublicKey(private string) (string, error) {
	if len(private) > maxKey {
		return "", errInvalidPrivateKey
	}
	signer, err := note.NewSigner(private)
	if err != nil || !isKeyName(signer.Name()) {
		return "", errInvalidPrivateKey // an error of package note could contain the key
	}
	// The format is PRIVATE+KEY+NAME+HASH+BASE64. The last part may contain a
	// "+".
	parts := strings.SplitN(private, "+", 5)
	seed, err := base64.StdEncoding.DecodeString(parts[len(parts)-1])
	if err != nil || len(seed) != 1+ed25519.SeedSize {
		return "", errInvalidPrivateKey
	}
	public := ed25519.NewKeyFromSeed(seed[1:])[ed25519.SeedSize:]
	return note.NewEd25519VerifierKey(signer.Name(), ed25519.PublicKey(public))
}

// newVerifier parses a public key. It accepts only the canonical form of a key.
func newVerifier(public string) (note.Verifier, error) {
	raw, ok := publicBytes(public)
	if !ok {
		return nil, errInvalidPublicKey
	}
	v, err := note.NewVerifier(public)
	if err != nil || !isKeyName(v.Name()) {
		return nil, errInvalidPublicKey
	}
	if again, err := note.NewEd25519VerifierKey(v.Name(), raw); err != nil || again != public {
		return nil, errInvalidPublicKey
	}
	return v, nil
}

func publicBytes(public string) (ed25519.PublicKey, bool) {
	if len(public) > maxKey {
		return nil, false
	}
	parts := strings.SplitN(public, "+", 3) // the base64 may contain a +
	raw, err := base64.StdEncoding.DecodeString(parts[len(parts)-1])
	if err != nil || len(raw) != 1+ed25519.PublicKeySize {
		return nil, false
	}
	return raw[1:], true
}

// KeyName returns the name in a public key, or "" if the key is invalid.
func KeyName(public string) string {
	v, err := newVerifier(public)
	if err != nil {
		return ""
	}
	return v.Name()
}

// Fingerprint returns a short form of a public key and its name, for visual
// comparison. It has eight groups of four hex digits, the first half of a
// SHA-256. If the key is invalid, it returns "no key".
func Fingerprint(public string) string {
	if _, err := newVerifier(public); err != nil {
		return "no key"
	}
	sum := sha256.Sum256([]byte(public))
	digits := hex.EncodeToString(sum[:16])
	var groups []string
	for group := range slices.Chunk([]byte(digits), 4) {
		groups = append(groups, string(group))
	}
	return strings.Join(groups, "-")
}

// ExposedError is returned if a private key can be read by other users.
type ExposedError struct {
	Path string
	Mode os.FileMode
}

// Error describes the problem and the command that fixes it.
func (e *ExposedError) Error() string {
	return fmt.Sprintf("other users can read the private key in %q (mode %04o): run `chmod 600` on it, and create a new key if they may have read it", e.Path, e.Mode)
}

// WritePrivateKey writes a private key to a new file at path that only the
// current user can read, and syncs it. If the file exists, the error wraps
// [os.ErrExist]. A failed write leaves no new file.
func WritePrivateKey(path string, k PrivateKey) error {
	text, err := k.encode()
	if err != nil {
		return fmt.Errorf("write private key: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write private key: %w", err)
	}
	_, err = io.WriteString(f, text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write private key: %w", errors.Join(err, os.Remove(path)))
	}
	return nil
}

// encode returns the content of a key file: the key, and a line for each
// statement about it. Earlier versions of this program reject a file with
// statements.
func (k PrivateKey) encode() (string, error) {
	public, err := PublicKey(k.Private)
	if err != nil {
		return "", err
	}
	if err := checkRotations(k.Rotations, public, k.Expires); err != nil {
		return "", err
	}
	text := k.Private + "\n"
	if !k.Expires.IsZero() {
		text += expiresPrefix + k.Expires.Format(timeFormat) + "\n"
	}
	for _, r := range k.Rotations {
		text += rotationPrefix + r.line() + "\n"
	}
	return text, nil
}

// parsePrivateKey parses the content of a key file.
func parsePrivateKey(text string) (PrivateKey, error) {
	lines := lineReader{lines: strings.Split(strings.TrimSpace(text), "\n")}
	k := PrivateKey{Private: strings.TrimSpace(lines.next(""))}
	public, err := PublicKey(k.Private)
	if err != nil {
		return PrivateKey{}, err
	}
	if lines.startsWith(expiresPrefix) {
		k.Expires = lines.nextTime(expiresPrefix)
	}
	for lines.startsWith(rotationPrefix) && len(k.Rotations) <= MaxRotations {
		k.Rotations = append(k.Rotations, lines.nextRotation())
	}
	if lines.err != nil || lines.more() || checkRotations(k.Rotations, public, k.Expires) != nil {
		return PrivateKey{}, errInvalidPrivateKey
	}
	return k, nil
}

// ReadPrivateKey reads a file written by WritePrivateKey. If other users can
// read the file, the error is an [*ExposedError].
func ReadPrivateKey(path string) (PrivateKey, error) {
	// Opening a pipe would block.
	if info, err := os.Stat(path); err != nil {
		return PrivateKey{}, fmt.Errorf("read private key: %w", err)
	} else if !info.Mode().IsRegular() {
		return PrivateKey{}, fmt.Errorf("read private key: not a regular file: %q", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return PrivateKey{}, fmt.Errorf("read private key: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return PrivateKey{}, fmt.Errorf("read private key: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" {
		return PrivateKey{}, &ExposedError{Path: path, Mode: mode}
	}
	data, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1)) // one byte to detect longer files
	if err != nil {
		return PrivateKey{}, fmt.Errorf("read private key: %w", err)
	}
	if len(data) > maxKeyFile {
		return PrivateKey{}, fmt.Errorf("read private key %q: %w", path, errInvalidPrivateKey)
	}
	k, err := parsePrivateKey(string(data))
	if err != nil {
		return PrivateKey{}, fmt.Errorf("read private key %q: %w", path, err)
	}
	return k, nil
}
