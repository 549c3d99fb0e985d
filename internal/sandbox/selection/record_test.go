//go:build unix

package selection_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadout-dev/loadout/internal/privatefile/privatefiletest"
	"github.com/loadout-dev/loadout/internal/sandbox/selection"
	"github.com/loadout-dev/loadout/sandbox"
)

// keyedBackend is a backend whose probes can be remembered.
type keyedBackend struct {
	backend
	key      string
	keyErr   error
	startErr error
	started  box // what Start returns a copy of
	last     *box
}

// box is a sandbox that has only a state.
type box struct {
	sandbox.Sandbox
	tier   sandbox.Tier
	closed bool
}

func (b *box) State() sandbox.State { return sandbox.State{Tier: b.tier} }

func (b *box) Close() error {
	b.closed = true
	return nil
}

func (b *keyedBackend) ProbeKey() (string, error) { return b.key, b.keyErr }

func (b *keyedBackend) Start(context.Context, *sandbox.Spec) (sandbox.Sandbox, error) {
	if b.startErr != nil {
		return nil, b.startErr
	}
	started := b.started
	b.last = &started
	return b.last, nil
}

func newKeyed(name, key string) *keyedBackend {
	return &keyedBackend{backend: backend{name: name, tier: sandbox.Isolated}, key: key}
}

// process chooses among backends as a new process with a record would.
func process(t *testing.T, path string, candidates ...sandbox.Backend) *selection.Backend {
	return selection.New(&selection.Options{Candidates: candidates, Record: selection.NewRecord(path)})
}

func recordPath(t *testing.T) string {
	return filepath.Join(t.TempDir(), "state", "sandbox-probe.json")
}

// wantProbes chooses and checks how often the backend was probed so far.
func wantProbes(t *testing.T, what string, c *selection.Backend, b *keyedBackend, probes int) {
	t.Helper()
	got, rep, err := c.Choose(t.Context())
	if err != nil || got.Name() != b.name || got.Tier() != b.tier || rep == nil || rep.Backend != b.name || rep.Tier != sandbox.Isolated {
		t.Errorf("%s: chose %v, %+v, %v", what, got, rep, err)
	}
	if b.probes != probes {
		t.Errorf("%s: %d probes, want %d", what, b.probes, probes)
	}
}

func TestProbeIsRemembered(t *testing.T) {
	path := recordPath(t)
	b := newKeyed("native", "one")
	wantProbes(t, "first", process(t, path, b), b, 1)
	wantProbes(t, "second", process(t, path, b), b, 1)
	b.key = "two"
	wantProbes(t, "another key", process(t, path, b), b, 2)
	b.key = "one"
	wantProbes(t, "the first key", process(t, path, b), b, 2)
	b.keyErr = errors.New("unreadable")
	wantProbes(t, "no key", process(t, path, b), b, 3)
	b.keyErr = nil
	wantProbes(t, "the first key again", process(t, path, b), b, 3)
	wantProbes(t, "without a record", selection.New(&selection.Options{Candidates: []sandbox.Backend{b}}), b, 4)
	plain := &backend{name: "native", tier: sandbox.Isolated}
	for range 2 {
		if _, _, err := process(t, path, plain).Choose(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if plain.probes != 2 {
		t.Errorf("a backend without keys was probed %d times by two processes", plain.probes)
	}
	if fi, err := os.Stat(path); err != nil || fi.Mode() != 0o600 {
		t.Errorf("%v, %v", fi, err)
	}
}

func TestRecordExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := recordPath(t)
		b := newKeyed("native", "one")
		wantProbes(t, "first", process(t, path, b), b, 1)
		time.Sleep(23 * time.Hour)
		long := process(t, path, b)
		wantProbes(t, "after 23 hours", long, b, 1)
		time.Sleep(59 * time.Minute)
		wantProbes(t, "a minute before the end", long, b, 1)
		time.Sleep(time.Minute)
		wantProbes(t, "in the same process after a day", long, b, 2)
		time.Sleep(365 * 24 * time.Hour)
		wantProbes(t, "a process that probed", long, b, 2)
		wantProbes(t, "another process", process(t, path, b), b, 3)
	})
}

