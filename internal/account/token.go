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

// A token is "lo_", 8 characters by which it is found and shown, 43 that are secret,
// and 6 of a checksum over all before: a mistyped one is told from a wrong one, and a
// scanner of repositories knows one when it sees it.
const (
	tokenForm    = "lo_"
	prefixSize   = 8
	secretSize   = 32 // bytes
	secretChars  = 43
	checksumSize = 6
	tokenSize    = len(tokenForm) + prefixSize + secretChars + checksumSize

	maxTokenName = 100
	// usedEvery is how often at most the time of a use is written down.
	usedEvery = time.Minute
)

// Token is what is kept of an API token: no more than to know it again.
type Token struct {
	ID      string // that the store gives it
	Prefix  string // "lo_" and 8 characters, unique; may be shown
	Hash    []byte // SHA-256 of the whole token
	User    UserID
	Name    string // that its user gave it
	Scopes  Scopes
	Made    time.Time
	Expires time.Time // zero is never
	Used    time.Time // last, to about a minute; zero is never
}

// TokenStore keeps tokens.
type TokenStore interface {
	// AddToken keeps a token, and returns it with the ID that it gave it. It fails
	// where there is one with its prefix.
	AddToken(ctx context.Context, t Token) (Token, error)
	// Token returns the token with a prefix. It fails with [ErrUnknown] where there
	// is none.
	Token(ctx context.Context, prefix string) (Token, error)
	// TokenUsed notes when a token was used last. One that is gone is passed over.
	TokenUsed(ctx context.Context, id string, at time.Time) error
}

// Tokens makes API tokens, and finds them again. It is safe for concurrent use.
type Tokens struct{ store TokenStore }

// NewTokens returns the tokens of a store.
func NewTokens(s TokenStore) *Tokens { return &Tokens{s} }

// Make makes a token of a principal for some scopes, that ends after some time, or
// never where that is zero. The text is told to its user this once. It fails for
// scopes that the principal does not have himself, and for a name that is empty or
// has more than 100 bytes.
func (k *Tokens) Make(ctx context.Context, p Principal, name string, scopes Scopes, life time.Duration) (text string, t Token, err error) {
	switch {
	case p.Anonymous():
		return "", Token{}, &DeniedError{Action: TokenMake, SignIn: true}
	case scopes == 0 || !scopes.Within(p.Scopes):
		return "", Token{}, fmt.Errorf("make a token: its scopes (%s) have to be some of your own (%s)", scopes, p.Scopes)
	case name == "" || len(name) > maxTokenName:
		return "", Token{}, fmt.Errorf("make a token: its name has to have 1 to %d bytes", maxTokenName)
	case life < 0:
		return "", Token{}, errors.New("make a token: it would have ended already")
	}
	text = newToken()
	now := time.Now().UTC().Truncate(time.Millisecond)
	t = Token{Prefix: text[:len(tokenForm)+prefixSize], Hash: hashed(text), User: p.User, Name: name, Scopes: scopes, Made: now}
	if life > 0 {
		t.Expires = now.Add(life)
	}
	if t, err = k.store.AddToken(ctx, t); err != nil {
		return "", Token{}, fmt.Errorf("make a token: %w", err)
	}
	return text, t, nil
}

// Find returns the token that a text is, and notes that it was used. It fails with
// [ErrRefused] where it is good for nothing, without asking the store where that is
// plain, and with another error where that cannot be known.
func (k *Tokens) Find(ctx context.Context, text string) (Token, error) {
	prefix, ok := tokenPrefix(text)
	if !ok {
		return Token{}, ErrRefused
	}
	t, err := k.store.Token(ctx, prefix)
	if errors.Is(err, ErrUnknown) {
		return Token{}, ErrRefused
	}
	if err != nil {
		return Token{}, fmt.Errorf("find a token: %w", err)
	}
	now := time.Now()
	expired := !t.Expires.IsZero() && !now.Before(t.Expires)
	if subtle.ConstantTimeCompare(t.Hash, hashed(text)) != 1 || expired {
		return Token{}, ErrRefused
	}
	if since := now.Sub(t.Used); since >= usedEvery || since < 0 { // a clock may have gone back
		if err := k.store.TokenUsed(ctx, t.ID, now); err != nil {
			return Token{}, fmt.Errorf("note the use of a token: %w", err)
		}
		t.Used = now
	}
	return t, nil
}

// Bearer is the token in the value of an Authorization header, "" where it has none.
// Programs that know names and passwords only, as those that get archives, send it as
// the password of any name; a browser may do so by itself, for a page of another site,
// so that [Pages.Check] has to be asked where basic is true.
func Bearer(authorization string) (token string, basic bool) {
	kind, text, _ := strings.Cut(authorization, " ")
	switch text = strings.TrimSpace(text); {
	case strings.EqualFold(kind, "Bearer"):
		return text, false
	case strings.EqualFold(kind, "Basic"):
		both, _ := base64.StdEncoding.DecodeString(text) // what is none has no colon
		_, token, _ = strings.Cut(string(both), ":")
		return token, true
	}
	return "", false
}

func newToken() string {
	b := make([]byte, prefixSize+secretSize)
	_, _ = rand.Read(b) // which never fails
	text := tokenForm + base62(b[:prefixSize], prefixSize) + base62(b[prefixSize:], secretChars)
	return text + checksum(text)
}

// tokenPrefix is what a token is found by, where the text is one.
func tokenPrefix(text string) (string, bool) {
	if len(text) != tokenSize || !strings.HasPrefix(text, tokenForm) || checksum(text[:tokenSize-checksumSize]) != text[tokenSize-checksumSize:] {
		return "", false
	}
	return text[:len(tokenForm)+prefixSize], strings.Trim(text[len(tokenForm):], digits62) == ""
}

func checksum(text string) string {
	sum := crc32.ChecksumIEEE([]byte(text))
	return base62([]byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)}, checksumSize)
}

const digits62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// base62 writes a number in so many digits, without those that are too many.
func base62(number []byte, size int) string {
	n, base, digit := new(big.Int).SetBytes(number), big.NewInt(62), new(big.Int)
	out := make([]byte, size)
	for i := range out {
		n.DivMod(n, base, digit)
		out[size-1-i] = digits62[digit.Int64()]
	}
	return string(out)
}

// hashed is how a token or cookie is kept: being random, it needs no slow hash.
func hashed(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}
