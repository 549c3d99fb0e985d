package install

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/installed"
	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/internal/signature"
)

// clockTolerance is how far the clocks of a publisher and of this machine may
// differ.
const clockTolerance = 24 * time.Hour

// checkRelease compares the counter in a skill's signature with the highest one
// seen from its source, and records both in the step's entry. A version is a
// downgrade if its counter is lower or missing, or if the same counter was seen
// before with other files. The installed version itself is never a downgrade.
func (p *Plan) checkRelease(st *Step) error {
	now := releaseOf(st.Publisher)
	seen, err := p.highestSeen(st)
	if err != nil {
		return err
	}
	st.Entry.Counter, st.Entry.Signed = now.Counter, now.Time
	st.Entry.HighestCounter = max(now.Counter, seen.Counter)
	st.Counter = now.Counter
	have, same := p.installedFrom(st)
	if same && have.Digest == st.Digest {
		return nil
	}
	if isDowngrade(seen, now.Counter, st.Digest) {
		if !p.options.Downgrade {
			return downgradeError(st.Name, now, seen.Counter)
		}
		return nil
	}
	if clock := time.Now(); now.Time.After(clock.Add(clockTolerance)) {
		return &SkillError{Reason: WrongClock, Name: st.Name, Message: fmt.Sprintf("signature of %s is dated %s, later than the clock of this machine (%s)",
			st.Name, now.Time.Format(time.DateOnly), clock.UTC().Format(time.DateOnly))}
	}
	return st.checkExpiry()
}

// checkExpiry returns an error if the key of a new version has expired.
func (st *Step) checkExpiry() error {
	if st.Publisher == nil || st.Publisher.Expires.IsZero() || st.From.Kind == remote.Local {
		return nil
	}
	expires := st.Publisher.Expires
	if time.Now().Before(expires) && st.Publisher.Time.Before(expires) {
		return nil
	}
	return &SkillError{Reason: KeyExpired, Name: st.Name, Message: fmt.Sprintf("key of %s expired on %s (%s, key %s)",
		st.From.CanonicalURL(), expires.Format(time.DateOnly), st.Publisher.Name, st.Publisher.Fingerprint)}
}

// checkLockedRelease checks the counter of a lockfile entry to install. It must
// be the counter in the signature. Unless the user accepted the version, it
// must also be the highest counter seen for this lockfile on this machine.
func (p *Plan) checkLockedRelease(name string, e installed.Entry, signed signature.Release) error {
	if signed.Counter != e.Counter || !signed.Time.Equal(e.Signed) {
		return &SkillError{Reason: CounterMismatch, Name: name, Message: fmt.Sprintf("counter mismatch of %s: %s records %s, the signature has %s",
			name, installed.LockfileName, formatRelease(signature.Release{Counter: e.Counter, Time: e.Signed}), formatRelease(signed))}
	}
	seen, err := p.findSeen(name, e)
	if err != nil {
		return err
	}
	if seen.Accepted != e.Digest && isDowngrade(seen, e.Counter, e.Digest) && !p.options.Downgrade {
		return downgradeError(name, signed, seen.Counter)
	}
	return nil
}

func releaseOf(p *Publisher) signature.Release {
	if p == nil {
		return signature.Release{}
	}
	return p.Release
}

// isDowngrade reports whether a version is older than the highest one seen. If
// two versions have the same counter, the one that was seen later is a
// downgrade.
func isDowngrade(seen signature.Seen, counter uint64, digest string) bool {
	return counter < seen.Counter || counter > 0 && counter == seen.Counter && seen.Digest != "" && seen.Digest != digest
}

func downgradeError(name string, now signature.Release, highest uint64) error {
	e := &SkillError{Reason: Downgrade, Name: name}
	switch {
	case now.Counter == highest:
		e.Message = fmt.Sprintf("downgrade of %s: the source has other files with the same %s", name, formatRelease(now))
	default:
		e.Message = fmt.Sprintf("downgrade of %s: the source has %s, older than counter %d, which was seen before", name, formatRelease(now), highest)
	}
	return e
}

