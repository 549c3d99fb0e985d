package toolresult_test

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadout-dev/loadout/internal/toolresult"
)

// Each owner releases memory once after its results, and never after it was closed.
func TestMemoryIsReleasedUntilClose(t *testing.T) {
	big := json.RawMessage(`{"content":[{"type":"text","text":"` + strings.Repeat("a", 2<<20) + `"}]}`)
	releases := func(m *toolresult.Memory, during func()) uint32 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range 2 {
			if _, err := toolresult.Decode(toolresult.WithForwarding(t.Context(), m), big); err != nil {
				t.Error(err)
			}
		}
		during()
		time.Sleep(time.Minute)
		runtime.ReadMemStats(&after)
		return after.NumForcedGC - before.NumForcedGC
	}
	for range 2 { // the timer of another bubble must not be used
		synctest.Test(t, func(*testing.T) {
			var m toolresult.Memory
			if n := releases(&m, func() {}); n == 0 {
				t.Error("memory is not released")
			}
			if n := releases(nil, func() {}); n > 0 {
				t.Errorf("without an owner, memory is released %d times", n)
			}
			if n := releases(&m, m.Close); n > 0 {
				t.Errorf("after Close, memory is released %d times", n)
			}
			if n := releases(&m, func() {}); n > 0 {
				t.Errorf("long after Close, memory is released %d times", n)
			}
		})
	}
}
