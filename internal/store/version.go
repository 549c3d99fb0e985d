package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Review is the review state of a version.
type Review string

// Review states.
const (
	Pending  Review = "pending"
	Approved Review = "approved"
	Rejected Review = "rejected"
	// ChangesRequested is only for [Versions.SetReview], which stores it as
	// Rejected and sets [Version.ChangesRequested].
	ChangesRequested Review = "changes-requested"
)

// Version is an immutable set of a skill's files, with its review.
type Version struct {
	ID          string // set by Add if ""
	SkillID     string
	Number      int64  // set by Add, starting at 1
	Label       string // version given by the author
	Digest      string // unique within the skill
	Size        int64  // set by Add: size of all files in bytes
	Files       int64  // set by Add: number of files
	Review      Review // "" means Pending
	Reviewer    string
	Reviewed    time.Time
	CreatedBy   string
	Created     time.Time // set by Add if zero
	Display     string
	Description string
	Tags        []string
	Note        string // note by the reviewer
	Source      json.RawMessage
	Meta        json.RawMessage
	// ChangesRequested reports whether the reviewer who rejected the version asked
	// for changes.
	ChangesRequested bool
	// Approvers lists the users who approved the version. While it is pending, more
	// approvals are required. It may be empty if an older program stored the review.
	Approvers []string
	// NeedsApproval reports whether the version was added while changes of an earlier one were
	// requested, so that it awaits an approval even without code.
	NeedsApproval bool
	Changelog     string // one line by the author about what changed
}

const versionColumns = "id, skill_id, number, label, digest, size, files, review, reviewer, reviewed, created_by, created, display, description, tags, note, source, meta, changes_requested, approvers, needs_approval, changelog"

// versionSelect selects versions. Callers append a condition. Findings are read
// separately because they can be large.
const versionSelect = `SELECT v.id, v.skill_id, v.number, v.label, v.digest, v.size, v.files, v.review, v.reviewer, v.reviewed,
	v.created_by, v.created, v.display, v.description, v.tags, v.note, v.source, v.meta, v.changes_requested, v.approvers, v.needs_approval, v.changelog FROM versions v `

func (v *Version) fields() []any {
	return []any{&v.ID, &v.SkillID, &v.Number, &v.Label, &v.Digest, &v.Size, &v.Files, (*string)(&v.Review), &v.Reviewer, (*timestamp)(&v.Reviewed),
		&v.CreatedBy, (*timestamp)(&v.Created), &v.Display, &v.Description, (*stringList)(&v.Tags), &v.Note, (*jsonText)(&v.Source), (*jsonText)(&v.Meta), &v.ChangesRequested, (*stringList)(&v.Approvers), &v.NeedsApproval, &v.Changelog}
}

// File describes a file in a version.
type File struct {
	Path   string
	SHA256 string // hash of the content; see [Blobs]
	Size   int64
}

func (f *File) fields() []any { return []any{&f.Path, &f.SHA256, &f.Size} }

// MaxFiles is the maximum number of files in a version.
const MaxFiles = 10000

// Versions stores skill versions.
type Versions struct{ c conn }

// Add adds a version with its scan findings and returns it as stored. The files
// must already be stored with [Blobs.Put]. Add does not make the version
// current; see [Skills.SetCurrent]. It fails with [ErrExists] if the skill
// already has a version with the digest, and with [ErrNotFound] if the skill or
// a file does not exist.
func (t Versions) Add(ctx context.Context, v Version, files []File, findings json.RawMessage) (Version, error) {
	setDefaultID(&v.ID)
	setDefaultTime(&v.Created)
	v.Reviewed = fromMillis(toMillis(v.Reviewed))
	if v.Review == "" {
		v.Review = Pending
	}
	v.Size, v.Files = 0, int64(len(files))
	for _, f := range files {
		v.Size += f.Size
	}
	if len(files) > MaxFiles {
		return Version{}, fmt.Errorf("add a version of skill %q: %w: %d files, limit %d", v.SkillID, ErrInvalid, len(files), MaxFiles)
	}
	err := t.c.inTransaction(ctx, func(c conn) error { return c.addVersion(ctx, &v, files, findings) })
	if err != nil {
		return Version{}, fmt.Errorf("add a version of skill %q: %w", v.SkillID, err)
	}
	return v, nil
}

