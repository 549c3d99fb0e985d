package store

import (
	"context"
	"fmt"
	"time"
)

// ChangeRequest is a reviewer's request to change a version of a skill. While it is
// open, it blocks the version and later ones.
type ChangeRequest struct {
	ID       string // set by Add if ""
	SkillID  string
	Number   int64 // number of the version
	Reviewer string
	Note     string
	Created  time.Time // set by Add
	Closed   time.Time // zero if open
}

const changeRequestColumns = "id, skill_id, number, reviewer, note, created, closed"

func (r *ChangeRequest) fields() []any {
	return []any{&r.ID, &r.SkillID, &r.Number, &r.Reviewer, &r.Note, (*timestamp)(&r.Created), (*timestamp)(&r.Closed)}
}

// ChangeRequests stores requests for changes. A request outlives its version, so that
// deleting the version does not unblock later ones.
type ChangeRequests struct{ c conn }

// Add adds an open request and returns it as stored. It closes earlier open requests of
// the same reviewer.
func (t ChangeRequests) Add(ctx context.Context, r ChangeRequest) (ChangeRequest, error) {
	setDefaultID(&r.ID)
	r.Created, r.Closed = now(), time.Time{}
	err := t.c.inTransaction(ctx, func(c conn) error {
		if _, err := (ChangeRequests{c}).CloseBy(ctx, r.SkillID, r.Reviewer, 1<<62); err != nil {
			return err
		}
		return toNotFound(c.insert(ctx, "change_requests", changeRequestColumns, r.fields()))
	})
	if err != nil {
		return ChangeRequest{}, fmt.Errorf("request changes of skill %q: %w", r.SkillID, err)
	}
	return r, nil
}

// Get returns the request with the given id.
func (t ChangeRequests) Get(ctx context.Context, id string) (ChangeRequest, error) {
	r, err := queryOne[ChangeRequest](ctx, t.c, "SELECT "+changeRequestColumns+" FROM change_requests WHERE id = $1", id)
	if err != nil {
		return ChangeRequest{}, fmt.Errorf("get change request %q: %w", id, err)
	}
	return r, nil
}

// ListOpen returns up to [MaxPage] open requests to change a version of a skill with at
// most the given number, oldest first.
func (t ChangeRequests) ListOpen(ctx context.Context, skillID string, upTo int64) ([]ChangeRequest, error) {
	found, err := queryAll[ChangeRequest](ctx, t.c, "SELECT "+changeRequestColumns+` FROM change_requests
		WHERE skill_id = $1 AND closed = 0 AND number <= $2 ORDER BY id LIMIT $3`, skillID, upTo, MaxPage)
	if err != nil {
		return nil, fmt.Errorf("list change requests of skill %q: %w", skillID, err)
	}
	return found, nil
}

// ListOpenBy returns up to [MaxPage] open requests of a reviewer, oldest first.
func (t ChangeRequests) ListOpenBy(ctx context.Context, reviewer string) ([]ChangeRequest, error) {
	found, err := queryAll[ChangeRequest](ctx, t.c, "SELECT "+changeRequestColumns+` FROM change_requests
		WHERE reviewer = $1 AND closed = 0 ORDER BY id LIMIT $2`, reviewer, MaxPage)
	if err != nil {
		return nil, fmt.Errorf("list change requests of user %q: %w", reviewer, err)
	}
	return found, nil
}

// CloseBy closes a reviewer's open requests for versions with at most the given number,
// and returns how many it closed.
func (t ChangeRequests) CloseBy(ctx context.Context, skillID, reviewer string, upTo int64) (int64, error) {
	n, err := t.c.exec(ctx, "UPDATE change_requests SET closed = $4 WHERE skill_id = $1 AND reviewer = $2 AND number <= $3 AND closed = 0", skillID, reviewer, upTo, timestamp(now()))
	if err != nil {
		return 0, fmt.Errorf("close change requests of skill %q: %w", skillID, err)
	}
	return n, nil
}

// Close closes an open request.
func (t ChangeRequests) Close(ctx context.Context, id string) error {
	if err := t.c.execAffecting(ctx, "UPDATE change_requests SET closed = $2 WHERE id = $1 AND closed = 0", id, timestamp(now())); err != nil {
		return fmt.Errorf("close change request %q: %w", id, err)
	}
	return nil
}

// SetNeedsApproval sets whether a version awaits an approval although it has no code.
func (t Versions) SetNeedsApproval(ctx context.Context, id string, needs bool) error {
	if err := t.c.execAffecting(ctx, "UPDATE versions SET needs_approval = $2 WHERE id = $1", id, needs); err != nil {
		return fmt.Errorf("set approval of version %q: %w", id, err)
	}
	return nil
}

// ViewedFiles stores the content of the files that users viewed in reviews.
type ViewedFiles struct{ c conn }

// ViewedFile is a file that a user viewed.
type ViewedFile struct {
	Path   string
	SHA256 string // hash of the content that the user viewed
}

func (f *ViewedFile) fields() []any { return []any{&f.Path, &f.SHA256} }

// Put records that a user viewed a file of a skill, or with a hash of "" that the user
// did not.
func (t ViewedFiles) Put(ctx context.Context, userID, skillID string, f ViewedFile) error {
	query := "DELETE FROM viewed_files WHERE user_id = $1 AND skill_id = $2 AND path = $3"
	args := []any{userID, skillID, f.Path}
	if f.SHA256 != "" {
		query = `INSERT INTO viewed_files (user_id, skill_id, path, sha256) VALUES ($1, $2, $3, $4)
			ON CONFLICT (user_id, skill_id, path) DO UPDATE SET sha256 = excluded.sha256`
		args = append(args, f.SHA256)
	}
	if _, err := t.c.exec(ctx, query, args...); err != nil {
		return fmt.Errorf("record viewed file of skill %q: %w", skillID, toNotFound(err))
	}
	return nil
}

// List returns the files of a skill that a user viewed, up to [MaxFiles], sorted by
// path.
func (t ViewedFiles) List(ctx context.Context, userID, skillID string) ([]ViewedFile, error) {
	found, err := queryAll[ViewedFile](ctx, t.c, "SELECT path, sha256 FROM viewed_files WHERE user_id = $1 AND skill_id = $2 ORDER BY path LIMIT $3", userID, skillID, MaxFiles)
	if err != nil {
		return nil, fmt.Errorf("list viewed files of skill %q: %w", skillID, err)
	}
	return found, nil
}
