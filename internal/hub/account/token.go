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
// characters, and a checksum of 6 characters. The checksum distinguishes typing
// errors from revoked tokens, and lets secret scanners recognize tokens.
const (
	tokenMarker  = "lo_"
	inviteMarker = "li_" // of the links of invitations, which have the same form
	prefixSize   = 8
	secretSize   = 32 // bytes
	secretChars  = 43
	checksumSize = 6
	tokenSize    = len(tokenMarker) + prefixSize + secretChars + checksumSize

	maxTokenName = 100
	// tokenTouchInterval is the minimum interval between recorded uses.
	tokenTouchInterval = time.Minute
)

// Token is a stored API token.
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
	// AddToken stores a token and returns it with its new ID. It returns an error
	// if the prefix is taken.
	AddToken(ctx context.Context, t Token) (Token, error)
	// GetToken returns the token with the given prefix. It fails with [ErrNotFound]
	// if there is none.
	GetToken(ctx context.Context, prefix string) (Token, error)
	// TouchToken records the last use of a token. It ignores a missing token.
	TouchToken(ctx context.Context, id string, at time.Time) error
}

// Tokens creates and finds API tokens. It is safe for concurrent use.
type Tokens struct{ store TokenStore }

// NewTokens returns a manager for the tokens in a store.
func NewTokens(s TokenStore) *Tokens { return &Tokens{s} }

// Create creates a token for a principal and returns its text, which is not stored.
// The token expires after life, or never if life is 0. Create fails if the
// principal lacks any of the scopes, or if the name is empty or has more than 100
// bytes.
func (k *Tokens) Create(ctx context.Context, p Principal, name string, scopes Scopes, life time.Duration) (text string, t Token, err error) {
	switch {
	case p.Anonymous():
		return "", Token{}, &DeniedError{Action: TokenCreate, SignIn: true}
	case scopes == 0 || !scopes.IsSubsetOf(p.Scopes):
		return "", Token{}, fmt.Errorf("create token: scopes %s not permitted: you have %s", scopes, p.Scopes)
	case name == "" || len(name) > maxTokenName:
		return "", Token{}, fmt.Errorf("create token: name must have 1 to %d bytes", maxTokenName)
	case life < 0:
		return "", Token{}, errors.New("create token: negative lifetime")
	}
	text = newToken(tokenMarker)
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

// Find returns the token with the given text and records its use. It fails with
// [ErrInvalidCredentials] if the token is not valid, and with another error if the
// store fails. A malformed token is rejected without consulting the store.
func (k *Tokens) Find(ctx context.Context, text string) (Token, error) {
	prefix, ok := tokenPrefix(tokenMarker, text)
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
	if !hasHash(text, t.Hash) || expired {
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

// BearerToken returns the token in an Authorization header, or "" if there is none.
// Programs that support only names and passwords may send the token as the
// password, with any name; basic is then true. A browser may send such a password
// with a request from a page on another site, so call [OriginGuard.Check] if basic
// is true.
func BearerToken(authorization string) (token string, basic bool) {
	kind, text, _ := strings.Cut(authorization, " ")
	switch text = strings.TrimSpace(text); {
	case strings.EqualFold(kind, "Bearer"):
		return text, false
	case strings.EqualFold(kind, "Basic"):
		both, _ := base64.StdEncoding.DecodeString(text) // invalid base64 contains no colon
		_, token, _ = strings.Cut(string(both), ":")
		return token, true
	}
	return "", false
}

// newToken returns a new token that starts with the given marker.
func newToken(marker string) string {
	b := make([]byte, prefixSize+secretSize)
	_, _ = rand.Read(b) // never fails
	text := marker + base62(b[:prefixSize], prefixSize) + base62(b[prefixSize:], secretChars)
	return text + checksum(text)
}

// tokenPrefix returns the prefix that identifies a token, or false if the token is
// malformed or starts with another marker.
func tokenPrefix(marker, text string) (string, bool) {
	if len(text) != tokenSize || !strings.HasPrefix(text, marker) || checksum(text[:tokenSize-checksumSize]) != text[tokenSize-checksumSize:] {
		return "", false
	}
	return text[:len(marker)+prefixSize], strings.Trim(text[len(marker):], digits62) == ""
}

// hasHash reports whether a token or link has the given hash. Its running time does
// not depend on the hash.
func hasHash(text string, hash []byte) bool {
	return subtle.ConstantTimeCompare(hash, hashToken(text)) == 1
}

func checksum(text string) string {
	sum := crc32.ChecksumIEEE([]byte(text))
	return base62([]byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)}, checksumSize)
}

const digits62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// base62 returns the last size digits of a number in base 62.
func base62(number []byte, size int) string {
	n, base, digit := new(big.Int).SetBytes(number), big.NewInt(62), new(big.Int)
	out := make([]byte, size)
	for i := range out {
		n.DivMod(n, base, digit)
		out[size-1-i] = digits62[digit.Int64()]
	}
	return string(out)
}

// hashToken returns the hash under which a token or cookie is stored. A fast hash
// is sufficient, because the values are random.
func hashToken(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}
