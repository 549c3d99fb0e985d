package upstream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestFiles(t *testing.T) {
	f := &Files{Dir: t.TempDir() + "/tools"}
	if l, err := f.Load("sha256:a"); l != nil || err != nil {
		t.Errorf("nothing is there: %v, %v", l, err)
	}
	want := &Listing{At: time.Unix(1_700_000_000, 0).UTC(), Era: Legacy, Tools: []*mcp.Tool{{Name: "a", Description: "A.", InputSchema: map[string]any{"type": "object"}}}}
	if err := f.Store("sha256:a", want); err != nil {
		t.Fatal(err)
	}
	got, err := f.Load("sha256:a")
	if err != nil || got.Tools[0].Name != "a" || !got.At.Equal(want.At) || !cmp.Equal(got.Tools[0].InputSchema, want.Tools[0].InputSchema) {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, damaged := range []string{"", "{", "null", `{"tools":[null],"at":"2026-01-01T00:00:00Z"}`, `[]`} {
		if err := os.WriteFile(f.file("sha256:a"), []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		if l, err := f.Load("sha256:a"); l != nil || err != nil {
			t.Errorf("%q: %v, %v", damaged, l, err)
		}
	}
}

// Summaries are stored beside the listing that they describe. The file of a listing
// is the same as that of earlier programs.
func TestFilesKeepSummaries(t *testing.T) {
	f := &Files{Dir: t.TempDir()}
	old := &Listing{At: time.Unix(1_700_000_000, 5), Tools: []*mcp.Tool{{Name: "a", InputSchema: map[string]any{"type": "object"}}}}
	newer := &Listing{At: old.At.Add(time.Nanosecond), Tools: []*mcp.Tool{{Name: "b", InputSchema: map[string]any{"type": "object"}}}}
	// storeEarlier stores a listing as earlier programs do.
	storeEarlier := func(l *Listing) {
		t.Helper()
		b, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f.file("d"), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := func(key, summary string) {
		t.Helper()
		if got, err := f.LoadSummary("d", key); err != nil || string(got) != summary {
			t.Errorf("summary %s is %q, %v, want %q", key, got, err, summary)
		}
	}
	load := func(tool string) *Listing {
		t.Helper()
		l, err := f.Load("d")
		if err != nil || l == nil || len(l.Tools) != 1 || l.Tools[0].Name != tool {
			t.Fatalf("loaded %+v, %v, want the tool %s", l, err, tool)
		}
		return l
	}
	store := func(l *Listing, key, summary string) {
		t.Helper()
		if err := f.StoreSummary("d", l, key, json.RawMessage(summary)); err != nil {
			t.Fatal(err)
		}
	}
	store(old, "k", "1") // there is no listing
	want("k", "")
	storeEarlier(old)
	want("k", "")
	l := load("a")
	before, err := os.ReadFile(f.file("d"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range maxSummaries + 1 {
		store(l, fmt.Sprint("k", i), fmt.Sprint(i))
	}
	want("k0", "")
	want("k1", "1")
	want("k4", "4")
	if l := load("a"); string(findSummary(l.summaries, "k2")) != "2" {
		t.Errorf("loaded the summaries %v", l.summaries)
	}
	if after, err := os.ReadFile(f.file("d")); err != nil || !bytes.Equal(after, before) {
		t.Errorf("the file of the listing has changed: %s, %v", after, err)
	}

	if err := f.Store("d", newer); err != nil {
		t.Fatal(err)
	}
	if after, err := os.ReadFile(f.file("d")); err != nil || !bytes.HasPrefix(after, []byte(`{"tools":`)) {
		t.Errorf("not the format of earlier programs: %s, %v", after, err)
	}
	want("k4", "")
	store(l, "k4", "4") // by a process that does not know the newer listing
	want("k4", "")
	load("b")
	store(newer, "k4", "5")
	want("k4", "5")
	if err := f.StoreSummary("d", newer, "k", json.RawMessage(strings.Repeat("1", maxSummary+1))); err == nil {
		t.Error("too large a summary was stored")
	}
	storeEarlier(old) // by an earlier program
	want("k4", "")
	store(newer, "k4", "5")
	want("k4", "")
	store(load("a"), "k4", "6")
	want("k4", "6")

	// Another process stores a listing while this one stores a summary.
	stale, err := os.ReadFile(f.summaryFile("d"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Store("d", newer); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.summaryFile("d"), stale, 0o600); err != nil {
		t.Fatal(err)
	}
	want("k4", "")
	if l := load("b"); l.summaries != nil {
		t.Errorf("loaded the summaries %v of another listing", l.summaries)
	}

	store(newer, "k4", "7")
	for _, damaged := range []string{"", "{", "[]", `{"at":1}`, `{"at":"2026-01-01T00:00:00Z","summaries":{}}`, `{"at":"2026-01-01T00:00:00Z","summaries":[{"key":"k4"`} {
		if err := os.WriteFile(f.summaryFile("d"), []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		want("k4", "")
		load("b")
	}
}
