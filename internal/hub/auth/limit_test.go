package auth

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/chat"
)

func TestLimiter(t *testing.T) {
	c := NewLimiter("event streams", 2, 3, time.Minute, time.Second)
	var leave []func()
	enter := func(u account.UserID, status int) {
		t.Helper()
		f, err := c.Enter(u)
		p, refused := errors.AsType[*api.Problem](err)
		if refused != (status != 0) || refused && (p.Status != status || p.Code != "too_many_open" || p.Header.Get("Retry-After") == "") || !refused && err != nil {
			t.Fatalf("%s: %v, want %d", u, err, status)
		}
		if err == nil {
			leave = append(leave, f)
		}
	}
	enter("ann", 0)
	enter("ann", 0)
	enter("ann", 429)
	enter("bob", 0)
	enter("bob", 503)
	if n := c.Count(); n != 3 {
		t.Errorf("%d connections", n)
	}
	leave[0]()
	enter("bob", 0)
	enter("bob", 429)
	for _, f := range leave[1:] {
		f()
	}
	if n := c.Count(); n != 0 || len(c.by) != 0 {
		t.Errorf("%d connections, %v", n, c.by)
	}
}

func TestLimiterCloseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewLimiter("sockets", 1, 1, 0, 0)
		leave, err := c.Enter("ann")
		if err != nil {
			t.Fatal(err)
		}
		closed := false
		go func() {
			c.Close()
			closed = true
		}()
		synctest.Wait()
		if closed {
			t.Error("closed before its connections")
		}
		if _, err := c.Enter("bob"); !errors.Is(err, chat.ErrClosed) {
			t.Errorf("entered a closing limiter: %v", err)
		}
		leave()
		synctest.Wait()
		if !closed {
			t.Error("not closed after its connections")
		}
	})
}

func TestSocketToken(t *testing.T) {
	for _, tt := range []struct {
		path   string
		header []string
		want   string
	}{
		{"/ws", []string{"loadout.token.abc"}, "abc"}, {"/ws", []string{"loadout, loadout.token.abc"}, "abc"}, {"/ws", []string{"loadout", " loadout.token.abc "}, "abc"},
		{"/ws", []string{"loadout"}, ""}, {"/ws", nil, ""}, {"/ws", []string{"xloadout.token.abc"}, ""}, {"/api/v1/me", []string{"loadout.token.abc"}, ""},
	} {
		r, err := http.NewRequest("GET", "http://hub.example.com"+tt.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header["Sec-Websocket-Protocol"] = tt.header
		if got := socketToken(r); got != tt.want {
			t.Errorf("%s %q: %q, want %q", tt.path, tt.header, got, tt.want)
		}
	}
}
