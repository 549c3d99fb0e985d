package library

import (
	"context"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// Attention is a reason why a skill needs the attention of a user.
type Attention string

// Reasons for attention.
const (
	ReviewNeeded   Attention = "review"        // a version is awaiting the user's review
	ScanFailed     Attention = "scan"          // the scan of the current version failed, and the user may upload another
	SourceOutdated Attention = "source"        // the source has a newer commit, and the user may update the skill
	SourceFailed   Attention = "source-failed" // the checks of the source have failed for some time, and the user may change the skill
)

// failuresUntilAttention is how long checks of a source fail before [SourceFailed]. A
// single failure needs no attention.
const failuresUntilAttention = 2 * SourceCheckInterval

// attentionOf returns why skills need the attention of the principal, by ID. It
// omits the other skills.
func (l *Library) attentionOf(ctx context.Context, p account.Principal, skills []*indexedSkill) (map[string][]Attention, error) {
	checks, err := l.db.SourceChecks.ListOpen(ctx, time.Now().Add(-failuresUntilAttention))
	if err != nil {
		return nil, err
	}
	out := map[string][]Attention{}
	approvals := newApprovalReader(&l.db.Tables, p)
	for _, k := range skills {
		var why []Attention
		for _, v := range k.pending {
			needed, err := approvals.needsDecision(ctx, p, k.home, k.listings, v)
			if err != nil {
				return nil, err
			}
			if needed {
				why = append(why, ReviewNeeded)
				break
			}
		}
		if changes := k.changesNeeded(checks[k.id]); changes != nil && account.Can(p, account.SkillChange, accountResource(k.home, k.author)) {
			why = append(why, changes...)
		}
		if why != nil {
			out[k.id] = why
		}
	}
	return out, nil
}

// changesNeeded returns the reasons for the attention of users who may change the
// skill. last is the result of [store.SourceChecks.ListOpen] for it, or zero.
func (k *indexedSkill) changesNeeded(last store.SourceCheck) []Attention {
	var why []Attention
	if k.unscanned {
		why = append(why, ScanFailed)
	}
	if k.commit == "" { // updates skip it
		return why
	}
	if last.Newest != "" && last.Newest != k.commit {
		why = append(why, SourceOutdated)
	}
	if failed := last.FailedSince; !failed.IsZero() && time.Since(failed) >= failuresUntilAttention {
		why = append(why, SourceFailed)
	}
	return why
}

// countTeamUses returns how often the principal and the members of its groups used each
// skill, by ID, if the principal may see their usage. It counts the uses of those who
// used the skill in the period. The uses of other members count only if at least two of
// them used the skill.
func (l *Library) countTeamUses(ctx context.Context, p account.Principal, since time.Time) (map[string]int64, error) {
	if !account.Can(p, account.UsageRead, account.OwnedBy(p.User)) {
		return nil, nil
	}
	in, err := namespaces(p, account.UsageRead)
	if err != nil {
		return nil, err
	}
	var groups []string
	for _, n := range in {
		if g := n.Group(); g != "" {
			groups = append(groups, g)
		}
	}
	rows, err := l.db.Usage.ListTeam(ctx, string(p.User), groups, since)
	out := map[string]int64{}
	for _, r := range rows {
		n := r.Own
		if r.Members > 1 {
			n += r.Others
		}
		if n > 0 {
			out[r.SkillID] = n
		}
	}
	return out, err
}
