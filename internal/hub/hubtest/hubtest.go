// Package hubtest opens a hub in a test and sends requests to it, so that each
// package of operations tests its own. It never listens on a network. Only tests
// import it. Start reading at [Open].
package hubtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/limittest"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

// Password is the password of every user that this package creates.
const Password = "a long enough one"

// Hub is an open hub.
type Hub struct {
	*hub.Hub
	t       testing.TB
	handler http.Handler
}

// Open opens a hub with its data in a temporary directory, and closes it when
// the test ends. With o.Accounts, it has the administrator root.
func Open(t testing.TB, o hub.Options) *Hub {
	t.Helper()
	o.Data, o.Rate, o.Cost, o.Version = t.TempDir(), -1, account.Cost{Memory: 64, Time: 1, Lanes: 1}, "test"
	o.Logger = slog.New(slog.DiscardHandler)
	if o.Database == "" {
		storetest.CreateSQLite(t, filepath.Join(o.Data, hub.DatabaseFile))
	}
	if o.Accounts {
		o.FirstAdmin = &hub.FirstAdmin{Name: "root", Password: Password}
	}
	h, err := hub.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return &Hub{h, t, h.Handler()}
}

// Client sends requests with a fixed set of header fields.
type Client struct {
	hub    *Hub
	header http.Header
}

// Client returns a client without credentials. On a hub without accounts, it
// acts as the single user.
func (h *Hub) Client() *Client { return &Client{h, http.Header{}} }

// With returns a copy of the client that also sends a header field.
func (c *Client) With(name, value string) *Client {
	out := &Client{c.hub, c.header.Clone()}
	out.header.Set(name, value)
	return out
}

// SignIn returns a client with the cookie of a browser that signed in.
func (h *Hub) SignIn(name string) *Client {
	h.t.Helper()
	r := h.Client().Must("POST", "/login", fmt.Sprintf(`{"name": %q, "password": %q}`, name, Password))
	cookie, _, _ := strings.Cut(r.Header.Get("Set-Cookie"), ";")
	return h.Client().With("Cookie", cookie)
}

// NewUser creates a user and returns the user's ID and a client that is signed
// in as the user.
func (c *Client) NewUser(name string) (id string, user *Client) {
	c.hub.t.Helper()
	r := c.Must("POST", "/users", fmt.Sprintf(`{"name": %q, "password": %q}`, name, Password))
	return r.Text("id"), c.hub.SignIn(name)
}

// Response is a response and its complete body.
type Response struct {
	Status int
	Header http.Header
	Body   string
}

// Text returns a field of the JSON object in the body, or "" if the field is
// missing or not a string.
func (r *Response) Text(field string) string {
	var fields map[string]any
	if json.Unmarshal([]byte(r.Body), &fields) != nil {
		return ""
	}
	text, _ := fields[field].(string)
	return text
}

// Send sends a request. The path is relative to the API's prefix unless it
// starts with two slashes. The body is nil, a string that contains JSON, or a
// []byte. For a []byte, the client's header fields should include the
// Content-Type.
func (c *Client) Send(ctx context.Context, method, path string, body any) *Response {
	c.hub.t.Helper()
	var in io.Reader
	kind := ""
	switch b := body.(type) {
	case string:
		in, kind = strings.NewReader(b), "application/json"
	case []byte:
		in = bytes.NewReader(b)
	}
	if other, ok := strings.CutPrefix(path, "//"); ok {
		path = "/" + other
	} else {
		path = api.Prefix + path
	}
	r := httptest.NewRequestWithContext(ctx, method, path, in)
	r.Host, r.RemoteAddr = "127.0.0.1", "127.0.0.1:9"
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	for name, values := range c.header {
		r.Header[name] = values
	}
	w := httptest.NewRecorder()
	c.hub.handler.ServeHTTP(w, r)
	return &Response{w.Code, w.Header(), w.Body.String()}
}

// Must sends a request, and ends the test if it fails.
func (c *Client) Must(method, path string, body any) *Response {
	c.hub.t.Helper()
	r := c.Send(c.hub.t.Context(), method, path, body)
	if r.Status >= 400 {
		c.hub.t.Fatalf("%s %s: %d %s", method, path, r.Status, r.Body)
	}
	return r
}

// Request is a request with the response that a test expects.
type Request struct {
	method, path string
	body         any
	status       int
	has          string
}

// NewRequest returns a request to be sent with [Client.Send]. The response must
// have the given status, and its body must contain has. If has consists of
// several parts separated by " & ", the body must contain each of them. A part
// that starts with "!" must not occur in the body.
func NewRequest(method, path string, body any, status int, has string) Request {
	return Request{method, path, body, status, has}
}

// Check sends requests in order, and reports each unexpected response.
func (c *Client) Check(requests ...Request) {
	c.hub.t.Helper()
	for _, q := range requests {
		r := c.Send(c.hub.t.Context(), q.method, q.path, q.body)
		if r.Status != q.status {
			c.hub.t.Errorf("%s %s: status %d, want %d: %.2000s", q.method, q.path, r.Status, q.status, r.Body)
		}
		for part := range strings.SplitSeq(q.has, " & ") {
			absent, not := strings.CutPrefix(part, "!")
			if strings.Contains(r.Body, absent) == not {
				c.hub.t.Errorf("%s %s: want %s in %.4000s", q.method, q.path, part, r.Body)
			}
		}
	}
}

// CheckFailures gets each path repeatedly, with a context that is cancelled at
// its first use, then at its second use, and so on. Each response must either
// report a failure or equal the response to a request that is not cancelled, so
// that no failed step is ignored.
func (c *Client) CheckFailures(paths ...string) {
	c.hub.t.Helper()
	for _, path := range paths {
		whole := c.Must("GET", path, nil)
		limittest.CancelAtEach(c.hub.t, func(ctx context.Context) error {
			r := c.Send(ctx, "GET", path, nil)
			if r.Status != whole.Status {
				return fmt.Errorf("%s: %d %s", path, r.Status, r.Body)
			}
			if r.Body != whole.Body {
				c.hub.t.Errorf("%s: %.1000s, want %.1000s", path, r.Body, whole.Body)
			}
			return nil
		})
	}
}
