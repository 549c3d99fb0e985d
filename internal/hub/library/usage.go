package library

import (
	"context"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// Usage is how much a skill was used.
type Usage = store.SkillUsage

// RecordUsage adds what conversations used. It is the hub's own work, asked by nobody; what it
// says of a skill that is gone is left out.
func (l *Library) RecordUsage(ctx context.Context, uses ...Usage) error {
	return l.db.Usage.Add(ctx, uses...)
}

// Usage returns how much skills were used since the day of a time; those that were not,
// and those of which the principal may not know it, are left out. There are at most
// [store.MaxPage].
func (l *Library) Usage(ctx context.Context, p account.Principal, ids []string, since time.Time) (map[string]Usage, error) {
	seen, err := l.filterAllowed(ctx, p, account.UsageRead, ids)
	if err != nil {
		return nil, err
	}
	return l.db.Usage.Sum(ctx, seen, since)
}

// UsageDays returns how much a skill was used on each day since that of a time on which
// it was, the oldest first: at most [store.MaxPage].
func (l *Library) UsageDays(ctx context.Context, p account.Principal, id string, since time.Time) ([]store.UsageDay, error) {
	if _, err := l.authorize(ctx, p, account.UsageRead, id); err != nil {
		return nil, err
	}
	return l.db.Usage.ListDays(ctx, id, since)
}

// SkillUsage is how much a skill was used, with what it is.
type SkillUsage struct {
	*Skill
	Usage
}

// ListUsage returns how much each of the skills that namespaces list was used since the day of
// a time, by name, also those that were not, and how to ask for more. Of each namespace
// the principal may know the usage; none is all those of which he does.
func (l *Library) ListUsage(ctx context.Context, p account.Principal, in []Namespace, since time.Time, page store.Page) ([]SkillUsage, string, error) {
	in, err := usageNamespaces(p, in)
	if err != nil {
		return nil, "", err
	}
	rows, next, err := l.db.Skills.List(ctx, store.SkillQuery{Namespaces: in, Hidden: true, Page: page})
	if err != nil {
		return nil, "", err
	}
	ids := make([]string, len(rows))
	for i, s := range rows {
		ids[i] = s.ID
	}
	uses, err := l.db.Usage.Sum(ctx, ids, since)
	if err != nil {
		return nil, "", err
	}
	out := make([]SkillUsage, len(rows))
	for i, s := range rows {
		out[i] = SkillUsage{newSkill(s, nil), uses[s.ID]}
	}
	return out, next, nil
}

// usageNamespaces are namespaces of which the principal may know the usage: those that are
// asked for, or, where none is, all.
func usageNamespaces(p account.Principal, in []Namespace) ([]Namespace, error) {
	for _, n := range in {
		if err := checkNamespace(p, account.UsageRead, n); err != nil {
			return nil, err
		}
	}
	if len(in) > 0 {
		return in, nil
	}
	return namespaces(p, account.UsageRead)
}

// ListUnused returns the skills of namespaces that are there for longer than since and were
// not used after its day, by id, and how to ask for more. Of each namespace the
// principal may know the usage; none is all those of which he does.
func (l *Library) ListUnused(ctx context.Context, p account.Principal, in []Namespace, since time.Time, page store.Page) ([]*Skill, string, error) {
	in, err := usageNamespaces(p, in)
	if err != nil {
		return nil, "", err
	}
	rows, next, err := l.db.Usage.ListUnused(ctx, in, since, page)
	if err != nil {
		return nil, "", err
	}
	out := make([]*Skill, len(rows))
	for i, s := range rows {
		out[i] = newSkill(s, nil)
	}
	return out, next, nil
}