func (c conn) addVersion(ctx context.Context, v *Version, files []File, findings json.RawMessage) error {
	same, err := rowExists(c.requireRow(ctx, "SELECT number FROM versions WHERE skill_id = $1 AND digest = $2", v.SkillID, v.Digest))
	if err != nil {
		return err
	}
	if same {
		return fmt.Errorf("version with digest %q: %w", v.Digest, ErrExists)
	}
	last, err := queryScalar[int64](ctx, c, "SELECT COALESCE(max(number), 0) FROM versions WHERE skill_id = $1", v.SkillID)
	if err != nil {
		return err
	}
	v.Number = last + 1
	err = c.insert(ctx, "versions", versionColumns+", findings", append(v.fields(), jsonText(findings)))
	if errors.Is(err, ErrExists) {
		return errRetry // another version was added concurrently
	}
	if err != nil {
		return toNotFound(err)
	}
	if err := c.insertFiles(ctx, v.ID, files); err != nil {
		return err
	}
	return c.recordSkillChange(ctx, v.SkillID)
}

// requireRow returns [ErrNotFound] if a query returns no rows.
func (c conn) requireRow(ctx context.Context, query string, args ...any) error {
	_, err := queryScalar[int64](ctx, c, query, args...)
	return err
}

// insertFiles adds a version's files in batches of 200 rows.
func (c conn) insertFiles(ctx context.Context, version string, files []File) error {
	const rows = 200
	for len(files) > 0 {
		n := min(rows, len(files))
		var (
			groups []string
			args   []any
		)
		for _, f := range files[:n] {
			groups = append(groups, "("+placeholders(len(args)+1, 4)+")")
			args = append(args, version, f.Path, f.SHA256, f.Size)
		}
		_, err := c.exec(ctx, "INSERT INTO version_files (version_id, path, sha256, size) VALUES "+strings.Join(groups, ", "), args...)
		if err != nil {
			return fmt.Errorf("add files: %w", toNotFound(err))
		}
		files = files[n:]
	}
	return nil
}

// Get returns the version of a skill with the given number.
func (t Versions) Get(ctx context.Context, skillID string, number int64) (Version, error) {
	v, err := queryOne[Version](ctx, t.c, versionSelect+"WHERE v.skill_id = $1 AND v.number = $2", skillID, number)
	if err != nil {
		return Version{}, fmt.Errorf("get version %d of skill %q: %w", number, skillID, err)
	}
	return v, nil
}

// GetByDigest returns the version of a skill with the given digest.
func (t Versions) GetByDigest(ctx context.Context, skillID, digest string) (Version, error) {
	v, err := queryOne[Version](ctx, t.c, versionSelect+"WHERE v.skill_id = $1 AND v.digest = $2", skillID, digest)
	if err != nil {
		return Version{}, fmt.Errorf("get version %q of skill %q: %w", digest, skillID, err)
	}
	return v, nil
}

// ListByDigest returns up to [MaxPage] versions of any skill with the given
// digest.
func (t Versions) ListByDigest(ctx context.Context, digest string) ([]Version, error) {
	found, err := queryAll[Version](ctx, t.c, versionSelect+"WHERE v.digest = $1 ORDER BY v.id LIMIT $2", digest, MaxPage)
	if err != nil {
		return nil, fmt.Errorf("list versions with digest %q: %w", digest, err)
	}
	return found, nil
}

// List returns the versions of a skill with numbers less than end, newest
// first. If end is 0, it starts with the newest version. It returns up to limit
// versions, but no more than [MaxPage].
func (t Versions) List(ctx context.Context, skillID string, end int64, limit int) ([]Version, error) {
	found, err := queryAll[Version](ctx, t.c, versionSelect+`WHERE v.skill_id = $1 AND (CAST($2 AS BIGINT) = 0 OR v.number < $2)
		ORDER BY v.number DESC LIMIT $3`, skillID, end, Page{Limit: limit}.Size())
	if err != nil {
		return nil, fmt.Errorf("list versions of skill %q: %w", skillID, err)
	}
	return found, nil
}

// pendingCondition omits versions v older than their skill's current version c,
// unless the current version was rejected.
const pendingCondition = "(c.id IS NULL OR c.review = 'rejected' OR v.number >= c.number)"

// pendingSelect selects the versions awaiting review.
const pendingSelect = versionSelect + `JOIN skills s ON s.id = v.skill_id LEFT JOIN versions c ON c.id = s.current
	WHERE v.review = 'pending' AND ` + pendingCondition + ` AND v.id > $1 `

