package native

import (
	"time"

	"github.com/loadout-dev/loadout/sandbox"
)

// DefaultSpareIdle is how long a spare waits for a sandbox.
const DefaultSpareIdle = spareIdle

// SparePID waits until no spare is being launched, and returns the PID of the spare, or 0
// if there is none.
func (b *Backend) SparePID() int {
	for {
		b.spares.mu.Lock()
		launching, sp := b.spares.launching, b.spares.spare
		b.spares.mu.Unlock()
		switch {
		case launching:
			time.Sleep(time.Millisecond)
		case sp == nil:
			return 0
		default:
			return sp.stage.PID()
		}
	}
}

// SetSpareIdle sets how long a spare waits for a sandbox.
func (b *Backend) SetSpareIdle(d time.Duration) { b.spares.idle = d }

// SetNoGroups makes the backend start spares and sandboxes without control
// groups, or with them again.
func (b *Backend) SetNoGroups(no bool) { b.opts.NoGroups = no }

// EndSpare ends the spare, if there is one.
func (b *Backend) EndSpare() {
	b.SparePID()
	if sp := b.spares.acquire(); sp != nil {
		sp.end()
	}
}

// StagePID returns the PID of the first process of a sandbox.
func StagePID(s sandbox.Sandbox) int { return s.(*instance).PID() }

// SetMountInfo sets the file with the list of mounts.
func (b *Backend) SetMountInfo(name string) { b.spares.mountInfo = name }
