package account

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/crc32"
	"math/big"
	"strings"
	"time"
)

// A token consists of "lo_", 8 public characters that identify it, 43 secret
// ones, and a checksum of 6 over all before. The checksum tells typing errors
// from revoked tokens, and secret scanners can recognize tokens.
const (
	tokenMarker  = "lo_"
	prefixSize   = 8
	secretSize   = 32 // bytes
	secretChars  = 43
	checksumSize = 6
	tokenSize    = len(tokenMarker) + prefixSize + secretChars + checksumSize

	maxTokenName = 100
	// tokenTouchInterval is the minimum time between recorded uses.
	tokenTouchInterval = time.Minute
)

// Token is the stored part of an API token.
type Token struct {
	ID       string // assigned by the store
	Prefix   string // "lo_" and 8 characters, unique; not secret
	Hash     []byte // SHA-256 of the whole token
	User     UserID
	Name     string // chosen by its user
	Scopes   Scopes
	Created  time.Time
	Expires  time.Time // zero for never
	LastUsed time.Time // accurate to about a minute; zero if never used
}

// TokenStore stores tokens.
type TokenStore interface {
	// AddToken stores a token and returns it with its new ID. It fails if the
	// prefix is taken.
	AddToken(ctx context.Context, t Token) (Token, error)
	// GetToken returns the token with a prefix. It fails with [ErrNotFound] if
	// there is none.
	GetToken(ctx context.Context, prefix string) (Token, error)
	// TouchToken records the last use of a token. It ignores a missing token.
	TouchToken(ctx context.Context, id string, at time.Time) error
}

// Tokens creates and finds API tokens. It is safe for concurrent use.
type Tokens struct{ store TokenStore }

// NewTokens returns the tokens of a store.
func NewTokens(s TokenStore) *Tokens { return &Tokens{s} }

// Create creates a token of a principal. It expires after life, or never if
// life is 0. The returned text is not stored. Create fails for scopes that the
// principal does not have, and for a name that is empty or has more than 100
// bytes.
func (k *Tokens) Create(ctx context.Context, p Principal, name string, scopes Scopes, life time.Duration) (text string, t Token, err error) {
	switch {
	case p.Anonymous():
		return "", Token{}, &DeniedError{Action: TokenCreate, SignIn: true}
	case scopes == 0 || !scopes.Within(p.Scopes):
		return "", Token{}, fmt.Errorf("create token: scopes (%s) exceed your own (%s)", scopes, p.Scopes)
	case name == "" || len(name) > maxTokenName:
		return "", Token{}, fmt.Errorf("create token: name must have 1 to %d bytes", maxTokenName)
	case life < 0:
		return "", Token{}, errors.New("create token: negative lifetime")
	}
	text = newToken()
	now := time.Now().UTC().Truncate(time.Millisecond)
	t = Token{Prefix: text[:len(tokenMarker)+prefixSize], Hash: hashToken(text), User: p.User, Name: name, Scopes: scopes, Created: now}
	if life > 0 {
		t.Expires = now.Add(life)
	}
	if t, err = k.store.AddToken(ctx, t); err != nil {
		return "", Token{}, fmt.Errorf("create token: %w", err)
	}
	return text, t, nil
}

// Find returns the token of a text and records its use. It fails with
// [ErrInvalidCredentials] if the token is not valid, for malformed ones without
// asking the store, and with another error if the store failed.
func (k *Tokens) Find(ctx context.Context, text string) (Token, error) {
	prefix, ok := tokenPrefix(text)
	if !ok {
		return Token{}, ErrInvalidCredentials
	}
	t, err := k.store.GetToken(ctx, prefix)
	if errors.Is(err, ErrNotFound) {
		return Token{}, ErrInvalidCredentials
	}
	if err != nil {
		return Token{}, fmt.Errorf("find token: %w", err)
	}
	now := time.Now()
	expired := !t.Expires.IsZero() && !now.Before(t.Expires)
	if subtle.ConstantTimeCompare(t.Hash, hashToken(text)) != 1 || expired {
		return Token{}, ErrInvalidCredentials
	}
	if since := now.Sub(t.LastUsed); since >= tokenTouchInterval || since < 0 { // the clock may have been set back
		if err := k.store.TouchToken(ctx, t.ID, now); err != nil {
			return Token{}, fmt.Errorf("record use of token: %w", err)
		}
		t.LastUsed = now
	}
	return t, nil
}

// Bearer returns the token of an Authorization header, "" if there is none.
// Programs that only know names and passwords send it as the password of any
// name. A browser may do so by itself for a page of another site, so call
// [OriginGuard.Check] if basic is true.
func Bearer(authorization string) (token string, basic bool) {
	kind, text, _ := strings.Cut(authorization, " ")
	switch text = strings.TrimSpace(text); {
	case strings.EqualFold(kind, "Bearer"):
		return text, false
	case strings.EqualFold(kind, "Basic"):
		both, _ := base64.StdEncoding.DecodeString(text) // invalid base64 yields no colon
		_, token, _ = strings.Cut(string(both), ":")
		return token, true
	}
	return "", false
}

func newToken() string {
	b := make([]byte, prefixSize+secretSize)
	_, _ = rand.Read(b) // never fails
	text := tokenMarker + base62(b[:prefixSize], prefixSize) + base62(b[prefixSize:], secretChars)
	return text + checksum(text)
}

// tokenPrefix returns the identifying prefix of a token. It reports false for
// malformed tokens.
func tokenPrefix(text string) (string, bool) {
	if len(text) != tokenSize || !strings.HasPrefix(text, tokenMarker) || checksum(text[:tokenSize-checksumSize]) != text[tokenSize-checksumSize:] {
		return "", false
	}
	return text[:len(tokenMarker)+prefixSize], strings.Trim(text[len(tokenMarker):], digits62) == ""
}

func checksum(text string) string {
	sum := crc32.ChecksumIEEE([]byte(text))
	return base62([]byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)}, checksumSize)
}

const digits62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// base62 encodes a number in exactly size digits and drops excess ones.
func base62(number []byte, size int) string {
	n, base, digit := new(big.Int).SetBytes(number), big.NewInt(62), new(big.Int)
	out := make([]byte, size)
	for i := range out {
		n.DivMod(n, base, digit)
		out[size-1-i] = digits62[digit.Int64()]
	}
	return string(out)
}

// hashToken returns the stored hash of a token or cookie. Random values need no
// slow hash.
func hashToken(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}
