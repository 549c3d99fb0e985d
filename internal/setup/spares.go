package setup

import (
	"context"
	"sync"

	"github.com/loadout-dev/loadout/internal/sandbox/selection"
)

// Spares are the sandbox backends of a program that runs many scripts. They keep
// a started process for the next script. The zero value is ready to use.
type Spares struct {
	mu  sync.Mutex
	all []*selection.Backend // guarded by mu
	// tests counts the goroutines of Test.
	tests sync.WaitGroup
}

func (p *Spares) add(b *selection.Backend) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, b)
}

func (p *Spares) backends() []*selection.Backend {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]*selection.Backend(nil), p.all...)
}

// Test tests the preferred sandbox in the background, so that the first script
// need not wait for it: see [selection.Backend.Prepare].
func (p *Spares) Test(ctx context.Context) {
	for _, b := range p.backends() {
		p.tests.Go(func() { b.Prepare(ctx) })
	}
}

// Close ends the processes that are kept. Cancel the context of [Spares.Test]
// first.
func (p *Spares) Close() {
	p.tests.Wait()
	for _, b := range p.backends() {
		b.Close()
	}
}
