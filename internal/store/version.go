package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Review is what a person decided about the code of a version.
type Review string

// The states of a review.
const (
	Pending  Review = "pending"
	Approved Review = "approved"
	Rejected Review = "rejected"
)

// Version is one state of a skill's files.
type Version struct {
	ID          string // set by Add where it is ""
	SkillID     string
	Number      int64  // set by Add: 1 is the first
	Label       string // as its author calls it
	Digest      string // that no other version of the skill has
	Size        int64  // set by Add: bytes of all files
	Files       int64  // set by Add: how many there are
	Review      Review // "" is Pending
	Reviewer    string
	Reviewed    time.Time
	CreatedBy   string
	Created     time.Time // set by Add where it is zero
	Display     string
	Description string
	Tags        []string
	Note        string // of the reviewer
	Source      json.RawMessage
	Meta        json.RawMessage
}

const versionColumns = "id, skill_id, number, label, digest, size, files, review, reviewer, reviewed, created_by, created, display, description, tags, note, source, meta"

// versionSelect asks for versions; a condition follows. Findings are asked for one at a
// time: they can be large.
const versionSelect = `SELECT v.id, v.skill_id, v.number, v.label, v.digest, v.size, v.files, v.review, v.reviewer, v.reviewed,
	v.created_by, v.created, v.display, v.description, v.tags, v.note, v.source, v.meta FROM versions v `

func (v *Version) fields() []any {
	return []any{&v.ID, &v.SkillID, &v.Number, &v.Label, &v.Digest, &v.Size, &v.Files, (*string)(&v.Review), &v.Reviewer, (*stamp)(&v.Reviewed),
		&v.CreatedBy, (*stamp)(&v.Created), &v.Display, &v.Description, (*list)(&v.Tags), &v.Note, (*document)(&v.Source), (*document)(&v.Meta)}
}

// File is a file of a version.
type File struct {
	Path   string
	SHA256 string // of what is in it; see [Blobs]
	Size   int64
}

func (f *File) fields() []any { return []any{&f.Path, &f.SHA256, &f.Size} }

// MaxFiles bounds the files of a version.
const MaxFiles = 10000

// Versions keeps what skills were made of.
type Versions struct{ c conn }

// Add adds a version with its files, which [Blobs.Put] has kept, and what a scan
// found in them, and returns it as it is kept. It does not become current: that is
// [Skills.SetCurrent]. A digest that the skill has already is [ErrExists]; a skill or
// a file that is not there is [ErrNotFound], and then the files are put again.
func (t Versions) Add(ctx context.Context, v Version, files []File, findings json.RawMessage) (Version, error) {
	orID(&v.ID)
	orNow(&v.Created)
	v.Reviewed = moment(millis(v.Reviewed))
	if v.Review == "" {
		v.Review = Pending
	}
	v.Size, v.Files = 0, int64(len(files))
	for _, f := range files {
		v.Size += f.Size
	}
	if len(files) > MaxFiles {
		return Version{}, fmt.Errorf("add a version of skill %q: %w: it has %d files, more than %d", v.SkillID, ErrInvalid, len(files), MaxFiles)
	}
	err := t.c.atomic(ctx, func(c conn) error { return c.addVersion(ctx, &v, files, findings) })
	if err != nil {
		return Version{}, fmt.Errorf("add a version of skill %q: %w", v.SkillID, err)
	}
	return v, nil
}

func (c conn) addVersion(ctx context.Context, v *Version, files []File, findings json.RawMessage) error {
	same, err := exists(c.there(ctx, "SELECT number FROM versions WHERE skill_id = $1 AND digest = $2", v.SkillID, v.Digest))
	if err != nil {
		return err
	}
	if same {
		return fmt.Errorf("digest %q: %w", v.Digest, ErrExists)
	}
	last, err := scalar[int64](ctx, c, "SELECT COALESCE(max(number), 0) FROM versions WHERE skill_id = $1", v.SkillID)
	if err != nil {
		return err
	}
	v.Number = last + 1
	err = c.insert(ctx, "versions", versionColumns+", findings", append(v.fields(), document(findings)))
	if errors.Is(err, ErrExists) {
		return errAgain // somebody added one since we looked
	}
	if err != nil {
		return parentless(err)
	}
	if err := c.insertFiles(ctx, v.ID, files); err != nil {
		return err
	}
	return c.skillChanged(ctx, v.SkillID)
}

