package tools_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/tools"
)

// countedFiles counts how often a tool list is read.
type countedFiles struct {
	upstream.Files
	loads atomic.Int32
}

func (c *countedFiles) Load(digest string) (*upstream.Listing, error) {
	c.loads.Add(1)
	return c.Files.Load(digest)
}

// summarized is a process that describes its servers from cached tool lists.
type summarized struct {
	*countedFiles
	*tools.Set
}

func newSummarized(t *testing.T, dir, config string, denied ...string) *summarized {
	c := &countedFiles{Files: upstream.Files{Dir: filepath.Join(dir, "tools")}}
	w := newWorld(t, nil, config, func(o *tools.TestOptions, _ *world) {
		pool := upstream.NewPool(&upstream.PoolOptions{Cache: c})
		t.Cleanup(func() { pool.Close() })
		o.Pool, o.DefinitionsDir = pool, filepath.Join(dir, "pins")
		o.Rules, _ = policy.ParseRules(denied)
	})
	return &summarized{c, w.Set}
}

func storeListing(t *testing.T, s *summarized, names ...string) {
	t.Helper()
	l := &upstream.Listing{At: time.Now(), Description: "Everything about gardens."}
	for _, name := range names {
		l.Tools = append(l.Tools, &mcp.Tool{Name: name, Description: "Waters plants.", InputSchema: map[string]any{"type": "object"}})
	}
	if err := s.Store(s.Servers()[0].Config.Digest(), l); err != nil {
		t.Fatal(err)
	}
}

// A process finds the summaries of an earlier one and reads no tool list. They are
// made again if anything that they depend on has changed.
func TestSummariesAreStored(t *testing.T) {
	for _, config := range []string{"mcpServers: {garden: {command: x}}", "mcpServers: {garden: {command: x, pin: strict}}"} {
		dir := t.TempDir()
		// describe returns the summary in a new process, and whether it read the list.
		describe := func(config string, denied ...string) (tools.ServerSummary, bool) {
			s := newSummarized(t, dir, config, denied...)
			first := s.Summaries()[0]
			read := s.loads.Load() > 0
			if again := s.Summaries()[0]; !reflect.DeepEqual(again, first) {
				t.Errorf("%s: first %+v, then %+v", config, first, again)
			}
			return first, read
		}
		want := func(what string, tool int, wantRead bool, got tools.ServerSummary, read bool) {
			t.Helper()
			if got.Name != "garden" || got.Tools != tool || read != wantRead {
				t.Errorf("%s, %s: got %+v; list read: %t", config, what, got, read)
			}
		}
		storeListing(t, newSummarized(t, dir, config), "prune", "water")
		got, read := describe(config)
		want("a list without summary", 2, true, got, read)
		if _, read = describe(config); read { // the first screening accepts the definitions of a strict server
			describe(config)
		}
		again, read := describe(config)
		want("a stored summary", 2, false, again, read)
		if !reflect.DeepEqual(again, got) {
			t.Errorf("stored %+v, made %+v", again, got)
		}
		got, read = describe(config, "deny mcp.garden.water")
		want("another rule", 1, true, got, read)
		got, read = describe(config, "deny mcp.garden.water")
		want("another rule again", 1, false, got, read)
		got, read = describe(config)
		want("both are kept", 2, false, got, read)
		got, read = describe(config, "allow mcp.garden.water")
		want("rules that hide no tool", 2, false, got, read)
		got, read = describe(config, "no rule")
		want("an unreadable rule", 0, true, got, read)

		s := newSummarized(t, dir, config)
		storeListing(t, s, "prune", "sell", "water")
		got, read = describe(config)
		if strict := s.Servers()[0].Config.Strict; strict {
			want("a tool that was not accepted", 2, true, got, read)
			pins := tools.NewDefinitionFiles(filepath.Join(dir, "pins"))
			l, err := s.Files.Load(s.Servers()[0].Config.Digest())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := pins.Accept(s.Servers()[0].Config, l); err != nil {
				t.Fatal(err)
			}
			got, read = describe(config)
			want("accepted", 3, true, got, read)
		} else {
			want("another list", 3, true, got, read)
		}
	}
}

// A new rule for a server changes the stored summaries of other servers only if it
// may hide a tool of theirs.
func TestRuleKeepsSummariesOfOtherServers(t *testing.T) {
	for tool, wantRead := range map[string]bool{"water": false, "shop.sell": true, "shop__sell": true} {
		dir, config := t.TempDir(), "mcpServers: {garden: {command: x}, shop: {command: y}}"
		storeListing(t, newSummarized(t, dir, config), "prune", tool)
		newSummarized(t, dir, config).Summaries()
		for i := range 6 {
			denied := fmt.Sprintf("deny mcp.shop.sell%d", i)
			s := newSummarized(t, dir, config, denied)
			got := s.Summaries()[0]
			if read := s.loads.Load() > 1; read != wantRead || got.Tools != 2 { // the list of shop is not stored
				t.Errorf("%s, %s: got %+v; list read: %t, want %t", tool, denied, got, read, wantRead)
			}
		}
		got := newSummarized(t, dir, config, "deny mcp.shop.sell", "deny shop__sell").Summaries()[0]
		if want := map[bool]int{false: 2, true: 1}[wantRead]; got.Tools != want {
			t.Errorf("%s: %d tools visible, want %d", tool, got.Tools, want)
		}
	}
}

// A summary stored by a program with another version of the format is made again.
func TestSummaryOfOtherFormatIsMadeAgain(t *testing.T) {
	config := "mcpServers: {garden: {command: x}}"
	for _, tt := range []struct {
		versions int // added to the version
		data     string
		want     int // number of tools
	}{
		{0, `{"name":"garden","tools":7}`, 7}, // the test stores summaries where the program looks for them
		{1, `{"name":"garden","tools":7}`, 1},
		{-1, `{"name":"garden","tools":7}`, 1},
		{0, `"text"`, 1},
		{0, `[]`, 1},
		{0, `{"name":"garden","tools":"7"}`, 1},
	} {
		dir := t.TempDir()
		s := newSummarized(t, dir, config)
		storeListing(t, s, "water")
		digest := s.Servers()[0].Config.Digest()
		l, err := s.Files.Load(digest)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.StoreSummary(digest, l, s.SummaryKey("garden", tt.versions), json.RawMessage(tt.data)); err != nil {
			t.Fatal(err)
		}
		if got := newSummarized(t, dir, config).Summaries()[0]; got.Name != "garden" || got.Tools != tt.want {
			t.Errorf("version %+d, %s: got %+v, want %d tools", tt.versions, tt.data, got, tt.want)
		}
	}
}

// The JSON of a stored summary is that of this version.
func TestStoredSummary(t *testing.T) {
	dir, config := t.TempDir(), "mcpServers: {garden: {command: x, description: Waters plants in a garden.}}"
	storeListing(t, newSummarized(t, dir, config), "prune_roses", "water_roses")
	s := newSummarized(t, dir, config)
	s.Summaries()
	got, err := s.LoadSummary(s.Servers()[0].Config.Digest(), s.SummaryKey("garden", 0))
	const want = `{"name":"garden","purpose":"Waters plants in a garden","topics":["plant"],"tools":2,"examples":["water_roses","prune_roses"]}`
	if err != nil || string(got) != want {
		t.Errorf("stored %s, %v, want %s; if the summaries change, increase summaryVersion", got, err, want)
	}
}
