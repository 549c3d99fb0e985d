package oauth

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// A callback waits for the browser to come back.
type callback struct {
	net.Listener
	url  string
	path string
}

// listen opens the address that a browser is sent back to: a free port of this
// machine, unless the person registered one.
func listen(redirect string) (*callback, error) {
	if redirect == "" {
		redirect = "http://127.0.0.1:0/callback"
	}
	u, err := url.Parse(redirect)
	if err != nil || u.Scheme != "http" || !isLoopback(u.Hostname()) || u.Port() == "" || u.User != nil {
		return nil, errors.New("the redirect address of its oauth configuration is not one of this machine, as http://127.0.0.1:PORT/callback")
	}
	host := u.Hostname()
	if host == "localhost" {
		host = "127.0.0.1"
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, u.Port()))
	if err != nil {
		return nil, fmt.Errorf("wait for the browser: %w", err)
	}
	if u.Port() == "0" {
		u.Host = l.Addr().String()
	}
	return &callback{l, u.String(), "/" + strings.TrimPrefix(u.Path, "/")}, nil
}

// flow is one sign-in that waits for its answer. The first one counts.
type flow struct {
	state string
	once  sync.Once
	got   chan url.Values
}

// take takes an answer, and says whether it belongs to this sign-in.
func (f *flow) take(q url.Values) bool {
	if q.Get("state") != f.state || q.Get("code") == "" && q.Get("error") == "" {
		return false
	}
	f.once.Do(func() { f.got <- q })
	return true
}

// wait returns the answer that comes with state, at the address or among the
// lines of paste.
func (c *callback) wait(ctx context.Context, state string, paste io.Reader, say func(string)) (url.Values, error) {
	f := &flow{state: state, got: make(chan url.Values, 1)}
	s := &http.Server{Handler: c.page(f), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second, MaxHeaderBytes: 64 << 10}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = s.Serve(c.Listener)
	}()
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = s.Shutdown(end) // what is said to the person is still sent
		_ = s.Close()
		<-served
	}()
	if paste != nil {
		go f.read(paste, say) // ends with the program, where nothing is typed
	}
	select {
	case q := <-f.got:
		return q, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// page answers the browser.
func (c *callback) page(f *flow) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "text/plain; charset=utf-8")
		h.Set("Cache-Control", "no-store")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		q := r.URL.Query()
		switch {
		case r.URL.Path != c.path:
			w.WriteHeader(http.StatusNotFound)
		case r.Method != http.MethodGet:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case !f.take(q):
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, "This does not belong to the sign-in that Loadout waits for.\n")
		case q.Get("error") != "":
			io.WriteString(w, "The sign-in was refused. You can close this window.\n")
		default:
			io.WriteString(w, "Loadout has the answer. You can close this window.\n")
		}
	})
}

// read takes an answer that a person copied from a browser elsewhere: the
// address that it could not open. The code alone would not say who gave it.
func (f *flow) read(paste io.Reader, say func(string)) {
	lines := bufio.NewScanner(paste)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" {
			continue
		}
		if u, err := url.Parse(line); err == nil && f.take(u.Query()) {
			return
		}
		say("That is not the address that this sign-in ends at: copy all of it.")
	}
}
