package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Skill holds a skill's metadata, including that of its current version.
type Skill struct {
	ID        string // set by Create if ""
	Namespace Namespace
	Name      string // unique within the namespace
	Hidden    bool   // whether the skill is omitted from lists; it can still be used by name
	Origin    string // where the skill came from; "" for an upload
	Source    json.RawMessage
	CreatedBy string
	Created   time.Time // set by Create if zero
	Updated   time.Time // when another version last became current

	// The remaining fields describe the current version. They are empty if
	// there is none.

	Number      int64
	Label       string
	Digest      string
	Review      Review
	Reviewer    string // user who last reviewed it; "" if none
	Reviewed    time.Time
	Size        int64
	Files       int64
	Display     string
	Description string
	Tags        []string
	Meta        json.RawMessage
}

// skillSelect selects skills with their current version. Callers append a
// condition.
const skillSelect = `SELECT s.id, s.namespace, s.name, s.hidden, s.origin, s.source, s.created_by, s.created, s.updated,
	COALESCE(v.number, 0), COALESCE(v.label, ''), COALESCE(v.digest, ''), COALESCE(v.review, ''), COALESCE(v.size, 0), COALESCE(v.files, 0),
	COALESCE(v.display, ''), COALESCE(v.description, ''), COALESCE(v.tags, ''), COALESCE(v.meta, ''), COALESCE(v.reviewer, ''), COALESCE(v.reviewed, 0)
	FROM skills s LEFT JOIN versions v ON v.id = s.current `

func (s *Skill) fields() []any {
	return []any{&s.ID, (*string)(&s.Namespace), &s.Name, &s.Hidden, &s.Origin, (*jsonText)(&s.Source), &s.CreatedBy, (*timestamp)(&s.Created), (*timestamp)(&s.Updated),
		&s.Number, &s.Label, &s.Digest, (*string)(&s.Review), &s.Size, &s.Files,
		&s.Display, &s.Description, (*stringList)(&s.Tags), (*jsonText)(&s.Meta), &s.Reviewer, (*timestamp)(&s.Reviewed)}
}

// Skills stores the names, owners and visibility of skills. It does not read
// their files.
type Skills struct{ c conn }

// Create adds a skill without a version, lists it in its namespace, and returns
// it as stored. It fails with [ErrExists] if the namespace already lists a
// skill with that name, and with [ErrNotFound] if the namespace's user or group
// does not exist.
func (t Skills) Create(ctx context.Context, s Skill) (Skill, error) {
	setDefaultID(&s.ID)
	setDefaultTime(&s.Created)
	s = Skill{ID: s.ID, Namespace: s.Namespace, Name: s.Name, Hidden: s.Hidden, Origin: s.Origin, Source: s.Source,
		CreatedBy: s.CreatedBy, Created: s.Created, Updated: s.Created}
	err := t.c.inTransaction(ctx, func(c conn) error {
		if err := c.checkNamespaceOwner(ctx, s.Namespace); err != nil {
			return err
		}
		err := c.insert(ctx, "skills", "id, namespace, name, current, hidden, created_by, created, updated, origin, source",
			[]any{s.ID, string(s.Namespace), s.Name, "", s.Hidden, s.CreatedBy, timestamp(s.Created), timestamp(s.Updated), s.Origin, jsonText(s.Source)})
		if err != nil {
			return err
		}
		if err := c.addListing(ctx, s.Namespace, s.ID, s.CreatedBy); err != nil {
			return err
		}
		return c.recordSkillChange(ctx, s.ID)
	})
	if err != nil {
		return Skill{}, fmt.Errorf("add skill %q: %w", s.Name, err)
	}
	return s, nil
}

// checkNamespaceOwner fails with [ErrNotFound] if the user or group that owns a
// namespace does not exist.
func (c conn) checkNamespaceOwner(ctx context.Context, n Namespace) error {
	if err := n.validate(); err != nil || n.IsShared() {
		return err
	}
	there, err := queryScalar[int64](ctx, c, "SELECT (SELECT count(*) FROM users WHERE id = $1) + (SELECT count(*) FROM groups WHERE id = $2)", n.User(), n.Group())
	if err == nil && there == 0 {
		err = fmt.Errorf("find owner of namespace %.100q: %w", string(n), ErrNotFound)
	}
	return err
}

