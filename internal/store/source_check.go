package store

import (
	"context"
	"fmt"
	"time"
)

// MaxSourceError is the maximum size, in bytes, of [SourceCheck.Error].
const MaxSourceError = 1024

// SourceCheck is the result of the last check of an imported skill's source.
type SourceCheck struct {
	SkillID string
	Checked time.Time // set by Record if zero
	// FailedSince is the time of the first check that failed since the last success;
	// zero if the last check succeeded. Record sets it.
	FailedSince time.Time
	Error       string // why the last check failed; "" if it succeeded
	Newest      string // the commit that the last success found, if newer than the skill's
}

const sourceCheckColumns = "skill_id, checked, failed_since, error, newest"

func (s *SourceCheck) fields() []any {
	return []any{&s.SkillID, (*timestamp)(&s.Checked), (*timestamp)(&s.FailedSince), &s.Error, &s.Newest}
}

// SourceChecks stores the last check of the source of each imported skill. Deleting a
// skill deletes its check.
type SourceChecks struct{ c conn }

// Record stores the result of a check. A failure, which has an error, keeps the time of
// the first failure and the newest commit. Record does nothing if the skill does not
// exist.
func (t SourceChecks) Record(ctx context.Context, r SourceCheck) error {
	setDefaultTime(&r.Checked)
	r.FailedSince = time.Time{}
	if r.Error != "" {
		r.FailedSince, r.Newest = r.Checked, ""
	}
	_, err := t.c.exec(ctx, "INSERT INTO source_checks ("+sourceCheckColumns+`)
		SELECT id, CAST($2 AS BIGINT), CAST($3 AS BIGINT), CAST($4 AS TEXT), CAST($5 AS TEXT) FROM skills WHERE id = $1
		ON CONFLICT (skill_id) DO UPDATE SET checked = excluded.checked, error = excluded.error,
			failed_since = CASE WHEN excluded.failed_since > 0 AND source_checks.failed_since > 0 THEN source_checks.failed_since ELSE excluded.failed_since END,
			newest = CASE WHEN excluded.failed_since > 0 THEN source_checks.newest ELSE excluded.newest END`, r.fields()...)
	if err != nil {
		return fmt.Errorf("record check of the source of skill %q: %w", r.SkillID, err)
	}
	return nil
}

// Get returns the last check of a skill's source. It fails with [ErrNotFound] if the
// source was not checked.
func (t SourceChecks) Get(ctx context.Context, skillID string) (SourceCheck, error) {
	r, err := queryOne[SourceCheck](ctx, t.c, "SELECT "+sourceCheckColumns+" FROM source_checks WHERE skill_id = $1", skillID)
	if err != nil {
		return SourceCheck{}, fmt.Errorf("get check of the source of skill %q: %w", skillID, err)
	}
	return r, nil
}

// ListOpen returns the last checks that found a newer commit, or whose source has failed
// since failedSince or earlier, by skill ID.
func (t SourceChecks) ListOpen(ctx context.Context, failedSince time.Time) (map[string]SourceCheck, error) {
	found, err := queryAll[SourceCheck](ctx, t.c, "SELECT "+sourceCheckColumns+" FROM source_checks WHERE newest <> '' OR failed_since BETWEEN 1 AND $1", timestamp(failedSince))
	if err != nil {
		return nil, fmt.Errorf("list checks of sources: %w", err)
	}
	out := make(map[string]SourceCheck, len(found))
	for _, r := range found {
		out[r.SkillID] = r
	}
	return out, nil
}

// Delete deletes the check of a skill's source, if any.
func (t SourceChecks) Delete(ctx context.Context, skillID string) error {
	if _, err := t.c.exec(ctx, "DELETE FROM source_checks WHERE skill_id = $1", skillID); err != nil {
		return fmt.Errorf("delete check of the source of skill %q: %w", skillID, err)
	}
	return nil
}
