package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

// SkillUsage counts the uses of a skill. It is either an increment for
// [Usage.Add] or a total from [Usage.Sum].
type SkillUsage struct {
	SkillID  string
	Loads    int64
	Calls    int64
	Errors   int64
	Tokens   int64
	LastUsed time.Time
}

func (u *SkillUsage) fields() []any {
	return []any{&u.SkillID, &u.Loads, &u.Calls, &u.Errors, &u.Tokens, (*timestamp)(&u.LastUsed)}
}

// UsageDay holds the usage of a skill on a day in UTC.
type UsageDay struct {
	Date time.Time // start of the day
	SkillUsage
}

func (d *UsageDay) fields() []any { return append([]any{(*date)(&d.Date)}, d.SkillUsage.fields()...) }

// date is a day, stored as the number of days since 1970.
type date time.Time

const daySeconds = 24 * 60 * 60

func dayNumber(t time.Time) int64 { return t.Unix() / daySeconds }

func (d *date) Scan(v any) error {
	n, ok := v.(int64)
	if !ok {
		return fmt.Errorf("%T cannot be scanned as a day", v)
	}
	*d = date(time.Unix(n*daySeconds, 0).UTC())
	return nil
}

// Usage stores the usage of skills by day.
type Usage struct{ c conn }

// Add adds each usage to the day of its LastUsed, all or none. It ignores usage
// of deleted skills.
func (t Usage) Add(ctx context.Context, uses ...SkillUsage) error {
	uses = slices.Clone(uses)
	// A fixed order prevents deadlocks between concurrent calls.
	slices.SortFunc(uses, func(a, b SkillUsage) int { return cmp.Compare(a.SkillID, b.SkillID) })
	err := t.c.inTransaction(ctx, func(c conn) error {
		for _, u := range uses {
			_, err := c.exec(ctx, `INSERT INTO usage (skill_id, day, loads, calls, errors, tokens, used)
				SELECT s.id, CAST($2 AS BIGINT), CAST($3 AS BIGINT), CAST($4 AS BIGINT), CAST($5 AS BIGINT), CAST($6 AS BIGINT), CAST($7 AS BIGINT)
				FROM skills s WHERE s.id = $1
				ON CONFLICT (skill_id, day) DO UPDATE SET loads = usage.loads + excluded.loads, calls = usage.calls + excluded.calls,
				errors = usage.errors + excluded.errors, tokens = usage.tokens + excluded.tokens,
				used = CASE WHEN usage.used > excluded.used THEN usage.used ELSE excluded.used END`,
				u.SkillID, dayNumber(u.LastUsed), u.Loads, u.Calls, u.Errors, u.Tokens, timestamp(u.LastUsed))
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("add usage: %w", err)
	}
	return nil
}

// Sum returns the total usage of up to [MaxPage] skills since the given day, by
// skill id. It omits unused skills.
func (t Usage) Sum(ctx context.Context, skillIDs []string, since time.Time) (map[string]SkillUsage, error) {
	if len(skillIDs) > MaxPage {
		return nil, fmt.Errorf("sum usage: %w: %d skills, limit %d", ErrInvalid, len(skillIDs), MaxPage)
	}
	out := make(map[string]SkillUsage, len(skillIDs))
	if len(skillIDs) == 0 {
		return out, nil
	}
	found, err := queryAll[SkillUsage](ctx, t.c, "SELECT u.skill_id, "+castSums+" FROM usage u WHERE u.day >= $1 AND u.skill_id IN ("+
		placeholders(2, len(skillIDs))+") GROUP BY u.skill_id", append([]any{dayNumber(since)}, toArgs(skillIDs)...)...)
	if err != nil {
		return nil, fmt.Errorf("sum usage: %w", err)
	}
	for _, u := range found {
		out[u.SkillID] = u
	}
	return out, nil
}

// castSums casts sums to integers, because PostgreSQL returns decimals.
const castSums = "CAST(sum(u.loads) AS BIGINT), CAST(sum(u.calls) AS BIGINT), CAST(sum(u.errors) AS BIGINT), CAST(sum(u.tokens) AS BIGINT), max(u.used)"

// ListDays returns the usage on up to [MaxPage] days on which a skill was used,
// from the day of since, oldest first.
func (t Usage) ListDays(ctx context.Context, skillID string, since time.Time) ([]UsageDay, error) {
	found, err := queryAll[UsageDay](ctx, t.c, `SELECT u.day, u.skill_id, u.loads, u.calls, u.errors, u.tokens, u.used
		FROM usage u WHERE u.skill_id = $1 AND u.day >= $2 ORDER BY u.day LIMIT $3`, skillID, dayNumber(since), MaxPage)
	if err != nil {
		return nil, fmt.Errorf("list usage of skill %q: %w", skillID, err)
	}
	return found, nil
}

// ListUnused returns the skills in up to [MaxNamespaces] namespaces that were
// created before the given time and not used since. It sorts them by id, and
// also returns the cursor of the next page.
func (t Usage) ListUnused(ctx context.Context, in []Namespace, since time.Time, p Page) ([]Skill, string, error) {
	keys, err := p.decodeCursor(1)
	if err == nil {
		err = checkNamespaces(in)
	}
	if err != nil || len(in) == 0 {
		return nil, "", err
	}
	found, err := queryAll[Skill](ctx, t.c, skillSelect+`WHERE s.id > $1 AND s.created < $2 AND s.namespace IN (`+placeholders(5, len(in))+`)
		AND NOT EXISTS (SELECT 1 FROM usage u WHERE u.skill_id = s.id AND u.day >= $3) ORDER BY s.id LIMIT $4`,
		append([]any{keys[0], timestamp(since), dayNumber(since), p.pageSize() + 1}, toArgs(in)...)...)
	if err != nil {
		return nil, "", fmt.Errorf("list unused skills: %w", err)
	}
	found, next := cutPage(p, found, func(s Skill) []string { return []string{s.ID} })
	return found, next, nil
}

// Prune deletes the usage before a day and returns the number of deleted rows.
func (t Usage) Prune(ctx context.Context, before time.Time) (int64, error) {
	n, err := t.c.exec(ctx, "DELETE FROM usage WHERE day < $1", dayNumber(before))
	if err != nil {
		return 0, fmt.Errorf("delete old usage: %w", err)
	}
	return n, nil
}