// recordSkillChange records that a skill changed. The caller must be in a
// transaction.
func (c conn) recordSkillChange(ctx context.Context, id string) error {
	revision, err := c.incrementRevision(ctx, SkillsRevision)
	if err != nil {
		return err
	}
	_, err = c.exec(ctx, `INSERT INTO skill_changes (skill_id, revision) VALUES ($1, $2)
		ON CONFLICT (skill_id) DO UPDATE SET revision = excluded.revision`, id, revision)
	return err
}

// Get returns the skill with the given id.
func (t Skills) Get(ctx context.Context, id string) (Skill, error) {
	s, err := queryOne[Skill](ctx, t.c, skillSelect+"WHERE s.id = $1", id)
	if err != nil {
		return Skill{}, fmt.Errorf("get skill %q: %w", id, err)
	}
	return s, nil
}

// Update replaces a skill's origin and source.
func (t Skills) Update(ctx context.Context, id, origin string, source json.RawMessage) error {
	return t.changeSkill(ctx, "change", id, func(c conn) error {
		return c.execAffecting(ctx, "UPDATE skills SET origin = $2, source = $3 WHERE id = $1", id, origin, jsonText(source))
	})
}

// SetHidden sets whether a skill is omitted from lists. A hidden skill can
// still be used by name.
func (t Skills) SetHidden(ctx context.Context, id string, hidden bool) error {
	return t.changeSkill(ctx, "hide", id, func(c conn) error {
		return c.execAffecting(ctx, "UPDATE skills SET hidden = $2 WHERE id = $1", id, hidden)
	})
}

// SetCurrent makes a version the current one. The version may be older than the
// previous current version.
func (t Skills) SetCurrent(ctx context.Context, id string, number int64) error {
	return t.changeSkill(ctx, "set current version of", id, func(c conn) error {
		v, err := queryOne[Version](ctx, c, versionSelect+"WHERE v.skill_id = $1 AND v.number = $2", id, number)
		if err != nil {
			return fmt.Errorf("get version %d: %w", number, err)
		}
		return c.execAffecting(ctx, "UPDATE skills SET current = $2, updated = $3 WHERE id = $1", id, v.ID, timestamp(now()))
	})
}

// Delete deletes a skill with its versions, ratings, usage and references to
// other items. The caller must check in the same transaction that no item
// refers to it; see [Refs.ListTo] and [Defaults.ListBySkill]. [Blobs.Sweep]
// deletes the skill's files after their grace period.
func (t Skills) Delete(ctx context.Context, id string) error {
	return t.changeSkill(ctx, "delete", id, func(c conn) error {
		if err := c.startGrace(ctx, "v.skill_id = $1", id); err != nil {
			return err
		}
		if _, err := c.exec(ctx, "DELETE FROM refs WHERE from_kind = $1 AND from_id = $2", SkillKind, id); err != nil {
			return err
		}
		return c.execAffecting(ctx, "DELETE FROM skills WHERE id = $1", id)
	})
}

// changeSkill calls f in a transaction and records that the skill changed.
func (t Skills) changeSkill(ctx context.Context, verb, id string, f func(conn) error) error {
	err := t.c.inTransaction(ctx, func(c conn) error {
		if err := f(c); err != nil {
			return err
		}
		return c.recordSkillChange(ctx, id)
	})
	if err != nil {
		return fmt.Errorf("%s skill %q: %w", verb, id, err)
	}
	return nil
}

// Change describes the latest change to a skill.
type Change struct {
	Revision int64
	ID       string
	Skill    *Skill // nil if deleted
	Listings []Namespace
	Pending  []PendingVersion // newest versions that nobody decided about, newest first
}

type skillChange struct {
	Revision int64
	ID       string
}

func (s *skillChange) fields() []any { return []any{&s.Revision, &s.ID} }

// Changes returns the latest change to each skill that changed after the given
// revision of [SkillsRevision], sorted by revision. If after is 0, it includes
// all skills. It returns up to [MaxPage] changes; to get more, call it again
// with the last revision.
func (t Skills) Changes(ctx context.Context, after int64) ([]Change, error) {
	out, err := t.changes(ctx, after)
	if err != nil {
		return nil, fmt.Errorf("list changed skills: %w", err)
	}
	return out, nil
}