// there asks whether a question has an answer.
func (c conn) there(ctx context.Context, query string, args ...any) error {
	_, err := scalar[int64](ctx, c, query, args...)
	return err
}

// insertFiles adds the manifest, some hundred rows at a time.
func (c conn) insertFiles(ctx context.Context, version string, files []File) error {
	const rows = 200
	for len(files) > 0 {
		n := min(rows, len(files))
		var (
			groups []string
			args   []any
		)
		for _, f := range files[:n] {
			groups = append(groups, "("+places(len(args)+1, 4)+")")
			args = append(args, version, f.Path, f.SHA256, f.Size)
		}
		_, err := c.exec(ctx, "INSERT INTO version_files (version_id, path, sha256, size) VALUES "+strings.Join(groups, ", "), args...)
		if err != nil {
			return fmt.Errorf("files: %w", parentless(err))
		}
		files = files[n:]
	}
	return nil
}

// Get returns a version of a skill by its number.
func (t Versions) Get(ctx context.Context, skillID string, number int64) (Version, error) {
	v, err := one[Version](ctx, t.c, versionSelect+"WHERE v.skill_id = $1 AND v.number = $2", skillID, number)
	if err != nil {
		return Version{}, fmt.Errorf("version %d of skill %q: %w", number, skillID, err)
	}
	return v, nil
}

// OfDigest returns a version of a skill by its digest.
func (t Versions) OfDigest(ctx context.Context, skillID, digest string) (Version, error) {
	v, err := one[Version](ctx, t.c, versionSelect+"WHERE v.skill_id = $1 AND v.digest = $2", skillID, digest)
	if err != nil {
		return Version{}, fmt.Errorf("version %q of skill %q: %w", digest, skillID, err)
	}
	return v, nil
}

// ByDigest returns the versions with a digest, of all skills, at most [MaxPage].
func (t Versions) ByDigest(ctx context.Context, digest string) ([]Version, error) {
	found, err := all[Version](ctx, t.c, versionSelect+"WHERE v.digest = $1 ORDER BY v.id LIMIT $2", digest, MaxPage)
	if err != nil {
		return nil, fmt.Errorf("versions with digest %q: %w", digest, err)
	}
	return found, nil
}

// List returns the versions of a skill, the newest first, that come before a number;
// 0 is all. There are at most limit of them, and never more than [MaxPage].
func (t Versions) List(ctx context.Context, skillID string, before int64, limit int) ([]Version, error) {
	found, err := all[Version](ctx, t.c, versionSelect+`WHERE v.skill_id = $1 AND (CAST($2 AS BIGINT) = 0 OR v.number < $2)
		ORDER BY v.number DESC LIMIT $3`, skillID, before, Page{Limit: limit}.limit())
	if err != nil {
		return nil, fmt.Errorf("versions of skill %q: %w", skillID, err)
	}
	return found, nil
}

// Waiting returns the versions in namespaces that wait for a review, in the order in
// which they came, and how to ask for more.
func (t Versions) Waiting(ctx context.Context, in []Namespace, p Page) ([]Version, string, error) {
	keys, err := p.keys(1)
	if err == nil {
		err = checkNamespaces(in)
	}
	if err != nil || len(in) == 0 {
		return nil, "", err
	}
	found, err := all[Version](ctx, t.c, versionSelect+`JOIN skills s ON s.id = v.skill_id
		WHERE v.review = 'pending' AND v.id > $1 AND s.namespace IN (`+places(3, len(in))+") ORDER BY v.id LIMIT $2",
		append([]any{keys[0], p.limit() + 1}, anys(in)...)...)
	if err != nil {
		return nil, "", fmt.Errorf("versions that wait for a review: %w", err)
	}
	found, next := cut(p, found, func(v Version) []string { return []string{v.ID} })
	return found, next, nil
}