// A record with a time in the future is not used: the clock was set back.
func TestRecordOfTheFuture(t *testing.T) {
	path := recordPath(t)
	b := newKeyed("native", "one")
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Hour)
		wantProbes(t, "later", process(t, path, b), b, 1)
	})
	synctest.Test(t, func(t *testing.T) {
		wantProbes(t, "earlier", process(t, path, b), b, 2)
	})
}

// Setting the clock back does not prolong the use of a record.
func TestRecordWithClockSetBack(t *testing.T) {
	path := recordPath(t)
	b := newKeyed("native", "one")
	long := process(t, path, b)
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Hour)
		wantProbes(t, "first", process(t, path, b), b, 1)
		wantProbes(t, "recorded", long, b, 1)
	})
	synctest.Test(t, func(t *testing.T) {
		wantProbes(t, "in the same process, earlier", long, b, 2)
	})
}

func TestFailuresAreNotRemembered(t *testing.T) {
	path := recordPath(t)
	b := newKeyed("native", "one")
	b.err = missing("native", "user namespaces", "allow them")
	for i := range 2 {
		if _, _, err := process(t, path, b).Choose(t.Context()); err == nil || b.probes != i+1 {
			t.Errorf("%d probes, %v", b.probes, err)
		}
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a failure is in the record: %v", err)
	}
	b.err = nil
	wantProbes(t, "usable", process(t, path, b), b, 3)
	b.err = missing("native", "user namespaces", "allow them")
	if _, _, err := process(t, path, b).Renew(t.Context()); err == nil {
		t.Error("Renew used the record")
	}
	b.err = nil
	wantProbes(t, "usable again", process(t, path, b), b, 5)
}

func TestRenewProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := recordPath(t)
		b := newKeyed("native", "one")
		c := process(t, path, b)
		wantProbes(t, "first", c, b, 1)
		if _, _, err := c.Renew(t.Context()); err != nil || b.probes != 1 {
			t.Errorf("a process that has just probed probed again: %v", err)
		}
		time.Sleep(20 * time.Hour)
		c = process(t, path, b)
		wantProbes(t, "recorded", c, b, 1)
		for range 2 {
			if got, _, err := c.Renew(t.Context()); err != nil || got != b || b.probes != 2 {
				t.Errorf("%d probes, %v", b.probes, err)
			}
		}
		time.Sleep(20 * time.Hour)
		wantProbes(t, "renewed", process(t, path, b), b, 2)
		selection.ProbeAll(t.Context(), []sandbox.Backend{b}, selection.NewRecord(path))
		time.Sleep(20 * time.Hour)
		wantProbes(t, "renewed by ProbeAll", process(t, path, b), b, 3)
	})
}

