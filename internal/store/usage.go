package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"
)

// SkillUsage counts the uses of a skill. It is either an increment for
// [Usage.Add] or a total from [Usage.Sum].
type SkillUsage struct {
	SkillID  string
	Owner    string // user who used the skill; "" if unknown; not set in totals
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

// Add adds each usage to the day of its LastUsed. If it fails, it adds none. It
// ignores the usage of deleted skills. Usage by deleted users is added to the
// skills' totals only. It only inserts rows, so that it does not wait for other
// nodes that add usage or merge it; see [DB.MergeUsage]. It waits for a
// transaction that deletes one of the users or skills.
func (t Usage) Add(ctx context.Context, uses ...SkillUsage) error {
	err := t.c.inTransaction(ctx, func(c conn) error {
		for _, u := range uses {
			_, err := c.exec(ctx, "INSERT INTO usage_pending (day, "+usageColumns+`, owner)
				SELECT CAST($2 AS BIGINT), s.id, CAST($3 AS BIGINT), CAST($4 AS BIGINT), CAST($5 AS BIGINT), CAST($6 AS BIGINT), CAST($7 AS BIGINT),
				(SELECT u.id FROM users u WHERE u.id = $8) FROM skills s WHERE s.id = $1`,
				u.SkillID, dayNumber(u.LastUsed), u.Loads, u.Calls, u.Errors, u.Tokens, timestamp(u.LastUsed), u.Owner)
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

const usageColumns = "skill_id, loads, calls, errors, tokens, used"

// usageRows selects the totals and the pending counts.
const usageRows = "(SELECT day, " + usageColumns + " FROM usage UNION ALL SELECT day, " + usageColumns + " FROM usage_pending)"

// mergeUsage moves up to limit pending counts to their totals and returns how
// many it moved.
func (c conn) mergeUsage(ctx context.Context, now time.Time, limit int) (int, error) {
	moved, err := execReturning[pendingUsage](ctx, c, "DELETE FROM usage_pending WHERE id IN (SELECT id FROM usage_pending ORDER BY id LIMIT $1 "+c.db.dialect.skipLocked+
		") RETURNING day, "+usageColumns+", COALESCE(owner, '')", limit)
	if err != nil {
		return 0, err
	}
	// A fixed order prevents deadlocks between nodes.
	slices.SortStableFunc(moved, func(a, b pendingUsage) int {
		return cmp.Or(cmp.Compare(a.SkillID, b.SkillID), a.Date.Compare(b.Date))
	})
	for i := 0; i < len(moved); {
		sum := moved[i].UsageDay
		for i++; i < len(moved) && moved[i].SkillID == sum.SkillID && moved[i].Date.Equal(sum.Date); i++ {
			sum.add(moved[i].SkillUsage)
		}
		_, err := c.exec(ctx, `INSERT INTO usage (skill_id, day, loads, calls, errors, tokens, used)
			SELECT s.id, CAST($2 AS BIGINT), CAST($3 AS BIGINT), CAST($4 AS BIGINT), CAST($5 AS BIGINT), CAST($6 AS BIGINT), CAST($7 AS BIGINT)
			FROM skills s WHERE s.id = $1 -- may have been deleted
			ON CONFLICT (skill_id, day) DO UPDATE SET loads = usage.loads + excluded.loads, calls = usage.calls + excluded.calls,
			errors = usage.errors + excluded.errors, tokens = usage.tokens + excluded.tokens,
			used = CASE WHEN usage.used > excluded.used THEN usage.used ELSE excluded.used END`,
			sum.SkillID, dayNumber(sum.Date), sum.Loads, sum.Calls, sum.Errors, sum.Tokens, timestamp(sum.LastUsed))
		if err != nil {
			return 0, err
		}
	}
	return len(moved), c.mergeOwn(ctx, moved, dayNumber(now))
}

// add adds the counts of another usage to u.
func (u *SkillUsage) add(other SkillUsage) {
	u.Loads += other.Loads
	u.Calls += other.Calls
	u.Errors += other.Errors
	u.Tokens += other.Tokens
	if other.LastUsed.After(u.LastUsed) {
		u.LastUsed = other.LastUsed
	}
}

// maxMerge is the maximum number of rows that a transaction of [DB.MergeUsage]
// moves.
const maxMerge = 500

// MergeUsage adds the pending counts of conversations and skills to their
// totals. Nodes call it from time to time, so that the pending tables remain
// short. Queries include pending counts. Each count is added exactly once, even if
// several nodes merge or one of them is killed. now is the current time.
func (db *DB) MergeUsage(ctx context.Context, now time.Time) error {
	for _, merge := range []func(conn, context.Context, int) (int, error){
		conn.mergeMeter,
		func(c conn, ctx context.Context, limit int) (int, error) { return c.mergeUsage(ctx, now, limit) },
	} {
		for more := true; more; {
			err := db.retry(ctx, func() error {
				// Not serializable: locked rows suffice, and appends of turns
				// would conflict with a serializable transaction.
				return conn{db: db}.runTx(ctx, sql.LevelDefault, func(c conn) error {
					n, err := merge(c, ctx, maxMerge)
					more = n == maxMerge
					return err
				})
			})
			if err != nil {
				return fmt.Errorf("merge usage: %w", err)
			}
		}
	}
	return nil
}

// Sum returns the total usage of up to [MaxPage] skills since the given day,
// keyed by skill id. It omits unused skills.
func (t Usage) Sum(ctx context.Context, skillIDs []string, since time.Time) (map[string]SkillUsage, error) {
	if len(skillIDs) > MaxPage {
		return nil, fmt.Errorf("sum usage: %w: %d skills, limit %d", ErrInvalid, len(skillIDs), MaxPage)
	}
	out := make(map[string]SkillUsage, len(skillIDs))
	if len(skillIDs) == 0 {
		return out, nil
	}
	found, err := queryAll[SkillUsage](ctx, t.c, "SELECT u.skill_id, "+castSums+" FROM "+usageRows+" u WHERE u.day >= $1 AND u.skill_id IN ("+
		placeholders(2, len(skillIDs))+") GROUP BY u.skill_id", append([]any{dayNumber(since)}, toArgs(skillIDs)...)...)
	if err != nil {
		return nil, fmt.Errorf("sum usage: %w", err)
	}
	for _, u := range found {
		out[u.SkillID] = u
	}
	return out, nil
}

// Totals returns the number of loads and calls of each skill that was used
// since the given day, keyed by skill id.
func (t Usage) Totals(ctx context.Context, since time.Time) (map[string]int64, error) {
	found, err := queryAll[SkillUsage](ctx, t.c, "SELECT u.skill_id, "+castSums+" FROM "+usageRows+" u WHERE u.day >= $1 GROUP BY u.skill_id", dayNumber(since))
	if err != nil {
		return nil, fmt.Errorf("sum usage: %w", err)
	}
	out := make(map[string]int64, len(found))
	for _, u := range found {
		out[u.SkillID] = u.Loads + u.Calls
	}
	return out, nil
}

// castSums casts sums to integers, because PostgreSQL returns decimals.
const castSums = "CAST(sum(u.loads) AS BIGINT), CAST(sum(u.calls) AS BIGINT), CAST(sum(u.errors) AS BIGINT), CAST(sum(u.tokens) AS BIGINT), max(u.used)"

// ListDays returns the usage of a skill on up to [MaxPage] days, oldest first.
// It starts with the day that contains start and omits days without usage.
func (t Usage) ListDays(ctx context.Context, skillID string, start time.Time) ([]UsageDay, error) {
	found, err := queryAll[UsageDay](ctx, t.c, "SELECT u.day, u.skill_id, "+castSums+" FROM "+usageRows+` u
		WHERE u.skill_id = $1 AND u.day >= $2 GROUP BY u.day, u.skill_id ORDER BY u.day LIMIT $3`, skillID, dayNumber(start), MaxPage)
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
		AND NOT EXISTS (SELECT 1 FROM usage u WHERE u.skill_id = s.id AND u.day >= $3)
		AND NOT EXISTS (SELECT 1 FROM usage_pending u WHERE u.skill_id = s.id AND u.day >= $3) ORDER BY s.id LIMIT $4`,
		append([]any{keys[0], timestamp(since), dayNumber(since), p.Size() + 1}, toArgs(in)...)...)
	if err != nil {
		return nil, "", fmt.Errorf("list unused skills: %w", err)
	}
	found, next := cutPage(p, found, func(s Skill) []string { return []string{s.ID} })
	return found, next, nil
}
