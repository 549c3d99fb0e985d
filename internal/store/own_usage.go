package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

// OwnUse counts a user's successful uses of a skill before the start of a day.
type OwnUse struct {
	SkillID string
	Name    string // name of the skill
	Uses    int64
	Last    time.Time // last day with uses before that day
}

func (u *OwnUse) fields() []any { return []any{&u.SkillID, &u.Name, &u.Uses, (*date)(&u.Last)} }

const (
	// MaxOwnUses is the maximum number of skills per user whose uses are counted.
	MaxOwnUses = 500
	// OwnUseDays is the number of days after which a user's uses of a skill no
	// longer count, unless the user used it again.
	OwnUseDays = 90
)

// ListOwn returns how often a user successfully used each skill before the
// start of the given day in UTC, sorted by skill id. It omits skills that the
// user did not use in the [OwnUseDays] days before. A use is counted on the day
// on which it is merged, see [DB.MergeUsage], so the result for the current day
// does not change during that day. day must not be before the current day.
func (t Usage) ListOwn(ctx context.Context, owner string, day time.Time) ([]OwnUse, error) {
	found, err := queryAll[OwnUse](ctx, t.c, `SELECT * FROM (
			SELECT o.skill_id, s.name, CASE WHEN o.day < $2 THEN o.uses + o.earlier_uses ELSE o.earlier_uses END AS uses,
				CASE WHEN o.day < $2 THEN o.day ELSE o.earlier_day END AS last
			FROM own_usage o JOIN skills s ON s.id = o.skill_id WHERE o.owner = $1) AS u
		WHERE u.uses > 0 AND u.last >= $3 ORDER BY u.skill_id`, owner, dayNumber(day), dayNumber(day)-OwnUseDays)
	if err != nil {
		return nil, fmt.Errorf("list used skills of a user: %w", err)
	}
	return found, nil
}

// TeamUse counts the successful uses of a skill by a user and by the other members of
// groups.
type TeamUse struct {
	SkillID string
	Own     int64 // by the user
	Others  int64 // by other members
	Members int64 // number of other members who used it
}

func (u *TeamUse) fields() []any { return []any{&u.SkillID, &u.Own, &u.Others, &u.Members} }

// ListTeam returns how often a user and the other members of up to [MaxNamespaces]
// groups successfully used each skill. It counts the uses of those who used the skill
// since the given day, and omits uses that are not merged yet; see [DB.MergeUsage].
func (t Usage) ListTeam(ctx context.Context, user string, groups []string, since time.Time) ([]TeamUse, error) {
	if len(groups) > MaxNamespaces {
		return nil, fmt.Errorf("list skills that members used: %w: %d groups, limit %d", ErrInvalid, len(groups), MaxNamespaces)
	}
	found, err := queryAll[TeamUse](ctx, t.c, listTeamSQL(len(groups)), append([]any{user, dayNumber(since)}, toArgs(groups)...)...)
	if err != nil {
		return nil, fmt.Errorf("list skills that members used: %w", err)
	}
	return found, nil
}

// listTeamSQL returns the query of [Usage.ListTeam]. With OR instead of UNION,
// PostgreSQL would read the whole table.
func listTeamSQL(groups int) string {
	owners := "SELECT CAST($1 AS TEXT)"
	if groups > 0 {
		owners += " UNION SELECT user_id FROM members WHERE group_id IN (" + placeholders(3, groups) + ")"
	}
	return `SELECT o.skill_id,
			CAST(sum(CASE WHEN o.owner = $1 THEN o.uses + o.earlier_uses ELSE 0 END) AS BIGINT),
			CAST(sum(CASE WHEN o.owner = $1 THEN 0 ELSE o.uses + o.earlier_uses END) AS BIGINT),
			CAST(sum(CASE WHEN o.owner = $1 THEN 0 ELSE 1 END) AS BIGINT)
		FROM own_usage o WHERE o.day >= $2 AND o.owner IN (` + owners + ") GROUP BY o.skill_id"
}

// pendingUsage is a row of usage_pending.
type pendingUsage struct {
	UsageDay
	Owner string
}

func (p *pendingUsage) fields() []any { return append(p.UsageDay.fields(), &p.Owner) }

// mergeOwn adds pending counts to the users' totals for the given day, on which
// they are merged. The day on which the skill was used does not matter, because
// the totals before a day must not change during that day.
func (c conn) mergeOwn(ctx context.Context, moved []pendingUsage, day int64) error {
	type key struct{ owner, skill string }
	sums := map[key]int64{}
	for _, p := range moved {
		if n := p.Loads + p.Calls - p.Errors; p.Owner != "" && n > 0 {
			sums[key{p.Owner, p.SkillID}] += n
		}
	}
	keys := make([]key, 0, len(sums))
	for k := range sums {
		keys = append(keys, k)
	}
	// A fixed order prevents deadlocks between nodes.
	slices.SortFunc(keys, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.owner, b.owner), cmp.Compare(a.skill, b.skill))
	})
	for _, k := range keys {
		n, err := queryScalar[int64](ctx, c, "SELECT count(*) FROM own_usage WHERE owner = $1 AND skill_id <> $2", k.owner, k.skill)
		if err != nil {
			return err
		}
		if n >= MaxOwnUses {
			deleted, err := c.exec(ctx, "DELETE FROM own_usage WHERE owner = $1 AND day < $2", k.owner, day-OwnUseDays)
			if err != nil {
				return err
			}
			if deleted == 0 {
				continue
			}
		}
		// The clocks of nodes may differ at midnight, so a row may be of the next
		// day. A row of a later day is from a clock that was wrong.
		_, err = c.exec(ctx, `INSERT INTO own_usage (owner, skill_id, day, uses, earlier_day, earlier_uses)
			SELECT u.id, s.id, CAST($3 AS BIGINT), CAST($4 AS BIGINT), 0, 0 FROM users u, skills s WHERE u.id = $1 AND s.id = $2 -- may have been deleted
			ON CONFLICT (owner, skill_id) DO UPDATE SET
				earlier_uses = CASE WHEN excluded.day > own_usage.day THEN own_usage.earlier_uses + own_usage.uses ELSE own_usage.earlier_uses END,
				earlier_day = CASE WHEN excluded.day > own_usage.day THEN own_usage.day ELSE own_usage.earlier_day END,
				uses = CASE WHEN excluded.day > own_usage.day THEN excluded.uses ELSE own_usage.uses + excluded.uses END,
				day = CASE WHEN own_usage.day BETWEEN excluded.day AND excluded.day + 1 THEN own_usage.day ELSE excluded.day END`,
			k.owner, k.skill, day, sums[k])
		if err != nil {
			return err
		}
	}
	return nil
}

// PruneOwn deletes the uses of each skill that its user last used before the
// given day, and returns the number of deleted rows.
func (t Usage) PruneOwn(ctx context.Context, before time.Time) (int64, error) {
	n, err := t.c.exec(ctx, "DELETE FROM own_usage WHERE day < $1", dayNumber(before))
	if err != nil {
		return 0, fmt.Errorf("delete old usage of users: %w", err)
	}
	return n, nil
}
