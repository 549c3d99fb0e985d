package store

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"
)

// Duration counts a user's calls of a tool, or runs of a skill's script, that
// took about the same time.
type Duration struct {
	Owner string // a user id
	// Skill identifies the skill of the script, and Name is the script's path.
	// For a tool, Skill is "", and Name is the tool's name. Both have up to
	// [MaxDurationName] bytes.
	Skill, Name string
	Bucket      int // from [DurationBucket]
	Calls       int64
	LastUsed    time.Time // only its day is stored; not set by [Durations.List]
}

func (d *Duration) fields() []any { return []any{&d.Skill, &d.Name, &d.Bucket, &d.Calls} }

const (
	// MaxDurationName is the maximum length of the names in a [Duration] in bytes.
	MaxDurationName = 512
	// MaxDurations is the maximum number of rows per user. More are not stored.
	MaxDurations = 5000
	// DurationDays is the number of days after which durations that did not
	// occur again are deleted.
	DurationDays = 90
)

const (
	bucketsPerDoubling = 4
	maxDurationBucket  = 160 // about 12 days
)

// DurationBucket returns the bucket of a duration. A bucket's durations differ
// from [BucketDuration] by less than 10 %. Durations of less than 1 µs and more
// than 12 days are in the first and the last bucket.
func DurationBucket(d time.Duration) int {
	n := math.Round(bucketsPerDoubling * math.Log2(max(float64(d)/float64(time.Microsecond), 1)))
	return int(min(n, maxDurationBucket))
}

// BucketDuration returns the duration that represents those in a bucket.
func BucketDuration(bucket int) time.Duration {
	return time.Duration(math.Exp2(float64(bucket)/bucketsPerDoubling) * float64(time.Microsecond))
}

// Durations stores how long tool calls and runs of scripts took.
type Durations struct{ c conn }

// Add adds counts. It ignores those of deleted users, and those beyond
// [MaxDurations]. If it fails, it adds none.
func (t Durations) Add(ctx context.Context, all ...Duration) error {
	all = slices.Clone(all)
	// A fixed order prevents deadlocks between nodes.
	slices.SortFunc(all, func(a, b Duration) int {
		return cmp.Or(cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Skill, b.Skill), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Bucket, b.Bucket))
	})
	err := t.c.inTransaction(ctx, func(c conn) error {
		owner, stored := "", int64(0) // number of the owner's rows
		for _, d := range all {
			var err error
			if d.Owner != owner {
				owner = d.Owner
				stored, err = queryScalar[int64](ctx, c, "SELECT count(*) FROM durations WHERE owner = $1", owner)
			}
			added := false
			if err == nil {
				added, err = c.addDuration(ctx, d, stored < MaxDurations)
			}
			if err != nil {
				return err
			}
			if added {
				stored++
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("add durations: %w", err)
	}
	return nil
}

// addDuration adds a count to its row. If there is no such row, it inserts one,
// unless there is no room or the user was deleted. It reports whether it inserted
// one.
func (c conn) addDuration(ctx context.Context, d Duration, room bool) (added bool, err error) {
	args := []any{d.Owner, d.Skill, d.Name, d.Bucket, d.Calls, dayNumber(d.LastUsed)}
	changed, err := c.exec(ctx, `UPDATE durations SET calls = calls + $5, day = CASE WHEN day > $6 THEN day ELSE $6 END
		WHERE owner = $1 AND skill = $2 AND name = $3 AND bucket = $4`, args...)
	if err != nil || changed > 0 || !room {
		return false, err
	}
	// Another node may have inserted the row.
	changed, err = c.exec(ctx, `INSERT INTO durations (owner, skill, name, bucket, calls, day)
		SELECT u.id, CAST($2 AS TEXT), CAST($3 AS TEXT), CAST($4 AS BIGINT), CAST($5 AS BIGINT), CAST($6 AS BIGINT) FROM users u WHERE u.id = $1
		ON CONFLICT (owner, skill, name, bucket) DO UPDATE SET calls = durations.calls + excluded.calls,
		day = CASE WHEN durations.day > excluded.day THEN durations.day ELSE excluded.day END`, args...)
	return changed > 0, err
}

// List returns a user's counts, sorted by skill, name and bucket.
func (t Durations) List(ctx context.Context, owner string) ([]Duration, error) {
	found, err := queryAll[Duration](ctx, t.c, "SELECT skill, name, bucket, calls FROM durations WHERE owner = $1 ORDER BY skill, name, bucket", owner)
	if err != nil {
		return nil, fmt.Errorf("list durations: %w", err)
	}
	for i := range found {
		found[i].Owner = owner
	}
	return found, nil
}

// Prune deletes the counts of durations that last occurred before the given day,
// and returns the number of deleted rows.
func (t Durations) Prune(ctx context.Context, before time.Time) (int64, error) {
	n, err := t.c.exec(ctx, "DELETE FROM durations WHERE day < $1", dayNumber(before))
	if err != nil {
		return 0, fmt.Errorf("delete old durations: %w", err)
	}
	return n, nil
}
