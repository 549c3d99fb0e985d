package library

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/untrusted"
)

// SourceCheckInterval is the time between two calls to [Library.CheckSources].
const SourceCheckInterval = 6 * time.Hour

// Limits of the checks that users start, on each node.
const (
	sourceCheckPause = time.Minute // between checks of the source of a skill
	maxCheckedSkills = 10_000      // skills for which the pause is tracked
)

// SourceStatus is the result of the last check of a skill's source.
type SourceStatus struct {
	Checked     time.Time `json:"checked" doc:"When the source was checked last"`
	FailedSince time.Time `json:"failedSince,omitzero" doc:"The first of the checks that failed since the last success; absent if the last one succeeded"`
	Error       string    `json:"error,omitempty" doc:"Why the last check failed"`
	Newest      string    `json:"newest,omitempty" doc:"Newest commit that a check found, if it is not that of the skill"`
}

func newSourceStatus(from *Source, r store.SourceCheck) *SourceStatus {
	out := &SourceStatus{Checked: r.Checked, FailedSince: r.FailedSince, Error: untrusted.New(r.Error).ForPage(), Newest: r.Newest}
	if out.Newest == from.Commit {
		out.Newest = "" // imported since the check
	}
	return out
}

// SourceStatus returns the result of the last check of a skill's source. It returns nil
// if there is none, if updates skip the skill, or if the principal must not change it.
func (l *Library) SourceStatus(ctx context.Context, p account.Principal, id string) (*SourceStatus, error) {
	h, err := l.getSkill(ctx, &l.db.Tables, id)
	if err != nil {
		return nil, err
	}
	from := readSource(h.Source)
	if checkableSource(from) != nil || h.check(p, account.SkillChange, h.CreatedBy) != nil {
		return nil, nil
	}
	r, err := l.db.SourceChecks.Get(ctx, id)
	if isNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return newSourceStatus(from, r), nil
}

// checkableSource returns an error if sources like from are not checked.
func checkableSource(from *Source) error {
	switch {
	case from == nil:
		return invalidf("skill was uploaded, not imported")
	case from.Pinned:
		return invalidf("updates skip the skill; include it in updates first")
	case from.Kind != string(remote.Git):
		return invalidf("only sources in Git repositories are checked; update the skill instead")
	}
	return nil
}

// CheckSource checks the source of a skill now, at most once per minute and node. The
// principal must be allowed to change the skill. Like [Library.CheckSources], it uses
// the credentials of the user who imported the skill. If the source fails, the result
// contains the reason.
func (l *Library) CheckSource(ctx context.Context, p account.Principal, id string) (*SourceStatus, error) {
	h, err := l.authorize(ctx, p, account.SkillChange, id)
	if err != nil {
		return nil, err
	}
	s := newSkill(h.Skill, nil)
	if err := checkableSource(s.Source); err != nil {
		return nil, err
	}
	if err := l.sourceChecks.Allow(id); err != nil {
		return nil, err
	}
	if err := l.checkSource(ctx, []*Skill{s}, &SourceCheck{Failed: map[string]error{}}); err != nil {
		return nil, err
	}
	ctx, stop := afterCommit(ctx)
	defer stop()
	r, err := l.db.SourceChecks.Get(ctx, id)
	if err != nil { // deleted, or updated meanwhile
		return nil, hideNotFound(id, err)
	}
	return newSourceStatus(s.Source, r), nil
}

// SourceCheck is the result of [Library.CheckSources].
type SourceCheck struct {
	Sources  int // number of sources
	Outdated int // number of skills with a newer commit
	// Failed holds the error of each source that could not be checked.
	Failed map[string]error
}

// CheckSources checks the sources of all imported skills for new commits, and records
// the results. It notifies the managers of outdated skills once for each commit. Only
// one node at a time should call it. It returns an error only if the database fails;
// source errors are in the result.
func (l *Library) CheckSources(ctx context.Context) (*SourceCheck, error) {
	out := &SourceCheck{Failed: map[string]error{}}
	for after := int64(0); ; {
		changes, err := l.db.Skills.Changes(ctx, after)
		if err != nil || len(changes) == 0 {
			return out, err
		}
		var skills []*Skill
		for _, c := range changes {
			after = c.Revision
			if c.Skill == nil {
				continue
			}
			if s := newSkill(*c.Skill, nil); checkableSource(s.Source) == nil {
				skills = append(skills, s)
			}
		}
		for _, group := range groupBySource(skills) {
			if err := l.checkSource(ctx, group, out); err != nil {
				return out, err
			}
		}
	}
}

