//go:build linux

package native_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/loadout-dev/loadout/internal/sandbox/execute"
	"github.com/loadout-dev/loadout/internal/sandbox/native"
	"github.com/loadout-dev/loadout/internal/sandbox/selection"
	"github.com/loadout-dev/loadout/sandbox"
)

// countedBackend counts the probes of a backend.
type countedBackend struct {
	*native.Backend
	probes int
}

func (b *countedBackend) Probe(ctx context.Context) (*sandbox.Report, error) {
	b.probes++
	return b.Backend.Probe(ctx)
}

// The second process on an unchanged machine needs no probe, and its sandbox is
// the same.
func TestProbeIsRemembered(t *testing.T) {
	if _, err := backend(t).ProbeKey(); err != nil {
		t.Skip(err)
	}
	path := filepath.Join(t.TempDir(), "state", "probe.json")
	b := &countedBackend{Backend: native.New(&native.Options{Stage: stagePath})}
	var reports []*sandbox.Report
	for range 3 {
		c := selection.New(&selection.Options{Candidates: []sandbox.Backend{b}, Record: selection.NewRecord(path)})
		chosen, rep, err := c.Choose(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		reports = append(reports, rep)
		res, err := execute.Run(t.Context(), chosen, &sandbox.Spec{}, &sandbox.Cmd{Args: []string{"/bin/sh", "-c", "grep NoNewPrivs /proc/self/status"}}, nil)
		if err != nil || string(res.Stdout) != "NoNewPrivs:\t1\n" || res.Backend != "native" || res.Tier != sandbox.Isolated {
			t.Errorf("%+v, %v", res, err)
		}
		if b.probes != 1 {
			t.Errorf("%d probes", b.probes)
		}
	}
	if len(reports[0].Layers) == 0 || len(reports[2].Layers) != len(reports[0].Layers) || reports[2].Tier != reports[0].Tier {
		t.Errorf("reports %+v and %+v", reports[0], reports[2])
	}
	b.Backend = native.New(&native.Options{Stage: stagePath, NoGroups: true})
	c := selection.New(&selection.Options{Candidates: []sandbox.Backend{b}, Record: selection.NewRecord(path)})
	if _, _, err := c.Choose(t.Context()); err != nil || b.probes != 2 {
		t.Errorf("other options: %d probes, %v", b.probes, err)
	}
}
