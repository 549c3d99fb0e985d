package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

// Use is how much a skill was used: added to what is kept, or summed up.
type Use struct {
	SkillID string
	Loads   int64
	Calls   int64
	Errors  int64
	Tokens  int64
	Used    time.Time // for the last time
}

func (u *Use) fields() []any {
	return []any{&u.SkillID, &u.Loads, &u.Calls, &u.Errors, &u.Tokens, (*stamp)(&u.Used)}
}

// Day is a use of a skill on one day in UTC.
type Day struct {
	Date time.Time // its beginning
	Use
}

func (d *Day) fields() []any { return append([]any{(*date)(&d.Date)}, d.Use.fields()...) }

// date is a day as it is kept: days since 1970.
type date time.Time

const daySeconds = 24 * 60 * 60

func dayOf(t time.Time) int64 { return t.Unix() / daySeconds }

func (d *date) Scan(v any) error {
	n, ok := v.(int64)
	if !ok {
		return fmt.Errorf("%T is no day", v)
	}
	*d = date(time.Unix(n*daySeconds, 0).UTC())
	return nil
}

// Usage keeps how much skills are used, by day.
type Usage struct{ c conn }

// Add adds what was used, all or nothing, to the day of its time. What it says of a
// skill that is gone is left out.
func (t Usage) Add(ctx context.Context, uses ...Use) error {
	uses = slices.Clone(uses)
	// In one order, so that two that add do not wait for each other.
	slices.SortFunc(uses, func(a, b Use) int { return cmp.Compare(a.SkillID, b.SkillID) })
	err := t.c.atomic(ctx, func(c conn) error {
		for _, u := range uses {
			_, err := c.exec(ctx, `INSERT INTO usage (skill_id, day, loads, calls, errors, tokens, used)
				SELECT s.id, CAST($2 AS BIGINT), CAST($3 AS BIGINT), CAST($4 AS BIGINT), CAST($5 AS BIGINT), CAST($6 AS BIGINT), CAST($7 AS BIGINT)
				FROM skills s WHERE s.id = $1
				ON CONFLICT (skill_id, day) DO UPDATE SET loads = usage.loads + excluded.loads, calls = usage.calls + excluded.calls,
				errors = usage.errors + excluded.errors, tokens = usage.tokens + excluded.tokens,
				used = CASE WHEN usage.used > excluded.used THEN usage.used ELSE excluded.used END`,
				u.SkillID, dayOf(u.Used), u.Loads, u.Calls, u.Errors, u.Tokens, stamp(u.Used))
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

// Sum returns how much skills were used since the day of a time, at most [MaxPage];
// those that were not are left out.
func (t Usage) Sum(ctx context.Context, skillIDs []string, since time.Time) (map[string]Use, error) {
	if len(skillIDs) > MaxPage {
		return nil, fmt.Errorf("sum up usage: %w: %d skills, more than %d", ErrInvalid, len(skillIDs), MaxPage)
	}
	out := make(map[string]Use, len(skillIDs))
	if len(skillIDs) == 0 {
		return out, nil
	}
	found, err := all[Use](ctx, t.c, "SELECT u.skill_id, "+castSums+" FROM usage u WHERE u.day >= $1 AND u.skill_id IN ("+
		places(2, len(skillIDs))+") GROUP BY u.skill_id", append([]any{dayOf(since)}, anys(skillIDs)...)...)
	if err != nil {
		return nil, fmt.Errorf("sum up usage: %w", err)
	}
	for _, u := range found {
		out[u.SkillID] = u
	}
	return out, nil
}

// castSums are sums as integers: PostgreSQL sums them up as decimals.
const castSums = "CAST(sum(u.loads) AS BIGINT), CAST(sum(u.calls) AS BIGINT), CAST(sum(u.errors) AS BIGINT), CAST(sum(u.tokens) AS BIGINT), max(u.used)"

// Days returns how much a skill was used on each day since that of a time on which it
// was, the oldest first: at most [MaxPage].
func (t Usage) Days(ctx context.Context, skillID string, since time.Time) ([]Day, error) {
	found, err := all[Day](ctx, t.c, `SELECT u.day, u.skill_id, u.loads, u.calls, u.errors, u.tokens, u.used
		FROM usage u WHERE u.skill_id = $1 AND u.day >= $2 ORDER BY u.day LIMIT $3`, skillID, dayOf(since), MaxPage)
	if err != nil {
		return nil, fmt.Errorf("usage of skill %q: %w", skillID, err)
	}
	return found, nil
}

// Unused returns skills of namespaces, at most [MaxNamespaces], that were made before
// a time and not used since its day, by id, and how to ask for more.
func (t Usage) Unused(ctx context.Context, in []Namespace, since time.Time, p Page) ([]Skill, string, error) {
	keys, err := p.keys(1)
	if err == nil {
		err = checkNamespaces(in)
	}
	if err != nil || len(in) == 0 {
		return nil, "", err
	}
	found, err := all[Skill](ctx, t.c, skillSelect+`WHERE s.id > $1 AND s.created < $2 AND s.namespace IN (`+places(5, len(in))+`)
		AND NOT EXISTS (SELECT 1 FROM usage u WHERE u.skill_id = s.id AND u.day >= $3) ORDER BY s.id LIMIT $4`,
		append([]any{keys[0], stamp(since), dayOf(since), p.limit() + 1}, anys(in)...)...)
	if err != nil {
		return nil, "", fmt.Errorf("skills that are not used: %w", err)
	}
	found, next := cut(p, found, func(s Skill) []string { return []string{s.ID} })
	return found, next, nil
}

// Prune removes what was counted before the day of a time, and returns how many rows
// that were.
func (t Usage) Prune(ctx context.Context, before time.Time) (int64, error) {
	n, err := t.c.exec(ctx, "DELETE FROM usage WHERE day < $1", dayOf(before))
	if err != nil {
		return 0, fmt.Errorf("remove old usage: %w", err)
	}
	return n, nil
}
