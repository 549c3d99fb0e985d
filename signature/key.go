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

// Bounds on names of keys and skills, and on keys, in bytes.
const (
	maxName = 256
	maxKey  = 1024
)

var (
	errNoPrivate = errors.New("this is no private key as GenerateKey makes them")
	errNoPublic  = errors.New("this is no public key as GenerateKey makes them")
)

// GenerateKey makes a pair of keys, each a text of one line. name says whose they
// are, as "example.com/tools": 1 to 256 bytes of printable characters without
// blanks and without "+". It is part of the key.
func GenerateKey(name string) (private, public string, err error) {
	if !keyName(name) {
		return "", "", fmt.Errorf("make a key: the name %.100q is empty, too long, or has blanks, + or characters that do not show", name)
	}
	private, public, err = note.GenerateKey(rand.Reader, name)
	if err != nil {
		return "", "", fmt.Errorf("make a key: %w", err)
	}
	return private, public, nil
}

func keyName(s string) bool {
	return oneLine(s) && len(s) <= maxName && !strings.Contains(s, "+") &&
		!strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) })
}

// Public returns the public key that belongs to a private one.
func Public(private string) (string, error) {
	if len(private) > maxKey {
		return "", errNoPrivate
	}
	signer, err := note.NewSigner(private)
	if err != nil || !keyName(signer.Name()) {
		return "", errNoPrivate // what note says may hold the key
	}
	// PRIVATE+KEY+NAME+HASH+BASE64, of which the last may have a + of its own.
	parts := strings.SplitN(private, "+", 5)
	seed, err := base64.StdEncoding.DecodeString(parts[len(parts)-1])
	if err != nil || len(seed) != 1+ed25519.SeedSize {
		return "", errNoPrivate
	}
	public := ed25519.NewKeyFromSeed(seed[1:])[ed25519.SeedSize:]
	return note.NewEd25519VerifierKey(signer.Name(), ed25519.PublicKey(public))
}

// verifier reads a public key, which has one form alone.
func verifier(public string) (note.Verifier, error) {
	raw, ok := publicBytes(public)
	if !ok {
		return nil, errNoPublic
	}
	v, err := note.NewVerifier(public)
	if err != nil || !keyName(v.Name()) {
		return nil, errNoPublic
	}
	if again, err := note.NewEd25519VerifierKey(v.Name(), raw); err != nil || again != public {
		return nil, errNoPublic
	}
	return v, nil
}

// publicBytes are those of the Ed25519 key in a public key.
func publicBytes(public string) (ed25519.PublicKey, bool) {
	if len(public) > maxKey {
		return nil, false
	}
	parts := strings.SplitN(public, "+", 3) // the base64 may have a + of its own
	raw, err := base64.StdEncoding.DecodeString(parts[len(parts)-1])
	if err != nil || len(raw) != 1+ed25519.PublicKeySize {
		return nil, false
	}
	return raw[1:], true
}

// KeyName returns the name in a public key, "" where it is none.
func KeyName(public string) string {
	v, err := verifier(public)
	if err != nil {
		return ""
	}
	return v.Name()
}

// Fingerprint is a short form of a public key and its name, by which two people
// can tell whether they have the same: eight groups of four hex digits, the
// first half of a SHA-256. It is "no key" where public is none.
func Fingerprint(public string) string {
	if _, err := verifier(public); err != nil {
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

// ExposedError says that a private key was not read, because others can read it.
type ExposedError struct {
	Path string
	Mode os.FileMode
}

// Error says what to do about it.
func (e *ExposedError) Error() string {
	return fmt.Sprintf("others can read the private key in %q (mode %04o): make it yours alone with `chmod 600`, and where others may have read it, make another key", e.Path, e.Mode)
}

// WritePrivateKey writes a private key into a new file at path, which only this
// user can read. It fails where there is a file already, with [os.ErrExist].
// The key is on disk when it returns; after an error there is no file of it.
func WritePrivateKey(path, private string) error {
	if _, err := Public(private); err != nil {
		return fmt.Errorf("write the private key: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write the private key: %w", err)
	}
	_, err = io.WriteString(f, private+"\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write the private key: %w", errors.Join(err, os.Remove(path)))
	}
	return nil
}

// ReadPrivateKey reads a file of WritePrivateKey. On systems with modes of files,
// one that others can read is an [*ExposedError].
func ReadPrivateKey(path string) (string, error) {
	// A pipe would wait for somebody to write.
	if info, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("read the private key: %w", err)
	} else if !info.Mode().IsRegular() {
		return "", fmt.Errorf("read the private key: %q is no file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read the private key: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", fmt.Errorf("read the private key: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" {
		return "", &ExposedError{Path: path, Mode: mode}
	}
	data, err := io.ReadAll(io.LimitReader(f, maxKey+2)) // a key, its line end, and one byte too many
	if err != nil {
		return "", fmt.Errorf("read the private key: %w", err)
	}
	if len(data) > maxKey+1 {
		return "", fmt.Errorf("read the private key: %q: %w", path, errNoPrivate)
	}
	private := strings.TrimSpace(string(data))
	if _, err := Public(private); err != nil {
		return "", fmt.Errorf("read the private key: %q: %w", path, err)
	}
	return private, nil
}
