package assembly

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/usage"
	"github.com/loadout-dev/loadout/tools"
)

// AddLatencies sets the latency hints of tools, and of skills with scripts, that
// the user called before, in any conversation or through MCP.
func (k *Setup) AddLatencies(ctx context.Context, all []tools.Capability) error {
	if err := k.base.assembler.durations.Flush(ctx); err != nil {
		return err
	}
	found, err := k.base.assembler.o.DB.Durations.List(ctx, string(k.base.principal.User))
	if err != nil {
		return err
	}
	report := latencyReport(found)
	for i := range all {
		c := &all[i]
		hint := report.ToolLatency(c.Name)
		if c.Kind == "skill" {
			hint = report.ScriptLatency(k.durationKey(c.Key))
		}
		c.LatencyHint = cmp.Or(hint, c.LatencyHint)
	}
	return nil
}

// latencyReport returns the percentiles of a user's durations. all must be in
// the order of [store.Durations.List]. In the report, scripts with the most
// runs come first.
func latencyReport(all []store.Duration) *usage.Report {
	out := &usage.Report{}
	for len(all) > 0 {
		n := slices.IndexFunc(all, func(d store.Duration) bool { return d.Skill != all[0].Skill || d.Name != all[0].Name })
		if n < 0 {
			n = len(all)
		}
		t := usage.Tool{Name: all[0].Name, Key: all[0].Skill, P50: bucketPercentile(all[:n], 50), P95: bucketPercentile(all[:n], 95)}
		for _, d := range all[:n] {
			t.Measured += int(d.Calls)
		}
		if all[0].Skill == "" {
			out.Tools = append(out.Tools, t)
		} else {
			out.Scripts = append(out.Scripts, t)
		}
		all = all[n:]
	}
	slices.SortStableFunc(out.Scripts, func(a, b usage.Tool) int { return cmp.Compare(b.Measured, a.Measured) })
	return out
}

// bucketPercentile returns the p-th percentile in milliseconds of durations that
// are sorted by bucket.
func bucketPercentile(sorted []store.Duration, p int64) float64 {
	var total, sum int64
	for _, d := range sorted {
		total += d.Calls
	}
	for _, d := range sorted {
		if sum += d.Calls; 100*sum >= p*total {
			return float64(store.BucketDuration(d.Bucket)) / float64(time.Millisecond)
		}
	}
	return 0
}
