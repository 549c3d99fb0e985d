package native

import (
	"testing"
	"time"

	"github.com/loadout-dev/loadout/sandbox"
)

// DefaultSpareIdle is how long a spare waits for a sandbox.
const DefaultSpareIdle = spareIdle

// SparePID waits until no spare is being launched or ended, and returns the PID
// of the spare, or 0 if there is none.
func (b *Backend) SparePID() int {
	b.spares.tasks.Wait()
	b.spares.mu.Lock()
	defer b.spares.mu.Unlock()
	if b.spares.spare == nil {
		return 0
	}
	return b.spares.spare.stage.PID()
}

// SetSpareIdle sets how long a spare waits for a sandbox.
func (b *Backend) SetSpareIdle(d time.Duration) { b.spares.idle = d }

// SetNoGroups makes the backend start spares and sandboxes without control
// groups, or with them again.
func (b *Backend) SetNoGroups(no bool) { b.opts.NoGroups = no }

// EndSpare ends the spare, if there is one.
func (b *Backend) EndSpare() {
	b.spares.tasks.Wait()
	if sp := b.spares.take(); sp != nil {
		sp.end()
	}
}

// StagePID returns the PID of the first process of a sandbox.
func StagePID(s sandbox.Sandbox) int { return s.(*instance).PID() }

// ChangeMounts makes the list of mounts look as if a file system had been
// mounted.
func ChangeMounts(t *testing.T) {
	old := readMounts
	t.Cleanup(func() { readMounts = old })
	readMounts = func() ([]byte, error) {
		b, err := old()
		return append(b, "one more\n"...), err
	}
}
