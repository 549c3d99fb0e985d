package assembly

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/store"
)

func TestLatencyReport(t *testing.T) {
	at := func(skill, name string, took time.Duration, calls int64) store.Duration {
		return store.Duration{Skill: skill, Name: name, Bucket: store.DurationBucket(took), Calls: calls}
	}
	r := latencyReport([]store.Duration{
		at("", "a__look", 8*time.Millisecond, 90), at("", "a__look", 256*time.Millisecond, 5), at("", "a__look", 16*time.Second, 5),
		at("", "a__pay", time.Millisecond, 1),
		at("", "a__sum", 8*time.Millisecond, 94), at("", "a__sum", 256*time.Millisecond, 6),
		at("s1", "one.py", 2*time.Millisecond, 1), at("s1", "two.py", 2*time.Millisecond, 3),
	})
	for got, want := range map[string]string{
		r.ToolLatency("a__look"): "p50 8.2 ms, p95 262 ms over 100 calls",
		r.ToolLatency("a__pay"):  "p50 1.0 ms, p95 1.0 ms over 1 call",
		r.ToolLatency("a__sum"):  "p50 8.2 ms, p95 262 ms over 100 calls",
		r.ScriptLatency("s1"):    "two.py p50 2.0 ms, p95 2.0 ms over 3 runs; one.py p50 2.0 ms, p95 2.0 ms over 1 run",
		r.ScriptLatency("s2"):    "",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Durations are counted within limits.
func TestDurationsAreCounted(t *testing.T) {
	var d durations
	d.add("ada", "", "a__look", time.Second)
	d.add("ada", "", "a__look", time.Second)
	d.add("ada", "", "", time.Second)
	d.add("ada", "", "did not run", 0)
	d.add("ada", "", strings.Repeat("x", 513), time.Second)
	d.add("ada", strings.Repeat("x", 513), "run.sh", time.Second)
	if all := d.rows(); len(all) != 1 || all[0].Calls != 2 || all[0].Name != "a__look" || all[0].Owner != "ada" {
		t.Errorf("counted %+v", all)
	}
	for i := range maxDurations + 10 {
		d.add("ada", "", fmt.Sprint(i), time.Second)
	}
	d.add("ada", "", "a__look", time.Second)
	if len(d) != maxDurations {
		t.Errorf("%d rows, want %d", len(d), maxDurations)
	}
}