// A start that fails ends the trust in the record.
func TestFailedStartForgetsRecord(t *testing.T) {
	path := recordPath(t)
	b, other := newKeyed("native", "one"), newKeyed("bwrap", "two")
	wantProbes(t, "first", process(t, path, b, other), b, 1)
	spec := &sandbox.Spec{}

	c := process(t, path, b, other)
	if _, err := c.Start(t.Context(), spec); err != nil {
		t.Error(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	b.startErr = missing("native", "a process", "end some")
	if _, err := c.Start(gone, spec); err == nil {
		t.Error("started")
	}
	wantProbes(t, "after a cancelled start", process(t, path, b, other), b, 1)
	if _, err := c.Start(t.Context(), spec); !errors.Is(err, b.startErr) || b.probes != 2 {
		t.Errorf("%d probes, %v", b.probes, err)
	}
	if _, err := c.Start(t.Context(), spec); !errors.Is(err, b.startErr) || b.probes != 2 {
		t.Errorf("after a probe: %d probes, %v", b.probes, err)
	}

	c = process(t, path, b, other)
	b.err = missing("native", "namespaces", "allow them")
	if _, err := c.Start(t.Context(), spec); !errors.Is(err, b.startErr) || !strings.Contains(fmt.Sprint(err), "bwrap will be used instead") {
		t.Errorf("the backend is gone: %v", err)
	}
	if got, _, err := c.Choose(t.Context()); err != nil || got.Name() != "bwrap" {
		t.Errorf("then chose %v, %v", got, err)
	}
	if got, _, err := process(t, path, b, other).Choose(t.Context()); err != nil || got.Name() != "bwrap" || other.probes != 1 {
		t.Errorf("another process chose %v, %v", got, err)
	}

	c = process(t, path, b, other)
	other.startErr, other.err = missing("bwrap", "a process", "end some"), missing("bwrap", "the program", "install it")
	if _, err := c.Start(t.Context(), spec); !errors.Is(err, other.startErr) || !strings.Contains(err.Error(), "nothing was run") {
		t.Errorf("no backend is left: %v", err)
	}
}

// An error that does not concern the machine, such as that of a wrong spec, leaves
// the record as it is.
func TestOtherErrorsKeepRecord(t *testing.T) {
	path := recordPath(t)
	b := newKeyed("native", "one")
	wantProbes(t, "first", process(t, path, b), b, 1)
	for _, err := range []error{errors.New("invalid spec"), &sandbox.ChangedError{}, &sandbox.UnsupportedError{}} {
		b.startErr = err
		c := process(t, path, b)
		if _, got := c.Start(t.Context(), &sandbox.Spec{}); got != err || b.probes != 1 {
			t.Errorf("%v, want %v; %d probes", got, err, b.probes)
		}
		wantProbes(t, "same process", c, b, 1)
		wantProbes(t, "another process", process(t, path, b), b, 1)
	}
}

// The second of two starts that fail leaves the record of the probe that the first
// one caused.
func TestSecondFailureKeepsNewRecord(t *testing.T) {
	path := recordPath(t)
	b := newKeyed("native", "one")
	wantProbes(t, "first", process(t, path, b), b, 1)
	c := process(t, path, b)
	old, _, err := c.Choose(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.startErr = missing("native", "a process", "end some")
	for range 2 { // both use the choice that was made before
		if _, err := old.Start(t.Context(), &sandbox.Spec{}); !errors.Is(err, b.startErr) || b.probes != 2 {
			t.Errorf("%v, %d probes", err, b.probes)
		}
	}
	wantProbes(t, "another process", process(t, path, b), b, 2)
}

// A sandbox whose tier is lower than that of the record runs nothing, and the
// next probe decides.
func TestStartBelowRecordedTier(t *testing.T) {
	path := recordPath(t)
	b := newKeyed("bwrap", "one")
	wantProbes(t, "first", process(t, path, b), b, 1)
	for _, tier := range []sandbox.Tier{0, sandbox.Isolated} {
		b.started.tier = tier
		if got, err := process(t, path, b).Start(t.Context(), &sandbox.Spec{}); err != nil || got != b.last || b.last.closed || b.probes != 1 {
			t.Errorf("tier %v: %v, %v, %d probes", tier, got, err, b.probes)
		}
	}

	b.started.tier = sandbox.Confined
	if got, err := process(t, path, b).Start(t.Context(), &sandbox.Spec{Network: sandbox.Network{Host: true}}); err != nil || got != b.last || b.last.closed {
		t.Errorf("with the network of the host: %v, %v", got, err)
	}
	c := process(t, path, b)
	got, err := c.Start(t.Context(), &sandbox.Spec{})
	if _, ok := errors.AsType[*sandbox.UnavailableError](err); !ok || got != nil || !strings.Contains(err.Error(), "tier 3 (isolated), which the last test had: the sandbox has 2 (confined)") {
		t.Errorf("a lower tier: %v, %v", got, err)
	}
	if !b.last.closed || b.probes != 2 {
		t.Errorf("closed: %t, %d probes", b.last.closed, b.probes)
	}

	c = process(t, path, b)
	b.report = &sandbox.Report{Backend: "bwrap", Tier: sandbox.Confined, Layers: []sandbox.Layer{{Name: "memory"}}}
	if got, err := c.Start(t.Context(), &sandbox.Spec{}); got != nil || err == nil || !strings.Contains(err.Error(), "tier 3 (isolated) required, but this machine has 2 (confined): memory missing") {
		t.Errorf("a machine that has a lower tier now: %v, %v", got, err)
	}
	if !b.last.closed || b.probes != 3 {
		t.Errorf("closed: %t, %d probes", b.last.closed, b.probes)
	}
}

// A record never makes a backend better than it is or than requested.
func TestRecordedTier(t *testing.T) {
	path := recordPath(t)
	b := newKeyed("native", "one")
	b.report = &sandbox.Report{Backend: "native", Tier: sandbox.Confined, Layers: []sandbox.Layer{{Name: "memory"}}}
	low := selection.New(&selection.Options{Candidates: []sandbox.Backend{b}, MinTier: sandbox.Confined, Record: selection.NewRecord(path)})
	for range 2 {
		if _, rep, err := low.Choose(t.Context()); err != nil || rep.Tier != sandbox.Confined || b.probes != 1 {
			t.Errorf("%+v, %d probes, %v", rep, b.probes, err)
		}
	}
	if _, _, err := process(t, path, b).Choose(t.Context()); err == nil || !strings.Contains(err.Error(), "tier 3 (isolated) required") {
		t.Errorf("a tier that is too low: %v", err)
	}
}

// writeRecord writes a record by hand.
func writeRecord(t *testing.T, path string, version int, key string, at time.Time, report *sandbox.Report) {
	t.Helper()
	data, err := json.Marshal(map[string]any{"version": version, "probes": []any{map[string]any{"key": key, "time": at, "report": report}}})
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestForgedRecordsAreIgnored(t *testing.T) {
	good := func() *sandbox.Report { return &sandbox.Report{Backend: "native", Tier: sandbox.Isolated} }
	now := time.Now()
	for name, write := range map[string]func(path string){
		"other version": func(p string) { writeRecord(t, p, 2, "one", now, good()) },
		"no version":    func(p string) { writeRecord(t, p, 0, "one", now, good()) },
		"other key":     func(p string) { writeRecord(t, p, 1, "", now, good()) },
		"future":        func(p string) { writeRecord(t, p, 1, "one", now.Add(time.Hour), good()) },
		"old":           func(p string) { writeRecord(t, p, 1, "one", now.Add(-25*time.Hour), good()) },
		"no time":       func(p string) { writeRecord(t, p, 1, "one", time.Time{}, good()) },
		"no report":     func(p string) { writeRecord(t, p, 1, "one", now, nil) },
		"other backend": func(p string) {
			writeRecord(t, p, 1, "one", now, &sandbox.Report{Backend: "bwrap", Tier: sandbox.Isolated})
		},
		"higher tier": func(p string) {
			writeRecord(t, p, 1, "one", now, &sandbox.Report{Backend: "native", Tier: sandbox.Virtual})
		},
		"no tier":       func(p string) { writeRecord(t, p, 1, "one", now, &sandbox.Report{Backend: "native"}) },
		"negative tier": func(p string) { writeRecord(t, p, 1, "one", now, &sandbox.Report{Backend: "native", Tier: -1}) },
		"not JSON": func(p string) {
			writeRecord(t, p, 1, "one", now, good())
			os.Truncate(p, 20)
		},
		"large": func(p string) {
			r := good()
			r.Version = strings.Repeat("x", 300<<10)
			writeRecord(t, p, 1, "one", now, r)
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := recordPath(t)
			write(path)
			b := newKeyed("native", "one")
			wantProbes(t, "written", process(t, path, b), b, 1)
			wantProbes(t, "replaced", process(t, path, b), b, 1)
		})
	}
	path := recordPath(t)
	writeRecord(t, path, 1, "one", now, good())
	b := newKeyed("native", "one")
	wantProbes(t, "a record that is not forged", process(t, path, b), b, 0)
}

// A file or directory that others can write is neither used nor trusted later.
func TestUnsafeRecordsAreIgnored(t *testing.T) {
	for name, tamper := range privatefiletest.Tamper {
		for _, target := range []string{"file", "directory"} {
			t.Run(name+" "+target, func(t *testing.T) {
				path := recordPath(t)
				b := newKeyed("native", "one")
				wantProbes(t, "first", process(t, path, b), b, 1)
				if target == "file" {
					tamper(t, path)
				} else {
					tamper(t, filepath.Dir(path))
				}
				wantProbes(t, "tampered", process(t, path, b), b, 2)
			})
		}
	}
	path := recordPath(t)
	b := newKeyed("native", "one")
	wantProbes(t, "first", process(t, path, b), b, 1)
	if err := os.Chmod(path, 0o644); err != nil { // others can read it
		t.Fatal(err)
	}
	wantProbes(t, "readable by others", process(t, path, b), b, 2)
}

// The record has room for several terminals and containers, and is bounded.
func TestRecordIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := recordPath(t)
		b := newKeyed("native", "")
		for i := range 40 {
			time.Sleep(time.Second)
			b.key = fmt.Sprint("key ", i)
			wantProbes(t, b.key, process(t, path, b), b, i+1)
		}
		for i := 39; i >= 8; i-- {
			b.key = fmt.Sprint("key ", i)
			wantProbes(t, b.key, process(t, path, b), b, 40)
		}
		b.key = "key 7"
		wantProbes(t, b.key, process(t, path, b), b, 41)
	})
}

