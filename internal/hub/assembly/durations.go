package assembly

import (
	"cmp"
	"context"
	"time"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/mcpserver"
	"github.com/loadout-dev/loadout/session"
	"github.com/loadout-dev/loadout/tools"
)

const (
	// durationDelay is how long durations are collected before they are stored.
	durationDelay = 5 * time.Second
	// maxDurations is the maximum number of rows that are collected until then.
	// More are not counted.
	maxDurations = 10_000
)

// durations counts how long users' tool calls and scripts take. The keys have no
// Calls.
type durations map[store.Duration]int64

// add counts a call. skill is "" for a tool. It ignores calls that did not run,
// which have a duration of 0, and names that are too long.
func (d *durations) add(owner, skill, name string, took time.Duration) {
	if took <= 0 || name == "" || len(name) > store.MaxDurationName || len(skill) > store.MaxDurationName {
		return
	}
	day := time.Now().UTC().Truncate(24 * time.Hour)
	key := store.Duration{Owner: owner, Skill: skill, Name: name, Bucket: store.DurationBucket(took), LastUsed: day}
	if _, known := (*d)[key]; !known && len(*d) >= maxDurations {
		return
	}
	if *d == nil {
		*d = durations{}
	}
	(*d)[key]++
}

// rows returns the counts as rows.
func (d durations) rows() []store.Duration {
	all := make([]store.Duration, 0, len(d))
	for k, n := range d {
		k.Calls = n
		all = append(all, k)
	}
	return all
}

// storeDurations stores counts. If that fails, they are lost.
func (k *Assembler) storeDurations(ctx context.Context, all *durations) {
	ctx, stop := context.WithTimeout(ctx, openTimeout)
	defer stop()
	if err := k.o.DB.Durations.Add(ctx, all.rows()...); err != nil {
		k.o.Logger.Warn("couldn't save how long calls took", "error", err)
	}
}

// recordDuration counts a call of a user.
func (b *base) recordDuration(skill, name string, took time.Duration) {
	b.assembler.durations.Update(func(all *durations) { all.add(string(b.principal.User), skill, name, took) })
}

// recordCall records the duration of a tool call.
func (b *base) recordCall(o tools.CallOutcome) {
	if !o.Refused {
		b.recordDuration("", o.Tool, o.Duration)
	}
}

// RecordRun records the duration of a script run. It ignores other uses of
// skills.
func (k *Setup) RecordRun(u mcpserver.Use) {
	if u.Script != "" && !u.Refused {
		k.base.recordDuration(k.durationKey(u.Key), u.Script, u.Took)
	}
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
