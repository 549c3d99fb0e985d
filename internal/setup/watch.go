package setup

import (
	"context"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/profile"
	"github.com/loadout-dev/loadout/policy"
)

// ConfigWatcher applies changes in the configuration files to a running server:
// the kill switch, the allowlist and the rules. Revoking a permission must take
// effect immediately.
type ConfigWatcher struct {
	setup   *Setup
	rt      *loadout.Runtime
	set     *Toolset
	profile *profile.Profile // nil if all skills are used
	chosen  []string         // the profile's skills
	mu      sync.Mutex
	filter  catalog.Filter
	stamps  map[string]fileState
	failed  error // error of the last reload
}

// fileState is the state of a file, or the error from reading it.
type fileState struct {
	size, time int64
	mode       fs.FileMode
	fault      string
}

// watchInterval is how often the files are checked for changes.
const watchInterval = 500 * time.Millisecond

// NewConfigWatcher returns a watcher for a runtime and its servers. It does
// nothing until Start or Refresh is called.
func (s *Setup) NewConfigWatcher(rt *loadout.Runtime, c *config.Config, set *Toolset, p *profile.Profile) *ConfigWatcher {
	f := &ConfigWatcher{setup: s, rt: rt, set: set, profile: p, chosen: ProfileSkills(p), filter: catalogFilter(c)}
	f.stamps = s.statConfigFiles()
	return f
}

// statConfigFiles returns the state of all configuration files. It runs before
// each tool call.
func (s *Setup) statConfigFiles() map[string]fileState {
	out := map[string]fileState{}
	for _, p := range s.ConfigInput().Candidates() {
		if fi, err := os.Stat(p); err == nil {
			out[p] = fileState{size: fi.Size(), time: fi.ModTime().UnixNano(), mode: fi.Mode()}
		} else {
			out[p] = fileState{fault: err.Error()}
		}
	}
	return out
}

// Start watches the files until ctx is done or stop is called. stop waits for
// the watcher to finish.
func (f *ConfigWatcher) Start(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for tick := time.Tick(watchInterval); ; {
			select {
			case <-ctx.Done():
				return
			case <-tick:
				_ = f.Refresh(ctx) // the next call reports the error
			}
		}
	}()
	return func() { cancel(); <-done }
}

// Refresh reloads the configuration if one of its files changed. If the
// configuration cannot be read, Refresh disables everything, because the change
// may have revoked any permission.
func (f *ConfigWatcher) Refresh(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.setup.statConfigFiles()
	if maps.Equal(now, f.stamps) {
		return f.failed
	}
	f.stamps = now
	filter := catalog.Filter{Disabled: true}
	quiet := *f.setup
	quiet.Quiet = true
	c, err := quiet.LoadConfig(nil)
	rules, _ := policy.ParseRules([]string{"deny"}) // deny everything if the configuration is unreadable
	if f.failed = err; err == nil {
		filter, rules = catalogFilter(c), quiet.policyRules(c, f.profile).Append(f.set.rules)
	}
	f.set.SetRules(rules)
	filter.Select = f.chosen
	if filter.Disabled == f.filter.Disabled && filter.Shell == f.filter.Shell && slices.Equal(filter.Allow, f.filter.Allow) {
		return f.failed
	}
	if err := f.rt.Catalog().SetFilter(filter); err != nil {
		f.failed = err
		_ = f.rt.Catalog().SetFilter(catalog.Filter{Disabled: true}) // cannot fail: the filter has no patterns
		return err
	}
	f.filter = filter
	if !filter.Disabled {
		return f.rt.Catalog().Reload(ctx)
	}
	return f.failed
}
