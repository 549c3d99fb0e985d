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

// Default times of a sign-in of a browser.
const (
	DefaultIdle   = 24 * time.Hour      // without a request
	DefaultLife   = 30 * 24 * time.Hour // in all
	DefaultRotate = 12 * time.Hour      // until the cookie gets another value

	// seenEvery is how often at most the time of a request is written down.
	seenEvery = time.Minute
	maxAgent  = 200 // bytes
)

// Login is what is kept of a sign-in of a browser.
type Login struct {
	Hash  []byte // SHA-256 of the value of its cookie, unique
	User  UserID
	Agent string    // what the browser calls itself, for the person to tell it
	Began time.Time // the sign-in
	Seen  time.Time // last request, to about a minute
	Ends  time.Time // at the latest
}

// LoginStore keeps sign-ins.
type LoginStore interface {
	AddLogin(ctx context.Context, l Login) error
	// Login returns the sign-in with a hash. It fails with [ErrUnknown] where there
	// is none.
	Login(ctx context.Context, hash []byte) (Login, error)
	// LoginSeen notes the last request. One that is gone is passed over.
	LoginSeen(ctx context.Context, hash []byte, at time.Time) error
	// ReplaceLogin gives a sign-in another hash. It fails with [ErrUnknown] where the
	// old one is gone: of two that replace it, one wins.
	ReplaceLogin(ctx context.Context, old, hash []byte) error
	// RemoveLogin forgets a sign-in. One that is gone is passed over.
	RemoveLogin(ctx context.Context, hash []byte) error
}

// LoginOptions adjust sign-ins of browsers. The zero value has the defaults.
type LoginOptions struct {
	Idle, Life, Rotate time.Duration
	// Secure is whether browsers reach the hub by https, as its public address says;
	// the cookie is for https alone then.
	Secure bool
}

// Logins are the sign-ins of browsers. They are safe for concurrent use.
type Logins struct {
	store LoginStore
	opts  LoginOptions
}

// NewLogins returns the sign-ins of a store; nil options are the defaults.
func NewLogins(s LoginStore, o *LoginOptions) *Logins {
	l := &Logins{store: s}
	if o != nil {
		l.opts = *o
	}
	for _, d := range []struct {
		at    *time.Duration
		value time.Duration
	}{{&l.opts.Idle, DefaultIdle}, {&l.opts.Life, DefaultLife}, {&l.opts.Rotate, DefaultRotate}} {
		if *d.at == 0 {
			*d.at = d.value
		}
	}
	return l
}

// Begin signs a browser in, with a value that it did not have before, and returns its
// cookie. Of what the browser calls itself, 200 bytes are kept.
func (l *Logins) Begin(ctx context.Context, u UserID, agent string) (*http.Cookie, error) {
	if u == "" {
		return nil, errors.New("begin a sign-in: of nobody")
	}
	now := time.Now().UTC()
	value := newValue(now)
	agent = strings.ToValidUTF8(agent[:min(len(agent), maxAgent)], "")
	row := Login{Hash: hashed(value), User: u, Agent: agent, Began: now, Seen: now, Ends: now.Add(l.opts.Life)}
	if err := l.store.AddLogin(ctx, row); err != nil {
		return nil, fmt.Errorf("begin a sign-in: %w", err)
	}
	return l.cookie(value, row.Ends), nil
}

// newValue is random, and says when it was made; that cannot be changed, as it is
// found by the hash of it all.
func newValue(now time.Time) string {
	return rand.Text() + rand.Text() + "." + strconv.FormatInt(now.Unix(), 36)
}

// madeAt is when a value was made. One that does not say is as old as can be.
func madeAt(value string) time.Time {
	_, text, _ := strings.Cut(value, ".")
	seconds, _ := strconv.ParseInt(text, 36, 64)
	return time.Unix(seconds, 0)
}

// Find returns the sign-in of a request by its cookie. Where next is not nil, the
// answer has to give the browser that cookie, as its own is good no longer: a new
// value is given when a person opens a page, and not while a page makes several
// requests at once. It fails with [ErrRefused] where there is no cookie that is good,
// and with another error where that cannot be known.
func (l *Logins) Find(ctx context.Context, r *http.Request) (row Login, next *http.Cookie, err error) {
	c, err := r.Cookie(l.CookieName())
	if err != nil {
		return Login{}, nil, ErrRefused
	}
	row, err = l.store.Login(ctx, hashed(c.Value))
	if errors.Is(err, ErrUnknown) {
		return Login{}, nil, ErrRefused
	}
	if err != nil {
		return Login{}, nil, fmt.Errorf("find a sign-in: %w", err)
	}
	now := time.Now().UTC()
	if !now.Before(row.Ends) || now.Sub(row.Seen) >= l.opts.Idle {
		return Login{}, nil, ErrRefused
	}
	if now.Sub(row.Seen) >= seenEvery {
		if err := l.store.LoginSeen(ctx, row.Hash, now); err != nil {
			return Login{}, nil, fmt.Errorf("note a request: %w", err)
		}
		row.Seen = now
	}
	if r.Header.Get("Sec-Fetch-Mode") == "navigate" && now.Sub(madeAt(c.Value)) >= l.opts.Rotate {
		return l.rotate(ctx, row, now)
	}
	return row, nil, nil
}

func (l *Logins) rotate(ctx context.Context, row Login, now time.Time) (Login, *http.Cookie, error) {
	value := newValue(now)
	err := l.store.ReplaceLogin(ctx, row.Hash, hashed(value))
	if errors.Is(err, ErrUnknown) { // another page of the browser has the next value
		return row, nil, nil
	}
	if err != nil {
		return Login{}, nil, fmt.Errorf("give a sign-in another cookie: %w", err)
	}
	row.Hash = hashed(value)
	return row, l.cookie(value, row.Ends), nil
}

// End signs a browser out, and returns the cookie that has it forget its own. A
// request without a good cookie is signed out already.
func (l *Logins) End(ctx context.Context, r *http.Request) (*http.Cookie, error) {
	if c, err := r.Cookie(l.CookieName()); err == nil {
		if err := l.store.RemoveLogin(ctx, hashed(c.Value)); err != nil {
			return nil, fmt.Errorf("end a sign-in: %w", err)
		}
	}
	gone := l.cookie("", time.Time{})
	gone.MaxAge = -1
	return gone, nil
}

// CookieName is the name of the cookie. With https, browsers take one of this name
// from the host itself only, for all its paths, and no neighbouring host can set it.
func (l *Logins) CookieName() string { return cookieName("loadout", l.opts.Secure) }

func cookieName(name string, secure bool) string {
	if secure {
		return "__Host-" + name
	}
	return name
}

// cookie is for no script, and not for requests that other sites make, but for links
// from there.
func (l *Logins) cookie(value string, ends time.Time) *http.Cookie {
	c := &http.Cookie{Name: l.CookieName(), Value: value, Path: "/", Secure: l.opts.Secure, HttpOnly: true, SameSite: http.SameSiteLaxMode}
	if !ends.IsZero() {
		c.MaxAge = int(time.Until(ends).Seconds())
	}
	return c
}