// formatRelease formats the counter and time of a signature.
func formatRelease(r signature.Release) string {
	if r.Counter == 0 {
		return "no counter"
	}
	return fmt.Sprintf("counter %d of %s", r.Counter, r.Time.Format(time.DateOnly))
}

// installedFrom returns the lockfile entry that a step replaces. same reports
// whether the skill comes from the same source.
func (p *Plan) installedFrom(st *Step) (have installed.Entry, same bool) {
	have, there := p.lock.Skills[st.Name]
	return have, there && have.From.CanonicalURL() == st.From.CanonicalURL()
}

// highestSeen returns the highest version of a step's skill that is recorded in
// the lockfile or on this machine.
func (p *Plan) highestSeen(st *Step) (signature.Seen, error) {
	seen, err := p.findSeen(st.Name, st.Entry)
	if err != nil {
		return seen, err
	}
	if have, same := p.installedFrom(st); same && have.HighestCounter >= seen.Counter {
		if have.HighestCounter > seen.Counter {
			seen.Counter, seen.Digest = have.HighestCounter, ""
		}
		if have.Counter == have.HighestCounter {
			seen.Digest = have.Digest
		}
	}
	return seen, nil
}

// findSeen returns the highest version of a skill that this machine has
// recorded for this lockfile.
func (p *Plan) findSeen(name string, e installed.Entry) (signature.Seen, error) {
	if p.options.History == nil {
		return signature.Seen{}, nil
	}
	return p.options.History.Find(lockfileScope(p.dir), e.From.CanonicalURL(), name)
}

// recordReleases stores the counters of the skills in the plan, including those
// of unchanged skills.
func (p *Plan) recordReleases(ctx context.Context) error {
	if p.options.History == nil {
		return nil
	}
	var all []signature.Seen
	for _, st := range p.Steps {
		e := st.Entry
		if e.HighestCounter == 0 || p.hasUnknownKey(st) {
			continue
		}
		s := signature.Seen{Scope: lockfileScope(p.dir), Source: e.From.CanonicalURL(), Name: st.Name, Counter: e.HighestCounter, Digest: e.Digest}
		if e.Counter < e.HighestCounter {
			s.Digest, s.Accepted = "", e.Digest
		}
		all = append(all, s)
	}
	if len(all) == 0 {
		return nil
	}
	if err := p.options.History.Record(ctx, all...); err != nil {
		return fmt.Errorf("skills were installed, but recording their counters failed: %w", err)
	}
	return nil
}

// hasUnknownKey reports whether a step's signature cannot be attributed to the
// publisher of its source. The key of a skill fetched by commit must not be
// pinned, because anyone may have pushed the commit.
func (p *Plan) hasUnknownKey(st *Step) bool {
	return st.isCommit() && p.pins[st.From.CanonicalURL()].Key == ""
}

// ChosenVersions returns the digests of the versions that the user chose for
// this plan: by naming a tag or a commit, or with [Options.Downgrade]. The
// content of a lockfile is not the user's choice, because anyone may have
// written it.
func (p *Plan) ChosenVersions() []string {
	var all []string
	for _, st := range p.Steps {
		older := p.options.Downgrade && st.Entry.Counter < st.Entry.HighestCounter
		if st.named && (isPinned(st.Entry) || older) {
			all = append(all, st.Digest)
		}
	}
	return all
}

// isPinned reports whether an entry refers to a tag or a commit, as opposed to
// a branch.
func isPinned(e installed.Entry) bool {
	return e.From.Kind == remote.Git && (strings.HasPrefix(e.Ref, "refs/tags/") || e.Ref == "" && e.From.Ref != "")
}

// lockfileScope identifies the lockfile of a directory on this machine.
func lockfileScope(d *installed.Dir) string {
	if real, err := filepath.EvalSymlinks(d.Path()); err == nil {
		return real
	}
	return d.Path()
}
