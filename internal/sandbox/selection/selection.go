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
	// Record remembers successful probes. If Record is nil, each [Backend]
	// probes.
	Record *Record
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
// a failure, or when the record that it used has expired. It is safe for
// concurrent use. The zero value uses default options.
type Backend struct {
	opts Options

	choosing sync.Mutex // held while candidates are probed or a record is removed; locked before mu

	mu     sync.Mutex
	choice           // guarded by mu
	err    error     // guarded by mu
	failed time.Time // time of the last failure; guarded by mu
}

// choice is a chosen backend with its report. The zero value means that no backend
// has been chosen.
type choice struct {
	b   sandbox.Backend
	rep *sandbox.Report
	// since is the time of the record that was used, and expires is the time when
	// that record expires. They are zero if the backend was probed.
	since, expires time.Time
}

// isValid reports whether the choice can still be used. Setting the clock back does
// not prolong the use of a record: isValid compares both monotonic and wall clock
// times, and rejects a record from the future.
func (c *choice) isValid() bool {
	if c.b == nil || c.expires.IsZero() {
		return c.b != nil
	}
	now := time.Now()
	return now.Before(c.expires) && now.Round(0).Before(c.expires.Round(0)) && !now.Before(c.since)
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

// Choose probes the candidates, or uses the [Record] of earlier probes, and
// returns the chosen backend and its report. Later calls return the same result.
// The error is a [*NoBackendError] if no candidate is usable. An unknown name in
// the options causes a different error. A failure is cached for 30 seconds,
// except if ctx was done. Concurrent calls wait for the one that probes, even if
// their ctx is done.
func (c *Backend) Choose(ctx context.Context) (sandbox.Backend, *sandbox.Report, error) {
	return c.choose(ctx, false)
}

// Renew is like [Backend.Choose], but does not use the record. It probes unless
// this Backend has probed before, and adds the result to the record.
func (c *Backend) Renew(ctx context.Context) (sandbox.Backend, *sandbox.Report, error) {
	return c.choose(ctx, true)
}

func (c *Backend) choose(ctx context.Context, renew bool) (sandbox.Backend, *sandbox.Report, error) {
	c.choosing.Lock()
	defer c.choosing.Unlock()
	if now, ok, err := c.cached(renew); ok {
		return now.b, now.rep, err
	}
	found, err := c.search(ctx, renew)
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	c.set(found, err)
	return found.b, found.rep, err
}

// cached returns the choice or the last failure. It returns false if choose must
// search.
func (c *Backend) cached(renew bool) (now choice, ok bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ok = c.isValid() && (!renew || c.expires.IsZero()) || c.err != nil && time.Since(c.failed) < failureTTL
	return c.choice, ok, c.err
}

func (c *Backend) set(found choice, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.choice, c.err, c.failed = found, err, time.Now()
}

// forget discards the choice b and removes its record, so that the next call
// chooses again. It does nothing if another start has discarded b: a new record
// may exist.
func (c *Backend) forget(ctx context.Context, b *recorded) error {
	c.choosing.Lock()
	defer c.choosing.Unlock()
	if c.chosen() != b {
		return nil
	}
	c.set(choice{}, nil)
	return c.opts.Record.remove(ctx, b.key)
}

// search returns the first usable candidate. If renew is set, it does not use
// the record.
func (c *Backend) search(ctx context.Context, renew bool) (choice, error) {
	o := &c.opts
	all, err := o.candidates()
	if err != nil {
		return choice{}, err
	}
	none := &NoBackendError{}
	for _, b := range all {
		key := o.Record.probeKey(b)
		if !renew {
			if rep, since := o.Record.find(b, key); rep != nil && rep.Tier >= o.minTier() {
				now := time.Now()
				return choice{&recorded{b, key, rep, c}, rep, since, now.Add(recordTTL - now.Sub(since))}, nil
			}
		}
		rep, err := o.probe(ctx, b, key)
		if err == nil {
			return choice{b: b, rep: rep}, nil
		}
		none.Outcomes = append(none.Outcomes, Outcome{Backend: b, Err: err})
	}
	return choice{}, none
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
func (o *Options) probe(ctx context.Context, b sandbox.Backend, key string) (*sandbox.Report, error) {
	rep, err := o.Record.probe(ctx, b, key)
	if err == nil && rep.Tier < o.minTier() {
		return nil, &sandbox.UnavailableError{Backend: b.Name(), Missing: fmt.Sprintf("tier %v required, but this machine has %v: %s missing",
			o.minTier(), rep.Tier, strings.Join(rep.Missing(), ", "))}
	}
	return rep, err
}

// ProbeAll probes every candidate, regardless of its tier, for a report, and
// updates the record, which may be nil. It returns an outcome for each, in the
// same order.
func ProbeAll(ctx context.Context, candidates []sandbox.Backend, record *Record) []Outcome {
	var out []Outcome
	for _, b := range candidates {
		rep, err := record.probe(ctx, b, record.probeKey(b))
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

// Close ends the processes that the candidates keep for the next sandbox, and
// makes them keep none. Sandboxes can still be started. The default candidates
// keep none.
func (c *Backend) Close() {
	for _, b := range c.opts.Candidates {
		if closer, ok := b.(interface{ Close() }); ok {
			closer.Close()
		}
	}
}
