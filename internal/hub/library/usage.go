package library

import (
	"context"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// Usage counts how often a skill was used.
type Usage = store.SkillUsage

// Usage returns the usage of skills, by ID, since the day that contains start.
// It accepts up to [store.MaxPage] IDs. It omits unused skills and those whose
// usage the principal is not allowed to see.
func (l *Library) Usage(ctx context.Context, p account.Principal, ids []string, start time.Time) (map[string]Usage, error) {
	seen, err := l.filterAllowed(ctx, p, account.UsageRead, ids)
	if err != nil {
		return nil, err
	}
	return l.db.Usage.Sum(ctx, seen, start)
}

// UsageDays returns the daily usage of a skill since the day that contains
// start, oldest day first. It omits days without usage and returns up to
// [store.MaxPage] days.
func (l *Library) UsageDays(ctx context.Context, p account.Principal, id string, start time.Time) ([]store.UsageDay, error) {
	if _, err := l.authorize(ctx, p, account.UsageRead, id); err != nil {
		return nil, err
	}
	return l.db.Usage.ListDays(ctx, id, start)
}

// SkillUsage is a skill with its usage.
type SkillUsage struct {
	*Skill
	Usage
}

// ListUsage returns the skills in the given namespaces sorted by name, with their
// usage since the day that contains start, and the cursor of the next page. It
// includes unused skills. The principal must be allowed to see the usage in each
// namespace. If in is empty, ListUsage uses all such namespaces.
func (l *Library) ListUsage(ctx context.Context, p account.Principal, in []Namespace, start time.Time, page store.Page) ([]SkillUsage, string, error) {
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
	uses, err := l.db.Usage.Sum(ctx, ids, start)
	if err != nil {
		return nil, "", err
	}
	out := make([]SkillUsage, len(rows))
	for i, s := range rows {
		out[i] = SkillUsage{newSkill(s, nil), uses[s.ID]}
	}
	return out, next, nil
}

// usageNamespaces returns the given namespaces. If in is empty, it returns all
// namespaces whose usage the principal may see.
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

// ListUnused returns the skills that were created before start and have not been
// used from that day on, sorted by ID, and the cursor of the next page. It selects
// namespaces like [Library.ListUsage].
func (l *Library) ListUnused(ctx context.Context, p account.Principal, in []Namespace, start time.Time, page store.Page) ([]*Skill, string, error) {
	in, err := usageNamespaces(p, in)
	if err != nil {
		return nil, "", err
	}
	rows, next, err := l.db.Usage.ListUnused(ctx, in, start, page)
	if err != nil {
		return nil, "", err
	}
	out := make([]*Skill, len(rows))
	for i, s := range rows {
		out[i] = newSkill(s, nil)
	}
	return out, next, nil
}
