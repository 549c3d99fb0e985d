package usage

import (
	"fmt"
	"strings"
)

// ToolLatency describes how long the recorded calls of an MCP tool took, such as
// "p50 12 ms, p95 80 ms over 3 calls". It returns "" if there are none.
func (r *Report) ToolLatency(name string) string {
	t, _ := r.Tool(name)
	return t.latency("call")
}

// ScriptLatency describes how long the recorded runs of the three most used
// scripts of a skill took. It returns "" if there are none. The text contains the
// paths of the scripts.
func (r *Report) ScriptLatency(key string) string {
	const most = 3
	var all []string
	for _, t := range r.Scripts { // most used first
		if text := t.latency("run"); t.Key == key && text != "" && len(all) < most {
			all = append(all, t.Name+" "+text)
		}
	}
	return strings.Join(all, "; ")
}

// latency formats the latency percentiles of the measured calls.
func (t Tool) latency(noun string) string {
	if t.Measured == 0 {
		return ""
	}
	if t.Measured > 1 {
		noun += "s"
	}
	return fmt.Sprintf("p50 %s, p95 %s over %d %s", FormatMillis(t.P50), FormatMillis(t.P95), t.Measured, noun)
}

// FormatMillis formats milliseconds with a unit.
func FormatMillis(ms float64) string {
	switch {
	case ms < 10:
		return fmt.Sprintf("%.1f ms", ms)
	case ms < 10_000:
		return fmt.Sprintf("%.0f ms", ms)
	}
	return fmt.Sprintf("%.1f s", ms/1000)
}
