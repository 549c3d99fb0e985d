package selection_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadout-dev/loadout/internal/sandbox/selection"
	"github.com/loadout-dev/loadout/sandbox"
)

// backend is a backend with configurable results.
type backend struct {
	name   string
	tier   sandbox.Tier
	report *sandbox.Report
	err    error
	probes int
}

func (b *backend) Name() string       { return b.name }
func (b *backend) Tier() sandbox.Tier { return b.tier }
func (b *backend) Probe(ctx context.Context) (*sandbox.Report, error) {
	b.probes++
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if b.err != nil {
		return nil, b.err
	}
	if b.report != nil {
		return b.report, nil
	}
	return &sandbox.Report{Backend: b.name, Tier: b.tier}, nil
}

func (b *backend) Start(context.Context, *sandbox.Spec) (sandbox.Sandbox, error) {
	return nil, errors.New("started " + b.name)
}

func missing(name, what, fix string) error {
	return &sandbox.UnavailableError{Backend: name, Missing: what, Fix: fix}
}

func TestChoose(t *testing.T) {
	for _, tt := range []struct {
		what   string
		opts   selection.Options
		want   string
		errors []string
	}{
		{what: "the first that works", want: "native", opts: selection.Options{Candidates: []sandbox.Backend{
			&backend{name: "native", tier: sandbox.Isolated}, &backend{name: "bwrap", tier: sandbox.Isolated}}}},
		{what: "the next where the first does not", want: "bwrap", opts: selection.Options{Candidates: []sandbox.Backend{
			&backend{name: "native", tier: sandbox.Isolated, err: missing("native", "user namespaces", "x")}, &backend{name: "bwrap", tier: sandbox.Isolated}}}},
		{what: "never one that isolates less", errors: []string{"nothing was run", "native: user namespaces"}, opts: selection.Options{Candidates: []sandbox.Backend{
			&backend{name: "native", tier: sandbox.Isolated, err: missing("native", "user namespaces", "x")},
			&backend{name: "landlock", tier: sandbox.Confined}, &backend{name: "process", tier: sandbox.Limited}}}},
		{what: "not one whose tier is lower here", errors: []string{"tier 3 (isolated) required", "2 (confined)", "syscalls missing"}, opts: selection.Options{Candidates: []sandbox.Backend{
			&backend{name: "native", tier: sandbox.Isolated, report: &sandbox.Report{Tier: sandbox.Confined, Layers: []sandbox.Layer{{Name: "syscalls"}}}}}}},
		{what: "a lower tier where it is accepted", want: "landlock", opts: selection.Options{MinTier: sandbox.Confined, Candidates: []sandbox.Backend{
			&backend{name: "native", tier: sandbox.Isolated, err: missing("native", "x", "")}, &backend{name: "landlock", tier: sandbox.Confined}}}},
		{what: "the one that is named", want: "process", opts: selection.Options{Name: "process", Candidates: []sandbox.Backend{
			&backend{name: "native", tier: sandbox.Isolated}, &backend{name: "process", tier: sandbox.Limited}}}},
		{what: "no other than the one that is named", errors: []string{"bwrap: the program bwrap"}, opts: selection.Options{Name: "bwrap", Candidates: []sandbox.Backend{
			&backend{name: "native", tier: sandbox.Isolated}, &backend{name: "bwrap", tier: sandbox.Isolated, err: missing("bwrap", "the program bwrap", "install it")}}}},
		{what: "the one that is named, not below the tier", errors: []string{"tier 3"}, opts: selection.Options{Name: "landlock", MinTier: sandbox.Isolated, Candidates: []sandbox.Backend{
			&backend{name: "landlock", tier: sandbox.Confined}}}},
		{what: "an unknown name", errors: []string{`"gvisor"`, "native, bwrap"}, opts: selection.Options{Name: "gvisor", Candidates: []sandbox.Backend{
			&backend{name: "native"}, &backend{name: "bwrap"}}}},
	} {
		t.Run(tt.what, func(t *testing.T) {
			c := selection.New(&tt.opts)
			b, rep, err := c.Choose(t.Context())
			if tt.want != "" {
				if err != nil || b.Name() != tt.want || rep == nil || c.Name() != tt.want || c.Tier() != b.Tier() {
					t.Fatalf("%v %v, want %s", b, err, tt.want)
				}
				if _, err := c.Start(t.Context(), &sandbox.Spec{}); err == nil || err.Error() != "started "+tt.want {
					t.Error(err)
				}
				return
			}
			for _, want := range tt.errors {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in %v", want, err)
				}
			}
			if _, startErr := c.Start(t.Context(), &sandbox.Spec{}); startErr == nil || startErr.Error() != err.Error() {
				t.Errorf("Start returned %v", startErr)
			}
		})
	}
}

func TestProbeRunsOnce(t *testing.T) {
	b := &backend{name: "native", tier: sandbox.Isolated}
	c := selection.New(&selection.Options{Candidates: []sandbox.Backend{b}})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := c.Choose(gone); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for range 3 {
		if _, _, err := c.Choose(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if b.probes != 2 { // an interrupted probe is no result
		t.Errorf("%d probes", b.probes)
	}
}

// That there was none is forgotten after a while.
func TestProbeIsRepeatedAfterFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &backend{name: "native", tier: sandbox.Isolated, err: missing("native", "a process", "end some")}
		c := selection.New(&selection.Options{Candidates: []sandbox.Backend{b}})
		for range 3 {
			if _, _, err := c.Choose(t.Context()); err == nil || b.probes != 1 {
				t.Errorf("%d probes, %v", b.probes, err)
			}
			time.Sleep(9 * time.Second)
		}
		b.err = nil
		time.Sleep(3 * time.Second)
		for range 2 {
			if got, _, err := c.Choose(t.Context()); err != nil || got != b || b.probes != 2 {
				t.Errorf("%d probes, %v", b.probes, err)
			}
			time.Sleep(time.Hour)
		}
	})
}

func TestNoneErrorSaysHowToInstallOne(t *testing.T) {
	c := selection.New(&selection.Options{Candidates: []sandbox.Backend{
		&backend{name: "native", tier: sandbox.Isolated, err: missing("native", "user namespaces", "allow them")},
		&backend{name: "container", tier: sandbox.Isolated, err: missing("container", "an engine", "")},
		&backend{name: "bwrap", tier: sandbox.Isolated, err: missing("bwrap", "the program", "install it")}}})
	_, err := c.Probe(t.Context())
	none, ok := errors.AsType[*selection.NoBackendError](err)
	if !ok || strings.Join(none.Fixes(), "|") != "allow them|install it" {
		t.Errorf("%v", err)
	}
	if e, ok := errors.AsType[*sandbox.UnavailableError](err); !ok || e.Missing != err.Error() || e.Fix != "allow them, or install it" {
		t.Errorf("%+v", e)
	}
}

func TestIsolatingCandidatesComeFirst(t *testing.T) {
	tier := sandbox.Virtual
	for _, b := range selection.Candidates(nil) {
		if b.Tier() > tier {
			t.Errorf("%s isolates more than one before it", b.Name())
		}
		tier = b.Tier()
	}
}
