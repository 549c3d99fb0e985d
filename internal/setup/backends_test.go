package setup

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/sandbox/selection"
	"github.com/loadout-dev/loadout/sandbox"
)

// probedBackend counts its probes and closes.
type probedBackend struct {
	sandbox.Backend
	probes, closes atomic.Int32
}

func (b *probedBackend) Name() string              { return "native" }
func (b *probedBackend) Tier() sandbox.Tier        { return sandbox.Isolated }
func (b *probedBackend) ProbeKey() (string, error) { return "key", nil }
func (b *probedBackend) Close()                    { b.closes.Add(1) }
func (b *probedBackend) Probe(context.Context) (*sandbox.Report, error) {
	b.probes.Add(1)
	return &sandbox.Report{Backend: "native", Tier: sandbox.Isolated}, nil
}

// Close waits for the probes and closes the backends. Requests that outlive it
// neither probe nor keep processes.
func TestBackendsAfterClose(t *testing.T) {
	var p Backends
	add := func(name string) *probedBackend {
		b := &probedBackend{}
		p.share(backendSettings{name: name}, func() *selection.Backend {
			return selection.New(&selection.Options{Candidates: []sandbox.Backend{b}, Record: selection.NewRecord(filepath.Join(t.TempDir(), "state", "probe.json"))})
		})
		return b
	}
	b := add("")
	p.Prepare(t.Context())
	p.Close()
	if n, closes := b.probes.Load(), b.closes.Load(); n != 1 || closes != 1 {
		t.Errorf("%d probes, closed %d times", n, closes)
	}
	late := add("native")
	if late.closes.Load() != 1 {
		t.Error("a backend that was added after Close keeps a process")
	}
	p.Prepare(t.Context())
	p.Close()
	if late.probes.Load() != 0 {
		t.Error("probed after Close")
	}
}

// All conversations of a program use the same backend, unless their settings
// differ.
func TestBackendsAreShared(t *testing.T) {
	s := newSetup(t, t.TempDir())
	if one, other := s.NewBackend(&config.Config{}), s.NewBackend(&config.Config{}); one == other {
		t.Error("a backend is shared without Backends")
	}
	s.Backends = &Backends{}
	defer s.Backends.Close()
	c := &config.Config{}
	first := s.NewBackend(c)
	if s.NewBackend(&config.Config{}) != first {
		t.Error("equal settings have two backends")
	}
	other := *s
	other.Console.Getenv = func(name string) string { return map[string]string{"LOADOUT_STATE": "/elsewhere"}[name] }
	seen := map[*selection.Backend]string{first: "defaults"}
	for name, b := range map[string]*selection.Backend{
		"image":   s.NewBackend(&config.Config{Sandbox: config.Sandbox{Image: "debian"}}),
		"backend": s.NewBackend(&config.Config{Sandbox: config.Sandbox{Backend: "native"}}),
		"tier":    s.NewBackend(&config.Config{Sandbox: config.Sandbox{MinTier: 2}}),
		"state":   other.NewBackend(c),
	} {
		if seen[b] != "" {
			t.Errorf("%s: the backend is that of %s", name, seen[b])
		}
		seen[b] = name
	}
}
