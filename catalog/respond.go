package catalog

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/skill"
)

// graceTime is the time that a scan may take after its deadline. A scan that
// takes longer is considered blocked in a system call.
const graceTime = 2 * time.Second

// blockedError is returned for a source whose file system does not respond.
type blockedError struct {
	after time.Duration
	done  <-chan struct{} // closed when the file system responded
}

func (e *blockedError) Error() string {
	return fmt.Sprintf("file system did not respond within %v", e.after.Round(time.Second))
}

// diagnostic converts the error to a diagnostic.
func (e *blockedError) diagnostic() skill.Diagnostic {
	return skill.Diagnostic{Severity: skill.Error, Code: "not-responding", Message: "not searched: " + e.Error(),
		Fix: "check its file system, for example a network mount; new skills are added when it responds"}
}

// scanGuard runs the scans of a source, one at a time. A system call that blocks
// cannot be interrupted, so scans run in their own goroutine.
type scanGuard struct {
	mu   sync.Mutex      // guards done
	done <-chan struct{} // closed when the scan in progress ends; nil if there is none
}

// run calls scan and waits for it to end. If ctx is done or the scan takes
// longer than limit, run stops waiting and returns the error of ctx or a
// [*blockedError], while the scan continues in the background.
func (g *scanGuard) run(ctx context.Context, limit time.Duration, scan func() (Listing, error)) (Listing, error) {
	limit += graceTime
	timer := time.NewTimer(limit)
	defer timer.Stop()
	done := make(chan struct{})
	for before := g.begin(done); before != nil; before = g.begin(done) {
		select {
		case <-before:
		case <-ctx.Done():
			return Listing{}, context.Cause(ctx)
		case <-timer.C:
			return Listing{}, &blockedError{limit, before}
		}
	}
	var l Listing
	var err error
	go func() {
		defer g.end(done)
		l, err = scan()
	}()
	select {
	case <-done:
		return l, err
	case <-ctx.Done():
		return Listing{}, context.Cause(ctx)
	case <-timer.C:
		return Listing{}, &blockedError{limit, done}
	}
}

// begin registers a scan that closes done when it ends. If another scan is in
// progress, begin returns the channel of that scan instead.
func (g *scanGuard) begin(done chan struct{}) (before <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.done == nil {
		g.done = done
		return nil
	}
	return g.done
}

func (g *scanGuard) end(done chan struct{}) {
	g.mu.Lock()
	g.done = nil
	g.mu.Unlock()
	close(done)
}

// resume reads a source once its file system responds, and publishes the result.
func (c *Catalog) resume(ctx context.Context, s *sourceState, e *blockedError) {
	<-e.done
	for again := true; again; {
		again = c.publishLate(ctx, s, s.list(ctx, nil))
	}
}
