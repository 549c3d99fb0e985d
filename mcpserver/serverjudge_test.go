package mcpserver_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/bm25"
	"github.com/loadout-dev/loadout/internal/upstream"
)

// listings is a cache with the tools of each server, by the digest of its
// configuration.
type listings map[string]*upstream.Listing

func (c listings) Load(digest string) (*upstream.Listing, error) { return c[digest], nil }
func (c listings) Store(string, *upstream.Listing) error         { return nil }

// importedServers reads testdata/servers/servers.txt.
func importedServers(t *testing.T) (configs []*upstream.Config, cache listings) {
	t.Helper()
	b, err := os.ReadFile("testdata/servers/servers.txt")
	if err != nil {
		t.Fatal(err)
	}
	cache = listings{}
	var l *upstream.Listing
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if head, ok := strings.CutPrefix(line, "= "); ok {
			parts := strings.Split(head, "|")
			c := &upstream.Config{Name: strings.TrimSpace(parts[0]), Type: upstream.Stdio, Command: "server"}
			l = &upstream.Listing{At: time.Now(), Title: strings.TrimSpace(parts[1]), Instructions: strings.TrimSpace(parts[2])}
			configs, cache[c.Digest()] = append(configs, c), l
			continue
		}
		if name, text, ok := strings.Cut(line, ": "); ok && l != nil {
			l.Tools = append(l.Tools, &mcp.Tool{Name: name, Description: text, InputSchema: &jsonschema.Schema{Type: "object"}})
		}
	}
	return configs, cache
}

// A judge that only matches words finds the server for a task by the lines that a
// model sees. The tasks were written first; see testdata/servers/tasks.txt.
func TestServerLinesNameTheRightServer(t *testing.T) {
	configs, cache := importedServers(t)
	w := newWorld(t, setup{servers: []string{}, configs: configs, cache: cache})
	_, lines, _ := strings.Cut(findDescription(t, w.connect(t, ways[0], nil)), "Servers:\n")
	t.Logf("%d bytes:\n%s", len(lines), lines)
	var names []string
	var docs []bm25.Doc
	for line := range strings.Lines(lines) {
		name, text, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "- "), ": ")
		names = append(names, name)
		docs = append(docs, bm25.Doc{Name: name, Description: strings.NewReplacer("_", " ", "-", " ").Replace(text)})
	}
	index := bm25.New(func(yield func(bm25.Doc) bool) {
		for _, d := range docs {
			if !yield(d) {
				return
			}
		}
	})
	b, err := os.ReadFile("testdata/servers/tasks.txt")
	if err != nil {
		t.Fatal(err)
	}
	right, all := map[string]int{}, map[string]int{}
	for line := range strings.Lines(string(b)) {
		mark, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		server, task, ok := strings.Cut(rest, "\t")
		if !ok || mark == "#" {
			continue
		}
		all[mark]++
		hits := index.Search(task, 1)
		if len(hits) > 0 && names[hits[0].Doc] == server {
			right[mark]++
			continue
		}
		got := "none"
		if len(hits) > 0 {
			got = names[hits[0].Doc]
		}
		t.Logf("%s: want %s, got %s", task, server, got)
	}
	n := right["+"] + right["-"]
	t.Logf("right: %d of %d with a word of the server's name, %d of %d without", right["+"], all["+"], right["-"], all["-"])
	if all["+"] != 30 || all["-"] != 30 || n < 48 {
		t.Errorf("%d of %d and %d of %d tasks lead to the right server, want 48 of 60", right["+"], all["+"], right["-"], all["-"])
	}
}