// ListPending returns the versions awaiting review in the given namespaces,
// oldest first, and the cursor of the next page. It omits versions older than
// their skill's current version, unless the current version was rejected.
func (t Versions) ListPending(ctx context.Context, in []Namespace, p Page) ([]Version, string, error) {
	keys, err := p.decodeCursor(1)
	if err == nil {
		err = checkNamespaces(in)
	}
	if err != nil || len(in) == 0 {
		return nil, "", err
	}
	found, err := queryAll[Version](ctx, t.c, pendingSelect+"AND s.namespace IN ("+placeholders(3, len(in))+") ORDER BY v.id LIMIT $2",
		append([]any{keys[0], p.Size() + 1}, toArgs(in)...)...)
	if err != nil {
		return nil, "", fmt.Errorf("list versions awaiting review: %w", err)
	}
	found, next := cutPage(p, found, pendingKeys)
	return found, next, nil
}

func pendingKeys(v Version) []string { return []string{v.ID} }

// PendingAfter returns the [Page.After] with which [Versions.ListPending] continues
// after v.
func (v Version) PendingAfter() string { return encodeCursor(pendingKeys(v)) }

// ListAllPending is like [Versions.ListPending] for all namespaces.
func (t Versions) ListAllPending(ctx context.Context, p Page) ([]Version, string, error) {
	keys, err := p.decodeCursor(1)
	if err != nil {
		return nil, "", err
	}
	found, err := queryAll[Version](ctx, t.c, pendingSelect+"ORDER BY v.id LIMIT $2", keys[0], p.Size()+1)
	if err != nil {
		return nil, "", fmt.Errorf("list versions awaiting review: %w", err)
	}
	found, next := cutPage(p, found, pendingKeys)
	return found, next, nil
}

// SetReview records a reviewer's decision on the version with the given digest,
// and replaces the list of users who approved the version.
func (t Versions) SetReview(ctx context.Context, skillID, digest string, review Review, reviewer, note string, approvers ...string) error {
	requested := review == ChangesRequested
	if requested {
		review = Rejected
	}
	err := t.c.inTransaction(ctx, func(c conn) error {
		if err := c.execAffecting(ctx, "UPDATE versions SET review = $3, reviewer = $4, note = $5, reviewed = $6, changes_requested = $7, approvers = $8 WHERE skill_id = $1 AND digest = $2",
			skillID, digest, string(review), reviewer, note, timestamp(now()), requested, stringList(approvers)); err != nil {
			return err
		}
		return c.recordSkillChange(ctx, skillID)
	})
	if err != nil {
		return fmt.Errorf("review version %q of skill %q: %w", digest, skillID, err)
	}
	return nil
}

// Manifest returns the list of files in a version, sorted by path.
func (t Versions) Manifest(ctx context.Context, id string) ([]File, error) {
	files, err := queryAll[File](ctx, t.c, "SELECT path, sha256, size FROM version_files WHERE version_id = $1 ORDER BY path", id)
	if err != nil {
		return nil, fmt.Errorf("list files of version %q: %w", id, err)
	}
	return files, nil
}

// File returns a file of a version by its path.
func (t Versions) File(ctx context.Context, id, path string) (File, error) {
	f, err := queryOne[File](ctx, t.c, "SELECT path, sha256, size FROM version_files WHERE version_id = $1 AND path = $2", id, path)
	if err != nil {
		return File{}, fmt.Errorf("get file %q of version %q: %w", path, id, err)
	}
	return f, nil
}

// Findings returns a version's scan findings, or nil if there are none.
func (t Versions) Findings(ctx context.Context, id string) (json.RawMessage, error) {
	d, err := queryScalar[jsonText](ctx, t.c, "SELECT findings FROM versions WHERE id = $1", id)
	if err != nil {
		return nil, fmt.Errorf("get findings of version %q: %w", id, err)
	}
	return json.RawMessage(d), nil
}

// Delete deletes a version. It fails with [ErrReferenced] if the version is the
// current one. Its number is reused only if it was the latest version.
func (t Versions) Delete(ctx context.Context, skillID string, number int64) error {
	err := t.c.inTransaction(ctx, func(c conn) error {
		id, err := queryScalar[string](ctx, c, "SELECT id FROM versions WHERE skill_id = $1 AND number = $2", skillID, number)
		if err != nil {
			return err
		}
		current, err := queryScalar[string](ctx, c, "SELECT current FROM skills WHERE id = $1", skillID)
		if err != nil {
			return err
		}
		if current == id {
			return referencedError(nil, "version is current")
		}
		if err := c.startGrace(ctx, "v.id = $1", id); err != nil {
			return err
		}
		if err := c.execAffecting(ctx, "DELETE FROM versions WHERE id = $1", id); err != nil {
			return err
		}
		return c.recordSkillChange(ctx, skillID)
	})
	if err != nil {
		return fmt.Errorf("delete version %d of skill %q: %w", number, skillID, err)
	}
	return nil
}
