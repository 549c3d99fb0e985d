package assembly

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/usage"
	"github.com/loadout-dev/loadout/mcpserver"
	"github.com/loadout-dev/loadout/session"
	"github.com/loadout-dev/loadout/tools"
)

const (
	// durationDelay is how long durations are collected before they are stored. A
	// node that is killed loses those that were not stored yet.
	durationDelay = 5 * time.Second
	// maxDurations is the maximum number of rows that are collected until then.
	// More are not counted.
	maxDurations = 10_000
)

// durations collects how long users' tool calls and scripts take. It is safe for
// concurrent use.
type durations struct {
	store func([]store.Duration) // stores counts, or logs why it cannot

	mu      sync.Mutex               // guards the fields below
	counts  map[store.Duration]int64 // keys have no Calls
	timer   *time.Timer              // nil if nothing is collected
	closed  bool
	storing sync.Mutex // held while counts are stored
}

// add counts a call. skill is "" for a tool. It ignores calls that did not run,
// which have a duration of 0, and names that are too long.
func (d *durations) add(owner, skill, name string, took time.Duration) {
	if took <= 0 || name == "" || len(name) > store.MaxDurationName || len(skill) > store.MaxDurationName {
		return
	}
	day := time.Now().UTC().Truncate(24 * time.Hour)
	key := store.Duration{Owner: owner, Skill: skill, Name: name, Bucket: store.DurationBucket(took), LastUsed: day}
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, known := d.counts[key]; d.closed || !known && len(d.counts) >= maxDurations {
		return
	}
	if d.counts == nil {
		d.counts = map[store.Duration]int64{}
	}
	d.counts[key]++
	if d.timer == nil {
		d.timer = time.AfterFunc(durationDelay, d.flush)
	}
}

// flush stores the collected counts. If another flush is running, it first waits
// for that one.
func (d *durations) flush() {
	d.storing.Lock()
	defer d.storing.Unlock()
	d.mu.Lock()
	counts := d.counts
	if d.timer != nil {
		d.timer.Stop()
	}
	d.counts, d.timer = nil, nil
	d.mu.Unlock()
	if len(counts) == 0 {
		return
	}
	all := make([]store.Duration, 0, len(counts))
	for k, n := range counts {
		k.Calls = n
		all = append(all, k)
	}
	d.store(all)
}

// close stores the collected counts. Later calls are not counted.
func (d *durations) close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.flush()
}

// storeDurations stores counts. If that fails, they are lost.
func (k *Assembler) storeDurations(all []store.Duration) {
	ctx, stop := context.WithTimeout(context.Background(), openTimeout)
	defer stop()
	if err := k.o.DB.Durations.Add(ctx, all...); err != nil {
		k.o.Logger.Warn("couldn't save how long calls took", "error", err)
	}
}

// recordCall records the duration of a tool call.
func (b *base) recordCall(o tools.CallOutcome) {
	if !o.Refused {
		b.assembler.durations.add(string(b.principal.User), "", o.Tool, o.Duration)
	}
}

// RecordRun records the duration of u if u is the run of a script.
func (k *Setup) RecordRun(u mcpserver.Use) {
	if u.Script == "" || u.Refused {
		return
	}
	k.base.assembler.durations.add(string(k.base.principal.User), k.durationKey(u.Key), u.Script, u.Took)
}

// durationKey returns the identifier under which durations of a skill's scripts
// are stored: the ID of the skill, or its key if it is not in the library.
func (k *Setup) durationKey(key string) string {
	e, err := k.Runtime.Catalog().Snapshot().Get(key)
	if err != nil {
		return key
	}
	return cmp.Or(k.SkillID(session.ID{Name: e.Name, Origin: e.Origin, Dir: e.Dir}), key)
}

// AddLatencies sets the latency hints of tools, and of skills with scripts, that
// the user called before, in any conversation or through MCP.
func (k *Setup) AddLatencies(ctx context.Context, all []tools.Capability) error {
	k.base.assembler.durations.flush()
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
