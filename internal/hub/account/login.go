package account

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Default durations for browser sign-ins.
const (
	DefaultIdle     = 24 * time.Hour      // time without requests after which a sign-in ends
	DefaultLifetime = 30 * 24 * time.Hour // time after which a sign-in always ends
	DefaultRotate   = 12 * time.Hour      // time after which the cookie is replaced

	// loginTouchInterval is the minimum interval between recorded requests.
	loginTouchInterval = time.Minute
	maxAgent           = 200 // bytes
)

// Login is a stored browser sign-in.
type Login struct {
	Hash     []byte // SHA-256 of the cookie value, unique
	User     UserID
	Agent    string    // User-Agent, so that users recognize the browser
	Created  time.Time // time of the sign-in
	LastSeen time.Time // last request, accurate to about a minute
	Expires  time.Time // not extended by requests
}

// LoginStore stores browser sign-ins.
type LoginStore interface {
	AddLogin(ctx context.Context, l Login) error
	// GetLogin returns the sign-in with the given hash. It fails with [ErrNotFound]
	// if there is none.
	GetLogin(ctx context.Context, hash []byte) (Login, error)
	// TouchLogin records the last request. It ignores a missing sign-in.
	TouchLogin(ctx context.Context, hash []byte, at time.Time) error
	// ReplaceLogin changes the hash of a sign-in. It fails with [ErrNotFound] if no
	// sign-in has the old hash, so that only one of several calls succeeds.
	ReplaceLogin(ctx context.Context, old, hash []byte) error
	// RemoveLogin deletes a sign-in. It ignores a missing sign-in.
	RemoveLogin(ctx context.Context, hash []byte) error
}

// LoginOptions configures browser sign-ins. The zero value selects the defaults.
type LoginOptions struct {
	Idle, Lifetime, Rotate time.Duration
	// Secure specifies that browsers reach the hub over https. They then send the
	// cookie only over https.
	Secure bool
}

// Logins manages browser sign-ins. It is safe for concurrent use.
type Logins struct {
	store LoginStore
	opts  LoginOptions
}

// NewLogins returns a manager for the sign-ins in a store. A nil opts selects
// the defaults.
func NewLogins(s LoginStore, opts *LoginOptions) *Logins {
	l := &Logins{store: s}
	if opts != nil {
		l.opts = *opts
	}
	for _, d := range []struct {
		at    *time.Duration
		value time.Duration
	}{{&l.opts.Idle, DefaultIdle}, {&l.opts.Lifetime, DefaultLifetime}, {&l.opts.Rotate, DefaultRotate}} {
		if *d.at == 0 {
			*d.at = d.value
		}
	}
	return l
}

// Start signs a user in and returns a new cookie. It stores up to 200 bytes of the
// User-Agent.
func (l *Logins) Start(ctx context.Context, u UserID, agent string) (*http.Cookie, error) {
	if u == "" {
		return nil, errors.New("start sign-in: missing user")
	}
	row, cookie := l.Prepare(agent)
	row.User = u
	if err := l.store.AddLogin(ctx, row); err != nil {
		return nil, fmt.Errorf("start sign-in: %w", err)
	}
	return cookie, nil
}

// Prepare returns a new sign-in that has no user yet, and its cookie. The cookie is
// valid once the caller stores the sign-in with its user. Use it instead of
// [Logins.Start] to store the sign-in in a transaction with other changes.
func (l *Logins) Prepare(agent string) (Login, *http.Cookie) {
	now := time.Now().UTC()
	value := newCookieValue(now)
	agent = strings.ToValidUTF8(agent[:min(len(agent), maxAgent)], "")
	row := Login{Hash: hashToken(value), Agent: agent, Created: now, LastSeen: now, Expires: now.Add(l.opts.Lifetime)}
	return row, l.newCookie(value, row.Expires)
}

// newCookieValue returns a random value that includes its creation time. The time
// cannot be forged, because sign-ins are looked up by the hash of the whole value.
func newCookieValue(now time.Time) string {
	return rand.Text() + rand.Text() + "." + strconv.FormatInt(now.Unix(), 36)
}

