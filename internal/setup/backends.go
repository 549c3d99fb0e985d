package setup

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/loadout-dev/loadout/internal/sandbox/selection"
	"github.com/loadout-dev/loadout/sandbox"
)

// Backends are the sandbox backends of a program that runs many scripts. They
// keep a spare process for the next script. Skills that are opened with the same
// settings share a backend. The zero value is ready to use.
type Backends struct {
	mu     sync.Mutex
	shared map[backendSettings]*selection.Backend // guarded by mu
	closed bool                                   // guarded by mu
	// probes counts the goroutines of Prepare. Add is called only while mu is held
	// and closed is false.
	probes sync.WaitGroup
}

// backendSettings are the settings on which a backend depends.
type backendSettings struct {
	name, image, cache, state string
	minTier                   sandbox.Tier
	managed                   bool
}

// share returns the backend with the given settings. If there is none, it calls
// create.
func (p *Backends) share(o backendSettings, create func() *selection.Backend) *selection.Backend {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.shared[o]
	if b == nil {
		b = create()
		if p.shared == nil {
			p.shared = map[backendSettings]*selection.Backend{}
		}
		p.shared[o] = b
		if p.closed {
			b.Close()
		}
	}
	return b
}

// Prepare chooses the sandboxes in the background, so that the first script need
// not wait for the probes: see [selection.Backend.Prepare]. After Close, it does
// nothing.
func (p *Backends) Prepare(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	for _, b := range p.shared {
		p.probes.Go(func() { b.Prepare(ctx) })
	}
}

// Close ends the spare processes, and waits for Prepare. Cancel the context of
// Prepare first.
func (p *Backends) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.probes.Wait()
	p.mu.Lock()
	all := slices.Collect(maps.Values(p.shared))
	p.mu.Unlock()
	for _, b := range all {
		b.Close()
	}
}
