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
	"github.com/loadout-dev/loadout/internal/pathwatch"
	"github.com/loadout-dev/loadout/internal/profile"
	"github.com/loadout-dev/loadout/policy"
)

// ConfigWatcher applies changes in the configuration files to a running server:
// the kill switch, the allowlist and the rules. Revoking a permission must take
// effect immediately, so each tool call checks for changes first.
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

	started   bool             // whether paths may be used, until stop
	unwatched bool             // whether the paths cannot be watched
	paths     *pathwatch.Watch // created before stamps; nil if every call stats the files
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

// statConfigFiles returns the states of all configuration files, and of the files on
// which the trust of a project depends, because the rules of a project apply only
// while the user trusts it.
func (s *Setup) statConfigFiles() map[string]fileState {
	out := map[string]fileState{}
	in := s.ConfigInput()
	for _, p := range append(in.NamedFiles(), s.projectPaths(in.WorkDir)...) {
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
	f.watch()
	go func() {
		defer close(done)
		defer f.unwatch()
		for tick := time.Tick(watchInterval); ; {
			select {
			case <-ctx.Done():
				return
			case <-tick:
				_ = f.poll(ctx) // the next call reports the error
			}
		}
	}()
	return func() { cancel(); <-done }
}

// Refresh reloads the configuration if one of its files changed. It sees each
// change that was completed before the call. If the configuration cannot be
// read, Refresh disables everything, because the change may have revoked any
// permission. It can miss a mount, or a write through a memory mapping, for up to
// watchInterval.
//
// Between Start and stop, the kernel reports changes, if the system supports
// that. Otherwise, Refresh stats all files.
func (f *ConfigWatcher) Refresh(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.paths != nil && !f.paths.Changed() {
		return f.failed
	}
	return f.update(ctx)
}

// poll is like Refresh, but always stats the files: the kernel does not report
// each kind of change, such as a mount.
func (f *ConfigWatcher) poll(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.update(ctx)
}

// watch makes Refresh use the events of the kernel.
func (f *ConfigWatcher) watch() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.started = true
}

// unwatch undoes watch.
func (f *ConfigWatcher) unwatch() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.started = false
	f.closePaths()
}

func (f *ConfigWatcher) closePaths() {
	if f.paths != nil {
		f.paths.Close()
		f.paths = nil
	}
}

// watchPaths starts watching the paths of the configuration, or restarts it if one
// of them may have changed, which it reports. The caller must then stat the files,
// because the watch does not report changes before its start.
func (f *ConfigWatcher) watchPaths() (changed bool) {
	if f.paths != nil {
		if !f.paths.Changed() {
			return false
		}
		changed = true
		f.closePaths()
	}
	if f.unwatched || !f.started {
		return changed
	}
	in := f.setup.ConfigInput()
	paths, err := pathwatch.New(append(in.WatchedPaths(), f.setup.projectPaths(in.WorkDir)...))
	if err != nil {
		f.unwatched = true
		return changed
	}
	if f.setup.ConfigInput().WorkDir != in.WorkDir { // the directory was renamed
		paths.Close()
		return changed // the next call tries again
	}
	f.paths = paths
	return changed
}

// update reloads the configuration if one of its files changed. Only the kernel
// reports a change that keeps the size and the modification time of a file.
func (f *ConfigWatcher) update(ctx context.Context) error {
	changed := f.watchPaths()
	now := f.setup.statConfigFiles()
	if f.paths != nil && !changed && !maps.Equal(now, f.stamps) { // a mount may hide the watched files
		f.closePaths()
		f.watchPaths()
		now = f.setup.statConfigFiles()
	}
	if !changed && maps.Equal(now, f.stamps) {
		return f.failed
	}
	f.stamps, f.unwatched = now, false // try to watch again
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
