// Package selection chooses a sandbox backend: the one that the operator names,
// or the first that isolates enough and whose probe succeeds on this machine. It
// never falls back to a weaker backend than requested. Its errors state the
// reason and a fix. Start with [New].
package selection

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/sandbox"
)

// Options configures a [Backend].
type Options struct {
	// Candidates are the backends in order of preference. Nil means those of
	// [Candidates] with default settings.
	Candidates []sandbox.Backend
	// Name selects the candidate with this name. "" or "auto" means the first
	// usable one.
	Name string
	// MinTier is the lowest acceptable tier. Zero means [sandbox.Isolated], or
	// [sandbox.Limited] if Name selects a backend.
	MinTier sandbox.Tier
}

// Outcome is the result of probing a candidate.
type Outcome struct {
	Backend sandbox.Backend
	Report  *sandbox.Report // nil if the backend cannot be used
	Err     error           // why the backend cannot be used; nil if it can
}

// NoBackendError reports that no backend is usable, with the reason for each.
type NoBackendError struct {
	// Outcomes are those of the probed candidates, in order. It is empty if no
	// candidate has the requested tier.
	Outcomes []Outcome
}

// Error returns a message with the reason for each candidate.
func (e *NoBackendError) Error() string {
	var why []string
	for _, o := range e.Outcomes {
		why = append(why, o.Err.Error())
	}
	if len(why) == 0 {
		why = []string{"no backend has the requested tier"}
	}
	return "no usable sandbox, nothing was run: " + strings.Join(why, "; ")
}

// As sets a target of type **[sandbox.UnavailableError] to an error with the
// reasons and the fixes of all candidates.
func (e *NoBackendError) As(target any) bool {
	t, ok := target.(**sandbox.UnavailableError)
	if ok {
		*t = &sandbox.UnavailableError{Backend: "auto", Missing: e.Error(), Fix: strings.Join(e.Fixes(), ", or ")}
	}
	return ok
}

// Fixes returns ways to make a backend usable, best first. The list is empty if
// none is known.
func (e *NoBackendError) Fixes() []string {
	var out []string
	for _, o := range e.Outcomes {
		if u, ok := errors.AsType[*sandbox.UnavailableError](o.Err); ok && u.Fix != "" {
			out = append(out, u.Fix)
		}
	}
	return out
}

// failureTTL is how long a failed choice is cached. It is short because the
// machine may lack a resource only temporarily.
const failureTTL = 30 * time.Second

// Backend is a backend that is chosen on first use. It chooses again only after
// a failure. It is safe for concurrent use. The zero value uses default
// options.
type Backend struct {
	opts   Options
	mu     sync.Mutex
	b      sandbox.Backend
	rep    *sandbox.Report
	err    error
	failed time.Time // time of the last failure
}

var _ sandbox.Backend = (*Backend)(nil)

// New returns a [Backend] with the given options; nil means the defaults. It
// probes nothing.
func New(opts *Options) *Backend {
	c := &Backend{}
	if opts != nil {
		c.opts = *opts
	}
	return c
}

// Choose probes the candidates and returns the chosen backend and its report.
// Later calls return the same result. The error is a [*NoBackendError] if no
// candidate is usable. An unknown name in the options causes a different error.
// A failure is cached for 30 seconds, except if ctx was done. Concurrent calls
// wait for the one that probes, even if their ctx is done.
func (c *Backend) Choose(ctx context.Context) (sandbox.Backend, *sandbox.Report, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.b != nil || c.err != nil && time.Since(c.failed) < failureTTL {
		return c.b, c.rep, c.err
	}
	b, rep, err := choose(ctx, &c.opts)
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	c.b, c.rep, c.err, c.failed = b, rep, err, time.Now()
	return b, rep, err
}

func choose(ctx context.Context, o *Options) (sandbox.Backend, *sandbox.Report, error) {
	all, err := o.candidates()
	if err != nil {
		return nil, nil, err
	}
	none := &NoBackendError{}
	for _, b := range all {
		rep, err := o.probe(ctx, b)
		if err == nil {
			return b, rep, nil
		}
		none.Outcomes = append(none.Outcomes, Outcome{Backend: b, Err: err})
	}
	return nil, nil, none
}

// candidates returns the backend that the options name. If they name none, it
// returns all backends that have a sufficient tier when no layer is missing.
func (o *Options) candidates() ([]sandbox.Backend, error) {
	all := o.Candidates
	if all == nil {
		all = Candidates(nil)
	}
	var out []sandbox.Backend
	var names []string
	for _, b := range all {
		names = append(names, b.Name())
		if o.isNamed() && b.Name() == o.Name || !o.isNamed() && b.Tier() >= o.minTier() {
			out = append(out, b)
		}
	}
	if o.isNamed() && len(out) == 0 {
		return nil, fmt.Errorf("unknown sandbox %q; known: %s", o.Name, strings.Join(names, ", "))
	}
	return out, nil
}

func (o *Options) isNamed() bool { return o.Name != "" && o.Name != "auto" }

func (o *Options) minTier() sandbox.Tier {
	switch {
	case o.MinTier != 0:
		return o.MinTier
	case o.isNamed():
		return sandbox.Limited
	}
	return sandbox.Isolated
}

// probe probes a backend and checks that its tier on this machine is high
// enough.
func (o *Options) probe(ctx context.Context, b sandbox.Backend) (*sandbox.Report, error) {
	rep, err := b.Probe(ctx)
	if err == nil && rep.Tier < o.minTier() {
		return nil, &sandbox.UnavailableError{Backend: b.Name(), Missing: fmt.Sprintf("tier %v required, but this machine has %v: %s missing",
			o.minTier(), rep.Tier, strings.Join(rep.Missing(), ", "))}
	}
	return rep, err
}

// ProbeAll probes every candidate, regardless of its tier, for a report. It
// returns an outcome for each, in the same order.
func ProbeAll(ctx context.Context, candidates []sandbox.Backend) []Outcome {
	var out []Outcome
	for _, b := range candidates {
		rep, err := b.Probe(ctx)
		out = append(out, Outcome{b, rep, err})
	}
	return out
}

// Name returns the name of the chosen backend, or "auto" before the choice.
func (c *Backend) Name() string {
	if b := c.chosen(); b != nil {
		return b.Name()
	}
	return "auto"
}

// Tier returns the tier of the chosen backend, or [sandbox.None] before the
// choice.
func (c *Backend) Tier() sandbox.Tier {
	if b := c.chosen(); b != nil {
		return b.Tier()
	}
	return sandbox.None
}

func (c *Backend) chosen() sandbox.Backend {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.b
}

// Probe chooses a backend if necessary and returns its report. It does not
// probe a chosen backend again. The error is that of [Backend.Choose].
func (c *Backend) Probe(ctx context.Context) (*sandbox.Report, error) {
	_, rep, err := c.Choose(ctx)
	return rep, err
}

// Start starts a sandbox with the chosen backend. It first chooses a backend if
// necessary, so it may return an error of [Backend.Choose]. The caller must
// close the sandbox.
func (c *Backend) Start(ctx context.Context, spec *sandbox.Spec) (sandbox.Sandbox, error) {
	b, _, err := c.Choose(ctx)
	if err != nil {
		return nil, err
	}
	return b.Start(ctx, spec)
}