// Prepare chooses among backends without a record, and probes none twice.
func TestPrepare(t *testing.T) {
	path := recordPath(t)
	first, second := newKeyed("native", "one"), newKeyed("bwrap", "two")
	wantBoth := func(what string, one, two int) {
		t.Helper()
		if first.probes != one || second.probes != two {
			t.Errorf("%s: %d and %d probes, want %d and %d", what, first.probes, second.probes, one, two)
		}
	}
	c := process(t, path, first, second)
	c.Prepare(t.Context())
	wantProbes(t, "prepared", c, first, 1)
	c.Prepare(t.Context())
	process(t, path, first, second).Prepare(t.Context())
	wantProbes(t, "recorded", c, first, 1)

	first.key, first.err = "other", missing("native", "namespaces", "allow them")
	c = process(t, path, first, second)
	c.Prepare(t.Context())
	wantBoth("the first backend fails", 2, 1)
	wantProbes(t, "the second one is chosen", c, second, 1)
	wantBoth("the failure is kept", 2, 1)
	process(t, path, first, second).Prepare(t.Context())
	wantBoth("the second one is recorded", 2, 1)

	second.key, second.err = "new", missing("bwrap", "the program", "install it")
	c = process(t, path, first, second)
	c.Prepare(t.Context())
	if _, _, err := c.Choose(t.Context()); err == nil {
		t.Error("a backend that fails was chosen")
	}
	wantBoth("both fail", 3, 2)

	second.err = nil
	c = process(t, path, first, second)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	c.Prepare(gone)
	wantProbes(t, "after a cancelled test", c, second, second.probes+1)
}

