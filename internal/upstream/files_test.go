package upstream

import (
	"os"
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
