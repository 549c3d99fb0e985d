// Package auto chooses the back end: the first of those that isolate enough
// and whose probe succeeds on this machine, or the one that the operator names.
// It never takes a weaker one than was asked for, and what it refuses it says
// with the reason and the way out.
package auto

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/sandbox"
)

// Options say what to choose from.
type Options struct {
	// Candidates are back ends in order of preference; nil means those that
	// this package knows, see [Candidates].
	Candidates []sandbox.Backend
	// Name is the one back end to use, "" or "auto" for the first that serves.
	Name string
	// MinTier is the least isolation; 0 means [sandbox.Isolated]. A back end
	// that is named needs no more than [sandbox.Limited].
	MinTier sandbox.Tier
}

// Outcome is what came of one candidate.
type Outcome struct {
	Backend sandbox.Backend
	Report  *sandbox.Report // nil where it cannot be used
	Err     error           // why not
}

// NoneError says that no back end serves, and why none does.
type NoneError struct {
	Outcomes []Outcome
}

func (e *NoneError) Error() string {
	var why []string
	for _, o := range e.Outcomes {
		why = append(why, o.Err.Error())
	}
	if len(why) == 0 {
		why = []string{"no back end isolates as much as was asked for"}
	}
	return "no sandbox can be had here, so nothing was run: " + strings.Join(why, "; ")
}

// Fixes are ways to get a back end that was missing, best first.
func (e *NoneError) Fixes() []string {
	var out []string
	for _, o := range e.Outcomes {
		if u, ok := errors.AsType[*sandbox.UnavailableError](o.Err); ok && u.Fix != "" {
			out = append(out, u.Fix)
		}
	}
	return out
}

// failureLasts is for how long it is taken that there is no back end still: what a
// machine was short of for a moment may be there again.
const failureLasts = 30 * time.Second

// Chosen is a back end that probes when it is first needed, and once more only
// where there was none. It is safe for concurrent use.
type Chosen struct {
	opts   Options
	mu     sync.Mutex
	b      sandbox.Backend
	rep    *sandbox.Report
	err    error
	failed time.Time // when there was none
}

var _ sandbox.Backend = (*Chosen)(nil)

// New returns a back end that chooses when it is first used.
func New(opts *Options) *Chosen {
	c := &Chosen{}
	if opts != nil {
		c.opts = *opts
	}
	return c
}

// Choose probes and chooses; every call after the first that did returns the
// same. That there is none is remembered for half a minute, and an end of ctx
// is not.
func (c *Chosen) Choose(ctx context.Context) (sandbox.Backend, *sandbox.Report, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.b != nil || c.err != nil && time.Since(c.failed) < failureLasts {
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
	none := &NoneError{}
	for _, b := range all {
		rep, err := o.probe(ctx, b)
		if err == nil {
			return b, rep, nil
		}
		none.Outcomes = append(none.Outcomes, Outcome{Backend: b, Err: err})
	}
	return nil, nil, none
}

// candidates are those that may be chosen: the named one, or all that isolate
// enough where nothing is missing.
func (o *Options) candidates() ([]sandbox.Backend, error) {
	all := o.Candidates
	if all == nil {
		all = Candidates(nil)
	}
	var out []sandbox.Backend
	var names []string
	for _, b := range all {
		names = append(names, b.Name())
		if o.named() && b.Name() == o.Name || !o.named() && b.Tier() >= o.least() {
			out = append(out, b)
		}
	}
	if o.named() && len(out) == 0 {
		return nil, fmt.Errorf("no sandbox is called %q; there are %s", o.Name, strings.Join(names, ", "))
	}
	return out, nil
}

func (o *Options) named() bool { return o.Name != "" && o.Name != "auto" }

func (o *Options) least() sandbox.Tier {
	switch {
	case o.MinTier != 0:
		return o.MinTier
	case o.named():
		return sandbox.Limited
	}
	return sandbox.Isolated
}

// probe is the back end's own, and what is asked of its tier.
func (o *Options) probe(ctx context.Context, b sandbox.Backend) (*sandbox.Report, error) {
	rep, err := b.Probe(ctx)
	if err == nil && rep.Tier < o.least() {
		return nil, &sandbox.UnavailableError{Backend: b.Name(), Missing: fmt.Sprintf("tier %v is asked for and it has %v here: %s missing",
			o.least(), rep.Tier, strings.Join(rep.Missing(), ", "))}
	}
	return rep, err
}

// Survey probes every candidate, whatever its tier, for people who want to see.
func Survey(ctx context.Context, candidates []sandbox.Backend) []Outcome {
	var out []Outcome
	for _, b := range candidates {
		rep, err := b.Probe(ctx)
		out = append(out, Outcome{b, rep, err})
	}
	return out
}

// Name is the chosen back end's, or auto before there is one.
func (c *Chosen) Name() string {
	if b := c.chosen(); b != nil {
		return b.Name()
	}
	return "auto"
}

// Tier is the chosen back end's, or [sandbox.None] before there is one.
func (c *Chosen) Tier() sandbox.Tier {
	if b := c.chosen(); b != nil {
		return b.Tier()
	}
	return sandbox.None
}

func (c *Chosen) chosen() sandbox.Backend {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.b
}

// Probe chooses and returns the report of what was chosen.
func (c *Chosen) Probe(ctx context.Context) (*sandbox.Report, error) {
	_, rep, err := c.Choose(ctx)
	return rep, err
}

// Start starts a sandbox of the chosen back end.
func (c *Chosen) Start(ctx context.Context, spec *sandbox.Spec) (sandbox.Sandbox, error) {
	b, _, err := c.Choose(ctx)
	if err != nil {
		return nil, err
	}
	return b.Start(ctx, spec)
}
