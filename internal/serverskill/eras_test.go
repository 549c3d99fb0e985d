package serverskill_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

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
