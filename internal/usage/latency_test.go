package usage_test

import (
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/usage"
)

// Latencies are those of calls that ran: neither refused ones nor those that never
// reached the server count.
func TestLatenciesCountCallsThatRan(t *testing.T) {
	path := newPath(t)
	l := usage.NewLog(path, nil)
	note := func(kind usage.Kind, tool, key string, took time.Duration, outcome usage.Outcome) {
		l.Note(usage.Use{Interface: "mcp", Kind: kind, Tool: tool, Skill: key, Key: key, Took: took, Outcome: outcome})
	}
	note(usage.KindCall, "a__send", "", 20*time.Millisecond, usage.OK)
	note(usage.KindCall, "a__send", "", 12*time.Second, usage.Failed)
	note(usage.KindCall, "a__send", "", 0, usage.Refused)
	note(usage.KindCall, "a__send", "", time.Hour, usage.Refused)
	note(usage.KindCall, "a__send", "", 0, usage.Failed) // not sent
	note(usage.KindCall, "a__never", "", 0, usage.Refused)
	for i, name := range []string{"1.py", "2.py", "3.py", "4.py"} {
		for range 5 - i {
			note(usage.KindScript, name, "user/pdf", 1500*time.Microsecond, usage.OK)
		}
	}
	note(usage.KindScript, "1.py", "user/csv", 30*time.Millisecond, usage.OK)
	note(usage.KindScript, "1.py", "user/csv", 0, usage.Refused)
	r := read(t, path)
	for name, want := range map[string]string{"a__send": "p50 20 ms, p95 12.0 s over 2 calls", "a__never": "", "other": ""} {
		if got := r.ToolLatency(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	for key, want := range map[string]string{
		"user/pdf": "1.py p50 1.5 ms, p95 1.5 ms over 5 runs; 2.py p50 1.5 ms, p95 1.5 ms over 4 runs; 3.py p50 1.5 ms, p95 1.5 ms over 3 runs",
		"user/csv": "1.py p50 30 ms, p95 30 ms over 1 run", "": "",
	} {
		if got := r.ScriptLatency(key); got != want {
			t.Errorf("%s: got %q, want %q", key, got, want)
		}
	}
	if tool, _ := r.Tool("a__send"); tool.Calls != 5 || tool.Refused != 2 {
		t.Errorf("the report has %+v", tool)
	}
}
