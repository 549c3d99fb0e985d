package library

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// Attention is a reason why a skill needs the attention of a user.
type Attention string

// Reasons for attention.
const (
	ReviewNeeded   Attention = "review" // a version is awaiting the user's review
	ScanFailed     Attention = "scan"   // the scan of the current version failed, and the user may upload another
	SourceOutdated Attention = "source" // the source has a newer commit, and the user has not seen that notification
)

// attentionOf returns why skills need the attention of the principal, by ID. It
// omits the other skills.
func (l *Library) attentionOf(ctx context.Context, p account.Principal, skills []*indexedSkill) (map[string][]Attention, error) {
	commits, err := l.newCommits(ctx, p, skills)
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
		if k.unscanned && account.Can(p, account.SkillChange, accountResource(k.home, k.author)) {
			why = append(why, ScanFailed)
		}
		if n, ok := commits[k.id]; ok && k.commit != "" && n.commit != k.commit && n.created.After(k.since) {
			why = append(why, SourceOutdated)
		}
		if why != nil {
			out[k.id] = why
		}
	}
	return out, nil
}

// newCommit is a newer commit at the source of a skill.
type newCommit struct {
	commit  string
	created time.Time // of the notification
}

// newCommits returns the newest commits at the sources of skills, by ID, from the
// newest unseen notifications of the principal about sources, at most [store.MaxPage],
// if it may read them.
func (l *Library) newCommits(ctx context.Context, p account.Principal, skills []*indexedSkill) (map[string]newCommit, error) {
	if !account.Can(p, account.NotificationRead, account.OwnedBy(p.User)) || !slices.ContainsFunc(skills, func(k *indexedSkill) bool { return k.commit != "" }) {
		return nil, nil
	}
	rows, _, err := l.db.Notifications.List(ctx, store.NotificationQuery{UserID: string(p.User), Kind: SourceChanged, Unseen: true, Page: store.Page{Limit: store.MaxPage}})
	out := map[string]newCommit{}
	for _, n := range slices.Backward(rows) { // oldest first
		var d NotificationDetails
		if json.Unmarshal(n.Data, &d) == nil {
			out[d.SkillID] = newCommit{d.Commit, n.Created}
		}
	}
	return out, err
}

// teamUses returns how often the principal and the members of its groups used each
// skill, by ID, if the principal may see their usage. It counts the uses of those who
// used the skill in the period. The uses of other members count only if at least two of
// them used the skill.
func (l *Library) teamUses(ctx context.Context, p account.Principal, since time.Time) (map[string]int64, error) {
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
