package serverskill_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/serverskill"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/mcpserver"
)

// dialed connects to a server in one protocol era for each operation.
type dialed struct {
	url, era string
	seen     map[string]bool // eras of the connections
}

func (d *dialed) Do(ctx context.Context, _ string, f func(context.Context, serverskill.Conn) error) error {
	conn, err := new(upstream.Dialer).Dial(ctx, &upstream.Config{Name: "served", Type: upstream.HTTP, URLs: []string{d.url}}, &upstream.DialOptions{Era: d.era})
	if err != nil {
		return err
	}
	defer conn.Close()
	d.seen[conn.Era] = true
	return f(ctx, conn)
}

func newServed(t *testing.T) string {
	t.Helper()
	rt, err := loadout.New(t.Context(), &loadout.Options{Sources: []catalog.Source{catalog.NewFS("served", catalog.User, fstest.MapFS{
		"report/SKILL.md":      {Data: []byte("---\nname: report\ndescription: Write it\nmetadata:\n  date: 2026-09-13\n  version: 1.10\n---\nText.\n")},
		"report/style.md":      {Data: []byte("Short.")},
		"report/images/a.bin":  {Data: []byte{0, 1, 2, 0xff}},
		"report/a b/c%20d.txt": {Data: []byte("escaped")},
	})}})
	if err != nil {
		t.Fatal(err)
	}
	s := mcpserver.New(rt, nil)
	h := httptest.NewServer(s.Handler(nil))
	t.Cleanup(func() { h.CloseClientConnections(); h.Close(); s.Close(); rt.Close() })
	return h.URL + "/mcp"
}

func TestSkillsOfARealServerInBothEras(t *testing.T) {
	url := newServed(t)
	for _, era := range []string{upstream.Modern, upstream.Legacy} {
		t.Run(era, func(t *testing.T) {
			d := &dialed{url: url, era: era, seen: map[string]bool{}}
			c := newCatalog(t, serverskill.New(serverskill.Options{Label: "docs", Connector: d, Wait: true}))
			e := get(t, c, "mcp.docs/report")
			sk, _, err := c.Read(t.Context(), e)
			if err != nil || sk.Instructions != "Text.\n" {
				t.Fatalf("%v, %v", sk, err)
			}
			for name, want := range map[string]string{"style.md": "Short.", "images/a.bin": "\x00\x01\x02\xff", "a b/c%20d.txt": "escaped"} {
				if text, err := readFile(c, e, name); text != want || err != nil {
					t.Errorf("%s: %q, %v", name, text, err)
				}
			}
			if _, err := c.Resolve(t.Context(), "mcp.docs/skill://none/SKILL.md"); err == nil || !strings.Contains(err.Error(), "not found") {
				t.Errorf("an unknown skill: %v", err)
			}
			if !d.seen[era] || len(d.seen) != 1 {
				t.Errorf("connected in the eras %v", d.seen)
			}
		})
	}
}

// A server that answers the handshake and then nothing does not block its caller,
// and what it says in errors is short and does not have the token.
func TestOwnConnectionIsBounded(t *testing.T) {
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	inner, err := url.Parse(newServed(t))
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: inner.Scheme, Host: inner.Host})
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case bytes.Contains(body, []byte(`"skills/get"`)):
			select {
			case <-hang:
			case <-r.Context().Done():
			}
			return
		case bytes.Contains(body, []byte(`"resources/read"`)):
			var m struct{ ID json.RawMessage }
			_ = json.Unmarshal(body, &m)
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"%s%s"}}`, m.ID, r.Header.Get("X-Key"), strings.Repeat("x", 100_000))
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		r.Host = inner.Host
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { h.CloseClientConnections(); h.Close() })
	config := &upstream.Config{Name: "served", Type: upstream.HTTP, URLs: []string{h.URL + "/mcp"}, Headers: map[string]string{"X-Key": "a-secret-token"}, CallTimeout: 500 * time.Millisecond}
	own := serverskill.OwnConnection(new(upstream.Dialer), func() (*upstream.Config, error) { return config, nil })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err = own.Do(ctx, "get skill", func(ctx context.Context, c serverskill.Conn) error {
		_, err := c.GetSkill(ctx, "skill://report/SKILL.md")
		return err
	})
	if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "no answer") {
		t.Errorf("a server that does not answer: %v, want a timeout", err)
	}
	err = own.Do(ctx, "read", func(ctx context.Context, c serverskill.Conn) error {
		_, err := c.ReadSkillFile(ctx, "skill://report/style.md")
		return err
	})
	if err == nil || len(err.Error()) > 3000 || strings.Contains(err.Error(), "a-secret-token") {
		t.Errorf("an error of %d bytes, %.300v; want a short one without the token", len(fmt.Sprint(err)), err)
	}
}

// A pool's connection is shared: all operations use it.
func TestSharedConnection(t *testing.T) {
	pool := upstream.NewPool(nil)
	defer pool.Close()
	server := pool.Server(&upstream.Config{Name: "served", Type: upstream.HTTP, URLs: []string{newServed(t)}}, "")
	defer server.Release()
	src := serverskill.New(serverskill.Options{Label: "docs", Connector: newServer(), Wait: true})
	src.SetConnector(serverskill.SharedConnection(server))
	c := newCatalog(t, src)
	if text, err := readFile(c, get(t, c, "mcp.docs/report"), "style.md"); text != "Short." || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if state, err := server.Failure(); state != upstream.Ready || err != nil {
		t.Errorf("state %v, %v", state, err)
	}
}