// cookieTime returns the creation time in a cookie value, or a time in the distant
// past if the value contains none.
func cookieTime(value string) time.Time {
	_, text, _ := strings.Cut(value, ".")
	seconds, _ := strconv.ParseInt(text, 36, 64)
	return time.Unix(seconds, 0)
}

// Find returns the sign-in for the cookie in a request. If next is not nil, the
// response must set it, because the old cookie is no longer valid. Find replaces
// cookies only when a user opens a page, because pages make requests in parallel.
// It fails with [ErrInvalidCredentials] if there is no valid cookie, and with
// another error if the store fails.
func (l *Logins) Find(ctx context.Context, r *http.Request) (row Login, next *http.Cookie, err error) {
	c, err := r.Cookie(l.CookieName())
	if err != nil {
		return Login{}, nil, ErrInvalidCredentials
	}
	row, err = l.store.GetLogin(ctx, hashToken(c.Value))
	if errors.Is(err, ErrNotFound) {
		return Login{}, nil, ErrInvalidCredentials
	}
	if err != nil {
		return Login{}, nil, fmt.Errorf("find sign-in: %w", err)
	}
	now := time.Now().UTC()
	if !now.Before(row.Expires) || now.Sub(row.LastSeen) >= l.opts.Idle {
		return Login{}, nil, ErrInvalidCredentials
	}
	if now.Sub(row.LastSeen) >= loginTouchInterval {
		if err := l.store.TouchLogin(ctx, row.Hash, now); err != nil {
			return Login{}, nil, fmt.Errorf("record use of sign-in: %w", err)
		}
		row.LastSeen = now
	}
	if r.Header.Get("Sec-Fetch-Mode") == "navigate" && now.Sub(cookieTime(c.Value)) >= l.opts.Rotate {
		return l.rotate(ctx, row, now)
	}
	return row, nil, nil
}

func (l *Logins) rotate(ctx context.Context, row Login, now time.Time) (Login, *http.Cookie, error) {
	value := newCookieValue(now)
	err := l.store.ReplaceLogin(ctx, row.Hash, hashToken(value))
	if errors.Is(err, ErrNotFound) { // another request from the browser has replaced the cookie
		return row, nil, nil
	}
	if err != nil {
		return Login{}, nil, fmt.Errorf("replace cookie: %w", err)
	}
	row.Hash = hashToken(value)
	return row, l.newCookie(value, row.Expires), nil
}

// End signs a browser out. It returns a cookie that makes the browser delete its
// cookie, even if that cookie was invalid.
func (l *Logins) End(ctx context.Context, r *http.Request) (*http.Cookie, error) {
	if c, err := r.Cookie(l.CookieName()); err == nil {
		if err := l.store.RemoveLogin(ctx, hashToken(c.Value)); err != nil {
			return nil, fmt.Errorf("end sign-in: %w", err)
		}
	}
	gone := l.newCookie("", time.Time{})
	gone.MaxAge = -1
	return gone, nil
}

// CookieName returns the name of the cookie. With https, the __Host- prefix makes
// browsers accept the cookie only from this host and for all paths.
func (l *Logins) CookieName() string { return cookieName("loadout", l.opts.Secure) }

func cookieName(name string, secure bool) string {
	if secure {
		return "__Host-" + name
	}
	return name
}

// newCookie returns a cookie with the given value. Scripts cannot read the
// cookie. Browsers do not send it with requests from other sites, except when a
// user follows a link.
func (l *Logins) newCookie(value string, ends time.Time) *http.Cookie {
	c := &http.Cookie{Name: l.CookieName(), Value: value, Path: "/", Secure: l.opts.Secure, HttpOnly: true, SameSite: http.SameSiteLaxMode}
	if !ends.IsZero() {
		c.MaxAge = int(time.Until(ends).Seconds())
	}
	return c
}
