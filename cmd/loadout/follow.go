package main

import (
	"context"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/profile"
)

// follower keeps the kill switch, the allow-list and the rules of a running server
// as the configuration files say: withdrawing them has to count at once.
type follower struct {
	a      *app
	rt     *loadout.Runtime
	set    *toolset
	ghost  *profile.Profile // nil for all skills
	chosen []string         // its skills
	mu     sync.Mutex
	filter catalog.Filter
	stamps map[string]stamp
	failed error // why the configuration cannot be read
}

// stamp is the state of a file, or why there is none.
type stamp struct {
	size, time int64
	fault      string
}

// followInterval is how often the files are looked at.
const followInterval = 500 * time.Millisecond

func (a *app) newFollower(rt *loadout.Runtime, c *config.Config, set *toolset, p *profile.Profile) *follower {
	f := &follower{a: a, rt: rt, set: set, ghost: p, chosen: chosen(p), filter: filterOf(c)}
	f.stamps = f.look()
	return f
}

func filterOf(c *config.Config) catalog.Filter {
	return catalog.Filter{Disabled: !c.Skills.Enabled, Allow: c.Skills.Allow, Shell: c.Skills.Shell}
}

// look notes the state of all files that a configuration is made of. It is called
// before each call of a tool.
func (f *follower) look() map[string]stamp {
	out := map[string]stamp{}
	for _, p := range f.a.configInput().Candidates() {
		if fi, err := os.Stat(p); err == nil {
			out[p] = stamp{size: fi.Size(), time: fi.ModTime().UnixNano()}
		} else {
			out[p] = stamp{fault: err.Error()}
		}
	}
	return out
}

// start follows the files until ctx ends or stop is called, which waits.
func (f *follower) start(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for tick := time.Tick(followInterval); ; {
			select {
			case <-ctx.Done():
				return
			case <-tick:
				_ = f.refresh(ctx) // a fault is told to whoever wants to run something
			}
		}
	}()
	return func() { cancel(); <-done }
}

// refresh reads the configuration again where a file of it has changed. One that
// cannot be read switches everything off: nobody knows what it withdraws.
func (f *follower) refresh(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.look()
	if maps.Equal(now, f.stamps) {
		return f.failed
	}
	f.stamps = now
	filter := catalog.Filter{Disabled: true}
	quiet := *f.a
	quiet.quiet = true
	c, err := quiet.settings(nil)
	rules, _ := policy.ParseRules([]string{"deny"}) // what cannot be read denies
	if f.failed = err; err == nil {
		filter, rules = filterOf(c), quiet.rules(c, f.ghost).Then(f.set.rules)
	}
	f.set.SetRules(rules)
	filter.Select = f.chosen
	if filter.Disabled == f.filter.Disabled && filter.Shell == f.filter.Shell && slices.Equal(filter.Allow, f.filter.Allow) {
		return f.failed
	}
	if err := f.rt.Catalog().SetFilter(filter); err != nil {
		f.failed = err
		_ = f.rt.Catalog().SetFilter(catalog.Filter{Disabled: true}) // has no pattern that could be wrong
		return err
	}
	f.filter = filter
	if !filter.Disabled {
		return f.rt.Catalog().Reload(ctx)
	}
	return f.failed
}
