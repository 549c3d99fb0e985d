package upstream

import (
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

// Summaries are stored with the listing that they describe. Files of earlier
// programs have none, and earlier programs ignore them.
func TestFilesKeepSummaries(t *testing.T) {
	f := &Files{Dir: t.TempDir()}
	old := &Listing{At: time.Unix(1_700_000_000, 5), Tools: []*mcp.Tool{{Name: "a", InputSchema: map[string]any{"type": "object"}}}}
	earlier, err := json.Marshal(old) // as earlier programs wrote it
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.file("d"), earlier, 0o600); err != nil {
		t.Fatal(err)
	}
	want := func(key, summary string) {
		t.Helper()
		if got, err := f.LoadSummary("d", key); err != nil || string(got) != summary {
			t.Errorf("summary %s is %q, %v, want %q", key, got, err, summary)
		}
	}
	store := func(l *Listing, key, summary string) {
		t.Helper()
		if err := f.StoreSummary("d", l, key, json.RawMessage(summary)); err != nil {
			t.Fatal(err)
		}
	}
	want("k", "")
	l, err := f.Load("d")
	if err != nil || len(l.Tools) != 1 {
		t.Fatalf("a file of an earlier program: %+v, %v", l, err)
	}
	for i := range maxSummaries + 1 {
		store(l, fmt.Sprint("k", i), fmt.Sprint(i))
	}
	want("k0", "")
	want("k1", "1")
	want("k4", "4")
	if l, err := f.Load("d"); err != nil || len(l.Tools) != 1 || !l.At.Equal(old.At) || string(findSummary(l.summaries, "k2")) != "2" {
		t.Errorf("loaded %+v, %v", l, err)
	}
	b, err := os.ReadFile(f.file("d"))
	if err != nil {
		t.Fatal(err)
	}
	var before struct { // what earlier programs read
		Tools []*mcp.Tool `json:"tools"`
		At    time.Time   `json:"at"`
	}
	if err := json.Unmarshal(b, &before); err != nil || len(before.Tools) != 1 || !before.At.Equal(old.At) {
		t.Errorf("an earlier program reads %+v, %v", before, err)
	}

	newer := &Listing{At: old.At.Add(time.Nanosecond), Tools: old.Tools}
	if err := f.Store("d", newer); err != nil {
		t.Fatal(err)
	}
	want("k4", "")
	store(old, "k4", "4") // by a process that does not know the newer listing
	want("k4", "")
	store(newer, "k4", "5")
	want("k4", "5")
	if err := f.StoreSummary("d", newer, "k", json.RawMessage(strings.Repeat("1", maxSummary+1))); err == nil {
		t.Error("too large a summary was stored")
	}
	for _, damaged := range []string{"", "{", "[]", `{"at":1}`, `{"at":"2026-01-01T00:00:00Z","summaries":{}}`, `{"at":"2026-01-01T00:00:00Z","summaries":[{"key":"k4"`} {
		if err := os.WriteFile(f.file("d"), []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		want("k4", "")
	}
}