// AllWaiting is [Versions.Waiting] in all namespaces.
func (t Versions) AllWaiting(ctx context.Context, p Page) ([]Version, string, error) {
	keys, err := p.keys(1)
	if err != nil {
		return nil, "", err
	}
	found, err := all[Version](ctx, t.c, versionSelect+"WHERE v.review = 'pending' AND v.id > $1 ORDER BY v.id LIMIT $2", keys[0], p.limit()+1)
	if err != nil {
		return nil, "", fmt.Errorf("versions that wait for a review: %w", err)
	}
	found, next := cut(p, found, func(v Version) []string { return []string{v.ID} })
	return found, next, nil
}

// Decide keeps what a reviewer decided about a digest of a skill.
func (t Versions) Decide(ctx context.Context, skillID, digest string, review Review, reviewer, note string) error {
	err := t.c.atomic(ctx, func(c conn) error {
		if err := c.mustChange(ctx, "UPDATE versions SET review = $3, reviewer = $4, note = $5, reviewed = $6 WHERE skill_id = $1 AND digest = $2",
			skillID, digest, string(review), reviewer, note, stamp(now())); err != nil {
			return err
		}
		return c.skillChanged(ctx, skillID)
	})
	if err != nil {
		return fmt.Errorf("review %q of skill %q: %w", digest, skillID, err)
	}
	return nil
}

// Manifest returns the files of a version by path.
func (t Versions) Manifest(ctx context.Context, id string) ([]File, error) {
	files, err := all[File](ctx, t.c, "SELECT path, sha256, size FROM version_files WHERE version_id = $1 ORDER BY path", id)
	if err != nil {
		return nil, fmt.Errorf("files of version %q: %w", id, err)
	}
	return files, nil
}

// File returns one file of a version.
func (t Versions) File(ctx context.Context, id, path string) (File, error) {
	f, err := one[File](ctx, t.c, "SELECT path, sha256, size FROM version_files WHERE version_id = $1 AND path = $2", id, path)
	if err != nil {
		return File{}, fmt.Errorf("file %q of version %q: %w", path, id, err)
	}
	return f, nil
}

// Findings returns what a scan found in a version, nil where nothing was kept.
func (t Versions) Findings(ctx context.Context, id string) (json.RawMessage, error) {
	d, err := scalar[document](ctx, t.c, "SELECT findings FROM versions WHERE id = $1", id)
	if err != nil {
		return nil, fmt.Errorf("findings of version %q: %w", id, err)
	}
	return json.RawMessage(d), nil
}

// SetFindings replaces what a scan found in a version.
func (t Versions) SetFindings(ctx context.Context, id string, findings json.RawMessage) error {
	if err := t.c.mustChange(ctx, "UPDATE versions SET findings = $2 WHERE id = $1", id, document(findings)); err != nil {
		return fmt.Errorf("set the findings of version %q: %w", id, err)
	}
	return nil
}

// Delete removes a version that is not the current one, which is [ErrReferenced].
// Its number is not given again while a later one is there.
func (t Versions) Delete(ctx context.Context, skillID string, number int64) error {
	err := t.c.atomic(ctx, func(c conn) error {
		id, err := scalar[string](ctx, c, "SELECT id FROM versions WHERE skill_id = $1 AND number = $2", skillID, number)
		if err != nil {
			return err
		}
		current, err := scalar[string](ctx, c, "SELECT current FROM skills WHERE id = $1", skillID)
		if err != nil {
			return err
		}
		if current == id {
			return referenced(nil, "it is the current version")
		}
		if err := c.loosen(ctx, "v.id = $1", id); err != nil {
			return err
		}
		if err := c.mustChange(ctx, "DELETE FROM versions WHERE id = $1", id); err != nil {
			return err
		}
		return c.skillChanged(ctx, skillID)
	})
	if err != nil {
		return fmt.Errorf("delete version %d of skill %q: %w", number, skillID, err)
	}
	return nil
}