// slowBackend is a backend whose probe waits.
type slowBackend struct {
	*keyedBackend
	probing, proceed chan struct{}
}

func (b slowBackend) Probe(ctx context.Context) (*sandbox.Report, error) {
	close(b.probing)
	<-b.proceed
	return b.keyedBackend.Probe(ctx)
}

// Only callers that need a sandbox wait for a probe.
func TestReportsDuringProbe(t *testing.T) {
	b := slowBackend{newKeyed("native", "one"), make(chan struct{}), make(chan struct{})}
	c := process(t, recordPath(t), b)
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Prepare(t.Context())
	}()
	<-b.probing
	if c.Name() != "auto" || c.Tier() != sandbox.None {
		t.Errorf("before the choice: %s, %v", c.Name(), c.Tier())
	}
	close(b.proceed)
	<-done
	if c.Name() != "native" || c.Tier() != sandbox.Isolated {
		t.Errorf("after the choice: %s, %v", c.Name(), c.Tier())
	}
}

// Results that cannot be recorded are not prepared, as each process would probe.
func TestPrepareWithoutKey(t *testing.T) {
	b := newKeyed("native", "one")
	selection.New(&selection.Options{Candidates: []sandbox.Backend{b}}).Prepare(t.Context())
	b.keyErr = errors.New("unreadable")
	process(t, recordPath(t), b).Prepare(t.Context())
	if b.probes != 0 {
		t.Errorf("%d probes", b.probes)
	}
}

// Prepare keeps a result that cannot be written.
func TestPrepareWithUnwritableRecord(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.WriteFile(dir, nil, 0o600); err != nil { // not a directory
		t.Fatal(err)
	}
	b := newKeyed("native", "one")
	c := process(t, filepath.Join(dir, "sandbox-probe.json"), b)
	c.Prepare(t.Context())
	wantProbes(t, "prepared", c, b, 1)
}
