package clientimport_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/clientimport"
	"github.com/loadout-dev/loadout/internal/secrets"
)

// withTokens returns a server with n secrets and a header of size bytes.
func withTokens(n, size int) map[string]any {
	headers := map[string]any{"X-Text": strings.Repeat("a", size)}
	for i := range n {
		headers[fmt.Sprintf("X-Token-%04d", i)] = fmt.Sprintf("aaaa%04d", i)
	}
	return map[string]any{"url": fmt.Sprintf("https://x%d.example.com/mcp", size), "headers": headers}
}

// raceEnabled is set by a file that is built with the race detector.
var raceEnabled bool

// planMany plans to add servers that are stored elsewhere. It returns the number of
// bytes that this allocates, or 0 with the race detector: a sync.Pool then drops
// values at random, and regexp allocates its buffers again.
func planMany(t *testing.T, all []clientimport.Definition) (*clientimport.Plan, uint64) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p, err := clientimport.PlanDefinitions(t.Context(), "", nil, "wegent", all)
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	if raceEnabled {
		return p, 0
	}
	return p, after.TotalAlloc - before.TotalAlloc
}

// The memory for the secrets of a server does not depend on the size of its
// configuration, and their number is limited.
func TestDefinitionsWithManySecrets(t *testing.T) {
	p, allocated := planMany(t, []clientimport.Definition{{Name: "s", Value: withTokens(200, 500_000)}})
	if s := p.Servers[0]; s.State != clientimport.Added || len(p.Unset) != 200 {
		t.Errorf("%s %q, %d secrets to set", s.State, s.Problems, len(p.Unset))
	}
	if allocated > 100<<20 {
		t.Errorf("allocated %d MiB", allocated>>20)
	}
	p, allocated = planMany(t, []clientimport.Definition{{Name: "s", Value: withTokens(10_000, 500_000)}})
	if s := p.Servers[0]; s.State != clientimport.Skipped || !slices.Equal(s.Problems, []string{"too many secrets (limit 200)"}) || len(p.Secrets) > 0 {
		t.Errorf("%s %q, %d secrets", s.State, s.Problems, len(p.Secrets))
	}
	if allocated > 100<<20 {
		t.Errorf("with too many secrets: allocated %d MiB", allocated>>20)
	}
}

// Each server costs the same, however many others have its name or its secrets.
func TestManyDefinitionsWithOneName(t *testing.T) {
	var all []clientimport.Definition
	for i := range 500 {
		all = append(all, clientimport.Definition{Name: "s", Value: map[string]any{"url": fmt.Sprint("https://x.example.com/", i, strings.Repeat("/a", 4_000))}})
	}
	p, allocated := planMany(t, all)
	for i, s := range p.Servers {
		switch {
		case i < 20 && s.State != clientimport.Added, i >= 20 && (s.State != clientimport.Skipped || s.Problems[0] != "too many servers with this name (limit 20)"):
			t.Fatalf("server %d: %s %q", i, s.State, s.Problems)
		}
	}
	if allocated > 500<<20 {
		t.Errorf("allocated %d MiB", allocated>>20)
	}
	all = nil
	for i := range 50 { // the names of all secrets start with the same 100 bytes
		all = append(all, clientimport.Definition{Name: strings.Repeat("n", 110) + fmt.Sprint(i), Value: withTokens(200, i)})
	}
	p, allocated = planMany(t, all)
	if len(p.Unset) != 10_000 || len(p.ChangedServers()) != 50 {
		t.Errorf("%d secrets to set, %d servers", len(p.Unset), len(p.ChangedServers()))
	}
	if allocated > 250<<20 {
		t.Errorf("with one name for all secrets: allocated %d MiB", allocated>>20)
	}
}

// Text of a configuration that looks like a reference to a secret, but is none, stays
// as it is, and a second run finds the server.
func TestDefinitionsWithTextLikeReferences(t *testing.T) {
	dir := t.TempDir()
	value := map[string]any{"command": "x", "args": []any{"$${{secrets.A}} ${!${{secrets.B}}}", "--token=abcd1234"}, "env": map[string]any{"A_TOKEN": "some-value-1", "B_TOKEN": "some-value-1"}}
	p := planOne(t, dir, "s", value)
	if want := []string{"WEGENT_S_A_TOKEN", "WEGENT_S_B_TOKEN", "WEGENT_S_TOKEN"}; !slices.Equal(p.Unset, want) {
		t.Errorf("secrets to set: %q, want %q", p.Unset, want)
	}
	if got, want := p.Servers[0].Config.Args, []string{"$${{secrets.A}} ${!${{secrets.B}}}", "--token=${{secrets.WEGENT_S_TOKEN}}"}; !slices.Equal(got, want) {
		t.Errorf("arguments %q, want %q", got, want)
	}
	if err := p.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p := planOne(t, dir, "s", value); p.Action != clientimport.None || p.Servers[0].State != clientimport.Present {
		t.Errorf("again: %s %+v", p.Action, p.Servers)
	}
}

func TestPlanDefinitionsCanBeCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	_, err := clientimport.PlanDefinitions(ctx, filepath.Join(dir, "servers.yaml"), secrets.New(filepath.Join(dir, "secrets")), "wegent", []clientimport.Definition{{Name: "s", Value: withTokens(1, 1)}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
