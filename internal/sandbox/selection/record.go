package selection

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/loadout-dev/loadout/internal/privatefile"
	"github.com/loadout-dev/loadout/sandbox"
)

// Limits of a [Record].
const (
	recordTTL      = 24 * time.Hour
	maxRecorded    = 32
	maxRecordBytes = 256 << 10
)

// Record stores successful probes in a file of the current user, so that later
// processes need not repeat them. It is safe for concurrent use, including by several
// processes. A nil Record remembers nothing.
//
// A record is used for 24 hours, and only while the key of the backend is the
// same: the machine, the rights of this process and the programs. It replaces
// only the test from inside: a sandbox still applies and checks its layers at
// each start. Control groups are optional, so a sandbox without them may have a
// lower tier than the record; it is closed before it runs anything. A file that
// another user could have written, or that is damaged, counts as empty.
type Record struct{ file *privatefile.File }

// NewRecord returns the record in the file at path. It does not access the file.
func NewRecord(path string) *Record { return &Record{privatefile.New(path, maxRecordBytes)} }

// keyed is implemented by backends whose probes can be stored. If ProbeKey returns an
// error, the backend must be probed.
type keyed interface{ ProbeKey() (string, error) }

// probeKey returns the key of a backend, or "" if its probes are not
// remembered.
func (r *Record) probeKey(b sandbox.Backend) string {
	if k, ok := b.(keyed); ok && r != nil {
		if key, err := k.ProbeKey(); err == nil {
			return key
		}
	}
	return ""
}

// recordFile is the content of the file.
type recordFile struct {
	Version int             `json:"version"`
	Probes  []recordedProbe `json:"probes"`
}

// recordedProbe is a successful probe.
type recordedProbe struct {
	Key    string          `json:"key"`
	Time   time.Time       `json:"time"`
	Report *sandbox.Report `json:"report"`
}

// decodeRecord returns the probes in a file that are not older than recordTTL,
// newest first.
func decodeRecord(data []byte) []recordedProbe {
	var f recordFile
	if privatefile.CheckVersion(data, 1) != nil || json.Unmarshal(data, &f) != nil {
		return nil
	}
	now := time.Now()
	f.Probes = slices.DeleteFunc(f.Probes, func(p recordedProbe) bool {
		age := now.Sub(p.Time)
		return p.Report == nil || age < 0 || age >= recordTTL
	})
	slices.SortStableFunc(f.Probes, func(a, b recordedProbe) int { return b.Time.Compare(a.Time) })
	return f.Probes
}

// probe probes a backend and remembers or forgets its key.
func (r *Record) probe(ctx context.Context, b sandbox.Backend, key string) (*sandbox.Report, error) {
	rep, err := b.Probe(ctx)
	if err == nil {
		r.add(ctx, key, rep)
	} else if ctx.Err() == nil {
		if forgetErr := r.remove(ctx, key); forgetErr != nil {
			err = errors.Join(err, forgetErr)
		}
	}
	return rep, err
}

// find returns the report of the stored probe with the given key, and the time of the
// probe. It returns nil if there is no such probe, or if the report cannot be one of
// b.
func (r *Record) find(b sandbox.Backend, key string) (*sandbox.Report, time.Time) {
	if r == nil || key == "" {
		return nil, time.Time{}
	}
	data, err := r.file.Read()
	if err != nil {
		return nil, time.Time{}
	}
	for _, p := range decodeRecord(data) {
		if p.Key == key && p.Report.Backend == b.Name() && p.Report.Tier > sandbox.None && p.Report.Tier <= b.Tier() {
			return p.Report, p.Time
		}
	}
	return nil, time.Time{}
}

// add remembers a successful probe. Without it, the next process probes again,
// so errors are ignored.
func (r *Record) add(ctx context.Context, key string, report *sandbox.Report) {
	if r == nil || key == "" {
		return
	}
	r.file.Renew(ctx, func(old []byte) ([]byte, error) {
		probes := withoutKey(decodeRecord(old), key)
		probes = slices.Insert(probes, 0, recordedProbe{key, time.Now().UTC(), report})
		return json.Marshal(recordFile{1, probes[:min(len(probes), maxRecorded)]})
	})
}

