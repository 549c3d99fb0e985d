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

// A callback is a local listener to which the browser is redirected after the
// sign-in.
type callback struct {
	net.Listener
	url  string
	path string
}

// listen opens a listener for the callback URL redirect. If redirect is "" or
// its port is 0, listen uses a free port.
func listen(redirect string) (*callback, error) {
	if redirect == "" {
		redirect = "http://127.0.0.1:0/callback"
	}
	u, err := url.Parse(redirect)
	if err != nil || u.Scheme != "http" || !isLoopback(u.Hostname()) || u.Port() == "" || u.User != nil {
		return nil, errors.New("invalid OAuth redirect URL: want a loopback URL such as http://127.0.0.1:PORT/callback")
	}
	host := u.Hostname()
	if host == "localhost" {
		host = "127.0.0.1"
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, u.Port()))
	if err != nil {
		return nil, fmt.Errorf("listen for OAuth callback: %w", err)
	}
	if u.Port() == "0" {
		u.Host = l.Addr().String()
	}
	return &callback{l, u.String(), "/" + strings.TrimPrefix(u.Path, "/")}, nil
}

// flow is a sign-in that awaits the browser's response. Only the first response
// is used.
type flow struct {
	state  string
	once   sync.Once
	answer chan url.Values
}

// accept delivers a response and returns true if the response belongs to this
// sign-in.
func (f *flow) accept(q url.Values) bool {
	if q.Get("state") != f.state || q.Get("code") == "" && q.Get("error") == "" {
		return false
	}
	f.once.Do(func() { f.answer <- q })
	return true
}

// wait waits for the response with the given state, from the browser or from a
// line read from paste. It calls say for each rejected line.
func (c *callback) wait(ctx context.Context, state string, paste io.Reader, say func(string)) (url.Values, error) {
	f := &flow{state: state, answer: make(chan url.Values, 1)}
	s := &http.Server{Handler: c.handler(f), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second, MaxHeaderBytes: 64 << 10}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = s.Serve(c.Listener)
	}()
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = s.Shutdown(end) // let the browser receive the last page
		_ = s.Close()
		<-served
	}()
	if paste != nil {
		go f.readPasted(paste, say) // may run until the program exits, because reads from a terminal cannot be cancelled
	}
	select {
	case q := <-f.answer:
		return q, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// handler returns the HTTP handler for the callback URL.
func (c *callback) handler(f *flow) http.Handler {
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
		case !f.accept(q):
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, "This answer does not belong to the current sign-in.\n")
		case q.Get("error") != "":
			io.WriteString(w, "Sign-in denied. You can close this window.\n")
		default:
			io.WriteString(w, "Sign-in complete. Return to Loadout. You can close this window.\n")
		}
	})
}

// readPasted reads a callback URL that the user has copied from a browser on
// another machine. It requires the whole URL, because the code alone would not
// identify the issuer.
func (f *flow) readPasted(paste io.Reader, say func(string)) {
	lines := bufio.NewScanner(paste)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" {
			continue
		}
		if u, err := url.Parse(line); err == nil && f.accept(u.Query()) {
			return
		}
		say("Not the callback URL of this sign-in: copy the whole address.")
	}
}