func (t Skills) changes(ctx context.Context, after int64) ([]Change, error) {
	rows, err := queryAll[skillChange](ctx, t.c, "SELECT revision, skill_id FROM skill_changes WHERE revision > $1 ORDER BY revision LIMIT $2", after, MaxPage)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	ids := make([]any, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
	}
	skills, listed, err := t.getMany(ctx, ids)
	if err != nil {
		return nil, err
	}
	pending, err := t.listPending(ctx, ids)
	if err != nil {
		return nil, err
	}
	out := make([]Change, len(rows))
	for i, r := range rows {
		out[i] = Change{r.Revision, r.ID, skills[r.ID], listed[r.ID], pending[r.ID]}
	}
	return out, nil
}

// PendingVersion is a version without a decision.
type PendingVersion struct {
	SkillID       string
	Number        int64
	CreatedBy     string
	Approvers     []string // users who approved it, if more approvals are required
	NeedsApproval bool     // see [Version.NeedsApproval]
	Meta          json.RawMessage
}

func (v *PendingVersion) fields() []any {
	return []any{&v.SkillID, &v.Number, &v.CreatedBy, (*stringList)(&v.Approvers), &v.NeedsApproval, (*jsonText)(&v.Meta)}
}

// maxPendingPerSkill is the maximum length of [Change.Pending].
const maxPendingPerSkill = 20

// listPending returns the newest versions without a decision of each of the skills,
// keyed by skill id. It omits the same versions as [Versions.ListPending].
func (t Skills) listPending(ctx context.Context, ids []any) (map[string][]PendingVersion, error) {
	rows, err := queryAll[PendingVersion](ctx, t.c, pendingSQL(len(ids)), ids...)
	if err != nil {
		return nil, err
	}
	out := map[string][]PendingVersion{}
	for _, v := range rows {
		out[v.SkillID] = append(out[v.SkillID], v)
	}
	return out, nil
}

func pendingSQL(skills int) string {
	return `SELECT v.skill_id, v.number, v.created_by, v.approvers, v.needs_approval, v.meta
		FROM (SELECT w.id, row_number() OVER (PARTITION BY w.skill_id ORDER BY w.number DESC) AS nth
			FROM versions w WHERE w.skill_id IN (` + placeholders(1, skills) + `) AND w.review = 'pending') n
		JOIN versions v ON v.id = n.id JOIN skills s ON s.id = v.skill_id LEFT JOIN versions c ON c.id = s.current
		WHERE n.nth <= ` + strconv.Itoa(maxPendingPerSkill) + " AND " + pendingCondition + `
		ORDER BY v.skill_id, v.number DESC`
}

// GetMany returns the skills with the given ids and the namespaces that list
// them, as two maps keyed by skill id. It accepts up to [MaxPage] ids and omits
// missing skills.
func (t Skills) GetMany(ctx context.Context, ids []string) (map[string]*Skill, map[string][]Namespace, error) {
	if len(ids) > MaxPage {
		return nil, nil, fmt.Errorf("get %d skills: %w: limit %d", len(ids), ErrInvalid, MaxPage)
	}
	if len(ids) == 0 {
		return nil, nil, nil
	}
	skills, listed, err := t.getMany(ctx, toArgs(ids))
	if err != nil {
		return nil, nil, fmt.Errorf("get %d skills: %w", len(ids), err)
	}
	return skills, listed, nil
}

func (t Skills) getMany(ctx context.Context, ids []any) (map[string]*Skill, map[string][]Namespace, error) {
	skills, err := queryAll[Skill](ctx, t.c, skillSelect+"WHERE s.id IN ("+placeholders(1, len(ids))+")", ids...)
	if err != nil {
		return nil, nil, err
	}
	listed, err := t.listNamespaces(ctx, ids)
	if err != nil {
		return nil, nil, err
	}
	byID := make(map[string]*Skill, len(skills))
	for i := range skills {
		byID[skills[i].ID] = &skills[i]
	}
	return byID, listed, nil
}

// rowExists reports whether a query found its row, given the error it returned.
func rowExists(err error) (bool, error) {
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