// remove forgets a probe. It creates no file.
func (r *Record) remove(ctx context.Context, key string) error {
	if r == nil || key == "" {
		return nil
	}
	if data, err := r.file.Read(); err != nil || !slices.ContainsFunc(decodeRecord(data), func(p recordedProbe) bool { return p.Key == key }) {
		return nil // find does not return it either
	}
	err := r.file.Renew(ctx, func(old []byte) ([]byte, error) {
		return json.Marshal(recordFile{1, withoutKey(decodeRecord(old), key)})
	})
	if err != nil {
		return fmt.Errorf("forget a probe of the sandbox in %s: %w", r.file.Path(), err)
	}
	return nil
}

func withoutKey(probes []recordedProbe, key string) []recordedProbe {
	return slices.DeleteFunc(probes, func(p recordedProbe) bool { return p.Key == key })
}

// Prepare chooses a backend in advance, so that the first sandbox need not wait
// for the probes. It does nothing if the record has a result for a candidate or
// cannot have one: programs that start no sandbox should not probe each time.
// Prepare keeps its result even if it cannot be recorded.
func (c *Backend) Prepare(ctx context.Context) {
	c.choosing.Lock() // Choose waits for the result
	defer c.choosing.Unlock()
	if now, _, err := c.cached(false); now.b != nil || err != nil || !c.opts.lacksRecord() {
		return
	}
	if found, err := c.search(ctx, false); ctx.Err() == nil {
		c.set(found, err) // Choose returns the error
	}
}

// lacksRecord reports whether the probe of a candidate could be recorded, but
// none is.
func (o *Options) lacksRecord() bool {
	all, err := o.candidates()
	if err != nil {
		return false
	}
	possible := false
	for _, b := range all {
		key := o.Record.probeKey(b)
		if rep, _ := o.Record.find(b, key); rep != nil && rep.Tier >= o.minTier() {
			return false
		}
		possible = possible || key != ""
	}
	return possible
}

// recorded is a backend that was chosen because of a record instead of a probe.
type recorded struct {
	sandbox.Backend
	key string
	rep *sandbox.Report // of the record
	c   *Backend
}

// Start starts a sandbox. If the backend is unavailable, or if the sandbox has a
// lower tier than the record, the record is wrong: it is removed, and c probes
// again. Other errors have other causes, such as the spec. Start does not fall
// back to another backend, because the caller may have relied on the tier of this
// one.
func (b *recorded) Start(ctx context.Context, spec *sandbox.Spec) (sandbox.Sandbox, error) {
	box, err := b.Backend.Start(ctx, spec)
	if err == nil {
		if err = b.checkTier(box, spec); err == nil {
			return box, nil
		}
		err = errors.Join(err, box.Close())
	}
	if _, ok := errors.AsType[*sandbox.UnavailableError](err); !ok || ctx.Err() != nil {
		return nil, err
	}
	if forgetErr := b.c.forget(ctx, b); forgetErr != nil {
		err = errors.Join(err, forgetErr)
	}
	now, _, chooseErr := b.c.Renew(ctx)
	switch {
	case ctx.Err() != nil:
		return nil, err
	case chooseErr != nil:
		return nil, errors.Join(chooseErr, err)
	case now.Name() != b.Name():
		return nil, fmt.Errorf("%w; the sandbox %s will be used instead: try again", err, now.Name())
	}
	return nil, err
}

// checkTier returns an error if a sandbox has a lower tier than the record. With
// the host's network, a lower tier is normal.
func (b *recorded) checkTier(box sandbox.Sandbox, spec *sandbox.Spec) error {
	tier := cmp.Or(box.State().Tier, b.Tier())
	if spec.Network.Host || tier >= b.rep.Tier {
		return nil
	}
	return &sandbox.UnavailableError{Backend: b.Name(), Fix: "try again",
		Missing: fmt.Sprintf("tier %v, which the last test had: the sandbox has %v", b.rep.Tier, tier)}
}
