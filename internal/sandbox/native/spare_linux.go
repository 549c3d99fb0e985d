package native

import (
	"cmp"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/internal/sandbox/cgroup"
	"github.com/loadout-dev/loadout/internal/sandbox/launcher"
	"github.com/loadout-dev/loadout/internal/sandbox/prepare"
	"github.com/loadout-dev/loadout/sandbox"
)

// spareIdle is how long a spare waits for a sandbox.
const spareIdle = time.Minute

// spare is a stage that is running but not configured. It depends on no spec,
// except that it has its own network. It is used for at most one sandbox.
type spare struct {
	stage  *launcher.Stage
	group  *cgroup.Group // nil if there is none
	mounts *mountWatch   // ends the spare when the host's mounts change, because the stage has a copy of them
	timer  *time.Timer   // ends the spare
}

func (s *spare) end() {
	s.mounts.stop()
	s.stage.Close()
	if s.group != nil {
		s.group.Remove()
	}
}

// isUsable reports whether a sandbox can be started in the spare: it is running,
// and its copy of the host's mounts is current. It stops watching the mounts.
func (s *spare) isUsable() bool {
	if s.mounts.stop() {
		return false
	}
	select {
	case <-s.stage.Ended():
		return false
	default:
		return true
	}
}

// spares keeps at most one spare. The zero value keeps none so far.
type spares struct {
	idle      time.Duration // spareIdle if 0; only tests set it
	mountInfo string        // file with the list of mounts of this process; only tests set it

	mu        sync.Mutex
	spare     *spare // guarded by mu; nil if there is none
	launching bool   // guarded by mu
	closed    bool   // guarded by mu
	// tasks counts the goroutines that launch or end a spare. Add is called only
	// while mu is held and closed is false.
	tasks sync.WaitGroup
}

// acquire returns a usable spare, or nil. The caller must end it or start a
// sandbox in it.
func (s *spares) acquire() *spare {
	s.mu.Lock()
	sp := s.spare
	s.spare = nil
	s.mu.Unlock()
	if sp == nil {
		return nil
	}
	sp.timer.Stop() // if it has fired, it does nothing
	if !sp.isUsable() {
		sp.end()
		return nil
	}
	return sp
}

// replace launches a spare in the background, unless there is one.
func (s *spares) replace(launch func() (*spare, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.launching || s.spare != nil {
		return
	}
	s.launching = true
	s.tasks.Go(func() {
		sp, err := launch()
		s.mu.Lock()
		s.launching = false
		keep := err == nil && !s.closed
		if keep {
			s.spare = sp
			sp.timer = time.AfterFunc(s.idleTime(), func() { s.expire(sp) })
		}
		s.mu.Unlock()
		if err == nil && !keep {
			sp.end()
		}
	})
}

func (s *spares) idleTime() time.Duration {
	if s.idle > 0 {
		return s.idle
	}
	return spareIdle
}

// expire ends a spare that no sandbox has acquired.
func (s *spares) expire(sp *spare) {
	s.mu.Lock()
	unused := s.spare == sp && !s.closed
	if unused {
		s.spare = nil
		s.tasks.Add(1)
	}
	s.mu.Unlock()
	if unused {
		defer s.tasks.Done()
		sp.end()
	}
}

func (s *spares) close() {
	s.mu.Lock()
	s.closed = true
	sp := s.spare
	s.spare = nil
	s.mu.Unlock()
	if sp != nil {
		sp.timer.Stop()
		sp.end()
	}
	s.tasks.Wait()
}

// launchSpare starts a spare. Its control group gets its limits when it is
// used.
func (b *Backend) launchSpare() (*spare, error) {
	sp := &spare{}
	var err error
	sp.mounts, err = watchMounts(cmp.Or(b.spares.mountInfo, "/proc/self/mountinfo"), func() { b.spares.expire(sp) }) // before the stage gets its copy
	if err != nil {
		return nil, err
	}
	cfg := &launcher.Config{Backend: b.Name(), Command: b.command(&sandbox.Spec{})}
	if !b.opts.NoGroups {
		sp.group = cfg.Group(prepare.DefaultLimits(), 0)
	}
	if sp.stage, err = launcher.Launch(cfg); err != nil {
		sp.mounts.stop()
		if sp.group != nil {
			sp.group.Remove()
		}
		return nil, err
	}
	return sp, nil
}
