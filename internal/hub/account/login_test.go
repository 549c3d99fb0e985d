package account_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
)

func request(cookies ...*http.Cookie) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "https://hub.example.com/", nil)
	for _, c := range cookies {
		r.AddCookie(c)
	}
	return r
}

// navigation is the request of a browser that opens a page.
func navigation(c *http.Cookie) *http.Request {
	r := request(c)
	r.Header.Set("Sec-Fetch-Mode", "navigate")
	return r
}

func begin(t testing.TB, l *account.Logins) *http.Cookie {
	t.Helper()
	c, err := l.Start(t.Context(), me, "Browser/1.0")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestBrowserSignIn(t *testing.T) {
	s := &logins{}
	l := account.NewLogins(s, &account.LoginOptions{Secure: true})
	c, other := begin(t, l), begin(t, l)
	if c.Value == other.Value || len(c.Value) < 43 || strings.Contains(string(s.rows[0].Hash), c.Value) {
		t.Errorf("%q and %q", c.Value, other.Value)
	}
	row, next, err := l.Find(t.Context(), request(c))
	if err != nil || next != nil || row.User != me || row.Agent != "Browser/1.0" {
		t.Errorf("%+v, %v, %v", row, next, err)
	}
	gone, err := l.End(t.Context(), request(c))
	if err != nil || gone.MaxAge >= 0 || gone.Value != "" || gone.Name != c.Name || gone.Path != c.Path || !gone.Secure {
		t.Errorf("%v, %v", gone, err)
	}
	if _, _, err := l.Find(t.Context(), request(c)); !errors.Is(err, account.ErrInvalidCredentials) {
		t.Errorf("after signing out: %v", err)
	}
	if _, _, err := l.Find(t.Context(), request(other)); err != nil {
		t.Errorf("the other browser: %v", err)
	}
	if _, err := l.End(t.Context(), request()); err != nil {
		t.Errorf("signing out twice: %v", err)
	}
}

func TestCookiesAreBoundToTheirBrowser(t *testing.T) {
	secure := begin(t, account.NewLogins(&logins{}, &account.LoginOptions{Secure: true}))
	if !strings.HasPrefix(secure.Name, "__Host-") || !secure.Secure || !secure.HttpOnly || secure.SameSite != http.SameSiteLaxMode || secure.Path != "/" || secure.Domain != "" || secure.MaxAge < int(29*24*time.Hour/time.Second) || secure.Valid() != nil {
		t.Errorf("%v", secure)
	}
	plain := begin(t, account.NewLogins(&logins{}, nil))
	if strings.HasPrefix(plain.Name, "__") || plain.Secure || !plain.HttpOnly || plain.SameSite != http.SameSiteLaxMode {
		t.Errorf("%v", plain)
	}
}

func TestRefusedCookies(t *testing.T) {
	s := &logins{}
	l := account.NewLogins(s, nil)
	c := begin(t, l)
	changed, renamed, later := *c, *c, *c
	changed.Value = "x" + c.Value[1:] // which none has
	renamed.Name = "__Host-loadout"
	later.Value, _, _ = strings.Cut(c.Value, ".")
	later.Value += ".zzzzzz"
	for name, r := range map[string]*http.Request{"none": request(), "changed": request(&changed), "of another name": request(&renamed), "another time": request(&later), "empty": request(&http.Cookie{Name: c.Name})} {
		if row, next, err := l.Find(t.Context(), r); !errors.Is(err, account.ErrInvalidCredentials) || row.User != "" || next != nil {
			t.Errorf("%s: %+v, %v, %v", name, row, next, err)
		}
	}
	s.err = errors.New("the disk is gone")
	if _, _, err := l.Find(t.Context(), request(c)); !errors.Is(err, s.err) || errors.Is(err, account.ErrInvalidCredentials) {
		t.Errorf("a store that cannot say: %v", err)
	}
	if _, err := l.End(t.Context(), request(c)); !errors.Is(err, s.err) {
		t.Errorf("%v", err)
	}
	if _, err := l.Start(t.Context(), "", ""); err == nil {
		t.Error("nobody is signed in")
	}
}

func TestSignInsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := account.NewLogins(&logins{}, &account.LoginOptions{Idle: time.Hour, Lifetime: 10 * time.Hour})
		idle, busy := begin(t, l), begin(t, l)
		for range 19 { // each half hour
			time.Sleep(30 * time.Minute)
			if _, _, err := l.Find(t.Context(), request(busy)); err != nil {
				t.Fatalf("in use: %v", err)
			}
		}
		if _, _, err := l.Find(t.Context(), request(idle)); !errors.Is(err, account.ErrInvalidCredentials) {
			t.Errorf("idle: %v", err)
		}
		time.Sleep(30 * time.Minute)
		if _, _, err := l.Find(t.Context(), request(busy)); !errors.Is(err, account.ErrInvalidCredentials) {
			t.Errorf("after ten hours: %v", err)
		}
	})
}

func TestLastUseIsStoredOncePerMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &logins{}
		l := account.NewLogins(s, nil)
		c := begin(t, l)
		for range 120 {
			time.Sleep(time.Second)
			if _, _, err := l.Find(t.Context(), request(c)); err != nil {
				t.Fatal(err)
			}
		}
		if s.notes != 2 {
			t.Errorf("%d notes", s.notes)
		}
	})
}

// A cookie changes when a page is opened after half a day, and the old one becomes
// invalid. Requests of scripts keep their cookie.
func TestCookiesAreRotated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &logins{}
		l := account.NewLogins(s, nil)
		c := begin(t, l)
		if _, next, err := l.Find(t.Context(), navigation(c)); next != nil || err != nil {
			t.Fatalf("at once: %v, %v", next, err)
		}
		time.Sleep(account.DefaultRotate)
		if _, next, err := l.Find(t.Context(), request(c)); next != nil || err != nil {
			t.Fatalf("of a script: %v, %v", next, err)
		}
		before := s.rows[0]
		row, next, err := l.Find(t.Context(), navigation(c))
		if err != nil || next == nil || next.Value == c.Value || row.User != me {
			t.Fatalf("%+v, %v, %v", row, next, err)
		}
		if len(s.rows) != 1 || !s.rows[0].Created.Equal(before.Created) || !s.rows[0].Expires.Equal(before.Expires) || next.MaxAge > c.MaxAge-int(account.DefaultRotate.Seconds()) {
			t.Errorf("it is another sign-in: %+v, %+v", before, s.rows)
		}
		if _, _, err := l.Find(t.Context(), request(c)); !errors.Is(err, account.ErrInvalidCredentials) {
			t.Errorf("the old value: %v", err)
		}
		if _, again, err := l.Find(t.Context(), navigation(next)); again != nil || err != nil {
			t.Errorf("the new value: %v, %v", again, err)
		}
	})
}

// racing is a store in which another writer replaces every value first.
type racing struct{ *logins }

func (racing) ReplaceLogin(_ context.Context, _, _ []byte) error { return account.ErrNotFound }

// Of two pages that are opened at once, one gives the browser its next cookie, and
// both are served.
func TestTwoPagesRotateConcurrently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := account.NewLogins(racing{&logins{}}, nil)
		c := begin(t, l)
		time.Sleep(account.DefaultRotate)
		if row, next, err := l.Find(t.Context(), navigation(c)); err != nil || next != nil || row.User != me {
			t.Errorf("%+v, %v, %v", row, next, err)
		}
	})
}
