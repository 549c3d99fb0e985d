package toolresult

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

const (
	// releaseDelay is the time after the last very large result at which memory is
	// released.
	releaseDelay = 2 * time.Second

	// maxLive is the maximum size of the live heap, in bytes, at which memory is
	// released. In a larger program, a collection costs more than it gives back.
	maxLive = 256 << 20
)

// A Memory returns the memory of very large results to the system after they are
// sent, because the garbage collector would keep several times their size. The zero
// value is ready to use. A Memory is safe for concurrent use. The caller must call Close.
type Memory struct {
	mu     sync.Mutex
	timer  *time.Timer
	closed bool
}

// scheduleRelease releases memory after releaseDelay, unless it is called again before then.
func (m *Memory) scheduleRelease() {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closed:
	case m.timer == nil:
		m.timer = time.AfterFunc(releaseDelay, release)
	default:
		m.timer.Reset(releaseDelay)
	}
}

// Close cancels a release that has not begun.
func (m *Memory) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	if m.timer != nil {
		m.timer.Stop()
	}
}

func release() {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	if metrics.Read(live); live[0].Value.Uint64() > maxLive {
		return
	}
	runtime.GC() // package json keeps its buffers for one more collection
	debug.FreeOSMemory()
}