// checkSource checks the source that the given skills share, and records the result for
// each of them. It uses the credentials of the user who imported the first skill.
func (l *Library) checkSource(ctx context.Context, skills []*Skill, out *SourceCheck) error {
	from := skills[0].Source
	out.Sources++
	failure := ""
	commit, err := l.latestCommit(ctx, account.UserID(from.By), from)
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		out.Failed[from.location().String()] = err
		if failure, err = l.describeSourceError(ctx, from, err); err != nil {
			return err
		}
	}
	if err := l.recordSourceCheck(ctx, skills, commit, failure); err != nil {
		return err
	}
	for _, s := range skills {
		if !isNewer(s, commit) {
			continue
		}
		out.Outdated++
		err := l.db.Tx(ctx, func(tx *store.Tx) error {
			to := recipients{}
			if err := l.addMembers(ctx, tx, to, s.Namespace, store.Maintainer); err != nil {
				return err
			}
			return l.notify(ctx, tx, to, "", SourceChanged, s.ID+"@"+commit, NotificationDetails{SkillID: s.ID, Name: s.Name, Commit: commit})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// isNewer reports whether commit, the newest commit of the skill's source, is known
// and differs from the skill's commit.
func isNewer(s *Skill, commit string) bool { return commit != "" && commit != s.Source.Commit }

// recordSourceCheck records the result of a check for each of the skills, except those
// that were deleted, or got another source or commit meanwhile.
func (l *Library) recordSourceCheck(ctx context.Context, skills []*Skill, commit, failure string) error {
	return l.db.Tx(ctx, func(tx *store.Tx) error {
		for _, s := range skills {
			now, err := tx.Skills.Get(ctx, s.ID)
			if isNotFound(err) || err == nil && !bytes.Equal(readSource(now.Source).encode(), s.Source.encode()) {
				continue
			}
			if err != nil {
				return err
			}
			r := store.SourceCheck{SkillID: s.ID, Error: failure}
			if isNewer(s, commit) {
				r.Newest = commit
			}
			if err := tx.SourceChecks.Record(ctx, r); err != nil {
				return err
			}
		}
		return nil
	})
}

// describeSourceError describes to users why a source could not be checked. It omits
// local errors, which would reveal paths on this machine.
func (l *Library) describeSourceError(ctx context.Context, from *Source, why error) (string, error) {
	e, ok := errors.AsType[*SourceError](wrapSourceError(why))
	if !ok {
		return "the hub failed; its log has the reason", nil
	}
	text := e.Error()
	_, denied := errors.AsType[*remote.DeniedError](why)
	_, missing := errors.AsType[*remote.NotFoundError](why) // private sources look missing to anonymous clients
	if denied || missing {
		u, err := l.db.Users.Get(ctx, from.By)
		if err != nil && !isNotFound(err) {
			return "", err
		}
		if err != nil || u.Disabled {
			text = "the user who imported the skill was deleted or disabled, so no credential is used: " + text
		}
	}
	return cleanLine(text, store.MaxSourceError), nil
}

// setSource replaces the source of a skill. Checks of the previous one no longer count.
func setSource(ctx context.Context, tx *store.Tx, id string, from *Source) error {
	if err := tx.Skills.Update(ctx, id, from.origin(), from.encode()); err != nil {
		return err
	}
	return tx.SourceChecks.Delete(ctx, id)
}

// dropFailure removes the last check of a skill's source if it failed.
func dropFailure(ctx context.Context, tx *store.Tx, id string) error {
	last, err := tx.SourceChecks.Get(ctx, id)
	if isNotFound(err) || err == nil && last.FailedSince.IsZero() {
		return nil
	}
	if err != nil {
		return err
	}
	return tx.SourceChecks.Delete(ctx, id)
}
