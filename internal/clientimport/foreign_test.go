package clientimport_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/clientimport"
	"github.com/loadout-dev/loadout/internal/secrets"
)

func TestDefinitionsKeepOnlyNamesOfSecrets(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "servers.yaml")
	store := secrets.New(filepath.Join(dir, "secrets"))
	all := []clientimport.Definition{
		{Name: "images", Value: map[string]any{"type": "sse", "url": "https://images.example.com/sse", "headers": map[string]any{"Authorization": "Bearer s3cr3t-value"}}},
		{Name: "loadout", Value: map[string]any{"command": "loadout", "args": []any{"mcp"}}},
		{Name: "broken", Value: "text"},
	}
	plan := func() *clientimport.Plan {
		t.Helper()
		p, err := clientimport.PlanDefinitions(file, store, "wegent", all)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := plan()
	if p.Action != clientimport.Import || p.Servers[0].State != clientimport.Added || p.Servers[1].State != clientimport.Skipped || p.Servers[2].State != clientimport.Skipped {
		t.Fatalf("plan: %s %+v", p.Action, p.Servers)
	}
	if want := []string{"IMAGES_AUTHORIZATION"}; !slices.Equal(p.Unset, want) {
		t.Errorf("secrets to set: %q, want %q", p.Unset, want)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a plan wrote the servers file")
	}
	if err := p.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(text), "s3cr3t") || !strings.Contains(string(text), "Bearer ${{secrets.IMAGES_AUTHORIZATION}}") {
		t.Errorf("servers file: %v\n%s", err, text)
	}
	if names, err := store.List(); err != nil || len(names) > 0 {
		t.Errorf("stored secrets: %v, %v", names, err)
	}
	if p := plan(); p.Action != clientimport.None || p.Servers[0].State != clientimport.Present {
		t.Errorf("again: %s %+v", p.Action, p.Servers)
	}
	// The user sets another value: the server is still the same.
	if err := store.SetAll(t.Context(), map[string]string{"IMAGES_AUTHORIZATION": "another-value"}); err != nil {
		t.Fatal(err)
	}
	if p := plan(); p.Action != clientimport.None || len(p.Unset) > 0 {
		t.Errorf("after the secret is set: %s, to set %q", p.Action, p.Unset)
	}
}
