package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Skill is a skill in its own namespace, and what its current version says of it.
type Skill struct {
	ID        string // set by Create where it is ""
	Namespace Namespace
	Name      string // that no other skill of the namespace has
	Hidden    bool   // not listed, but used where it is named
	Origin    string // where it came from, as a label: "" is an upload
	Source    json.RawMessage
	CreatedBy string
	Created   time.Time // set by Create where it is zero
	Updated   time.Time // when another version became current

	// What follows is of the current version; without one it is empty.

	Number      int64
	Label       string
	Digest      string
	Review      Review
	Size        int64
	Files       int64
	Display     string
	Description string
	Tags        []string
	Meta        json.RawMessage
}

// skillSelect asks for skills with their current version; a condition follows.
const skillSelect = `SELECT s.id, s.namespace, s.name, s.hidden, s.origin, s.source, s.created_by, s.created, s.updated,
	COALESCE(v.number, 0), COALESCE(v.label, ''), COALESCE(v.digest, ''), COALESCE(v.review, ''), COALESCE(v.size, 0), COALESCE(v.files, 0),
	COALESCE(v.display, ''), COALESCE(v.description, ''), COALESCE(v.tags, ''), COALESCE(v.meta, '')
	FROM skills s LEFT JOIN versions v ON v.id = s.current `

func (s *Skill) fields() []any {
	return []any{&s.ID, (*string)(&s.Namespace), &s.Name, &s.Hidden, &s.Origin, (*document)(&s.Source), &s.CreatedBy, (*stamp)(&s.Created), (*stamp)(&s.Updated),
		&s.Number, &s.Label, &s.Digest, (*string)(&s.Review), &s.Size, &s.Files,
		&s.Display, &s.Description, (*list)(&s.Tags), (*document)(&s.Meta)}
}

// Skills keeps what a skill is called, whose it is, and who sees it. Nothing here
// reads a file of a skill.
type Skills struct{ c conn }

// Create adds a skill that has no version yet, lists it in its namespace, and returns
// it as it is kept. A name that the namespace lists already is [ErrExists], a user or
// a group that is not there [ErrNotFound].
func (t Skills) Create(ctx context.Context, s Skill) (Skill, error) {
	orID(&s.ID)
	orNow(&s.Created)
	s = Skill{ID: s.ID, Namespace: s.Namespace, Name: s.Name, Hidden: s.Hidden, Origin: s.Origin, Source: s.Source,
		CreatedBy: s.CreatedBy, Created: s.Created, Updated: s.Created}
	err := t.c.atomic(ctx, func(c conn) error {
		if err := c.mustExist(ctx, s.Namespace); err != nil {
			return err
		}
		err := c.insert(ctx, "skills", "id, namespace, name, current, hidden, created_by, created, updated, origin, source, folded",
			[]any{s.ID, string(s.Namespace), s.Name, "", s.Hidden, s.CreatedBy, stamp(s.Created), stamp(s.Updated), s.Origin, document(s.Source), fold(s.Name)})
		if err != nil {
			return err
		}
		if err := c.list(ctx, s.Namespace, s.ID, s.CreatedBy); err != nil {
			return err
		}
		return c.skillChanged(ctx, s.ID)
	})
	if err != nil {
		return Skill{}, fmt.Errorf("add skill %q: %w", s.Name, err)
	}
	return s, nil
}

// mustExist fails with [ErrNotFound] where the user or group of a namespace is not
// there.
func (c conn) mustExist(ctx context.Context, n Namespace) error {
	if err := n.check(); err != nil || n == Public {
		return err
	}
	there, err := scalar[int64](ctx, c, "SELECT (SELECT count(*) FROM users WHERE id = $1) + (SELECT count(*) FROM groups WHERE id = $2)", n.User(), n.Group())
	if err == nil && there == 0 {
		err = fmt.Errorf("namespace %.100q: %w", string(n), ErrNotFound)
	}
	return err
}

// skillChanged notes in a transaction that a skill changed.
func (c conn) skillChanged(ctx context.Context, id string) error {
	revision, err := c.bump(ctx, SkillsRevision)
	if err != nil {
		return err
	}
	_, err = c.exec(ctx, `INSERT INTO skill_changes (skill_id, revision) VALUES ($1, $2)
		ON CONFLICT (skill_id) DO UPDATE SET revision = excluded.revision`, id, revision)
	return err
}

// fold makes of texts what another text is looked for in.
func fold(texts ...string) string {
	const bound = 4 << 10 // bytes: each is compared with every text that is looked for
	text := strings.ToLower(strings.Join(texts, "\n"))
	return strings.ToValidUTF8(text[:min(len(text), bound)], "")
}

// Get returns the skill with an id.
func (t Skills) Get(ctx context.Context, id string) (Skill, error) {
	s, err := one[Skill](ctx, t.c, skillSelect+"WHERE s.id = $1", id)
	if err != nil {
		return Skill{}, fmt.Errorf("skill %q: %w", id, err)
	}
	return s, nil
}

// Update replaces what is kept of where a skill came from.
func (t Skills) Update(ctx context.Context, id, origin string, source json.RawMessage) error {
	return t.change(ctx, "change", id, func(c conn) error {
		return c.mustChange(ctx, "UPDATE skills SET origin = $2, source = $3 WHERE id = $1", id, origin, document(source))
	})
}

// Hide takes a skill out of lists, or puts it back. Where it is named it is used as
// before.
func (t Skills) Hide(ctx context.Context, id string, hidden bool) error {
	return t.change(ctx, "hide", id, func(c conn) error {
		return c.mustChange(ctx, "UPDATE skills SET hidden = $2 WHERE id = $1", id, hidden)
	})
}

// SetCurrent makes a version the one that is used: the newest, or an older one to go
// back to.
func (t Skills) SetCurrent(ctx context.Context, id string, number int64) error {
	return t.change(ctx, "set the version of", id, func(c conn) error {
		v, err := one[Version](ctx, c, versionSelect+"WHERE v.skill_id = $1 AND v.number = $2", id, number)
		if err != nil {
			return fmt.Errorf("version %d: %w", number, err)
		}
		name, err := scalar[string](ctx, c, "SELECT name FROM skills WHERE id = $1", id)
		if err != nil {
			return err
		}
		return c.mustChange(ctx, "UPDATE skills SET current = $2, updated = $3, folded = $4 WHERE id = $1",
			id, v.ID, stamp(now()), fold(name, v.Display, strings.Join(v.Tags, " "), v.Description))
	})
}

// Delete removes a skill with its versions, ratings, usage, and what it refers to. Who
// refers to it is asked before, in the same transaction: see [Refs.To] and
// [Defaults.Of]. Its files are removed by [Blobs.Sweep] after their grace.
func (t Skills) Delete(ctx context.Context, id string) error {
	return t.change(ctx, "delete", id, func(c conn) error {
		if err := c.loosen(ctx, "v.skill_id = $1", id); err != nil {
			return err
		}
		if _, err := c.exec(ctx, "DELETE FROM refs WHERE from_kind = $1 AND from_id = $2", SkillKind, id); err != nil {
			return err
		}
		return c.mustChange(ctx, "DELETE FROM skills WHERE id = $1", id)
	})
}

// change changes a skill and notes it.
func (t Skills) change(ctx context.Context, verb, id string, f func(conn) error) error {
	err := t.c.atomic(ctx, func(c conn) error {
		if err := f(c); err != nil {
			return err
		}
		return c.skillChanged(ctx, id)
	})
	if err != nil {
		return fmt.Errorf("%s skill %q: %w", verb, id, err)
	}
	return nil
}

// Change is a skill that changed, or is gone.
type Change struct {
	Revision int64
	ID       string
	Skill    *Skill // nil where it is gone
	Listings []Namespace
}

type skillChange struct {
	Revision int64
	ID       string
}

func (s *skillChange) fields() []any { return []any{&s.Revision, &s.ID} }

// Changes returns what changed after a revision of [SkillsRevision], each skill once
// with its last change, in the order of these; 0 returns all skills. At most
// [MaxPage] are returned: who gets some asks again after the last of them.
func (t Skills) Changes(ctx context.Context, after int64) ([]Change, error) {
	out, err := t.changes(ctx, after)
	if err != nil {
		return nil, fmt.Errorf("changes of skills: %w", err)
	}
	return out, nil
}

func (t Skills) changes(ctx context.Context, after int64) ([]Change, error) {
	rows, err := all[skillChange](ctx, t.c, "SELECT revision, skill_id FROM skill_changes WHERE revision > $1 ORDER BY revision LIMIT $2", after, MaxPage)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	ids := make([]any, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
	}
	skills, listed, err := t.several(ctx, ids)
	if err != nil {
		return nil, err
	}
	out := make([]Change, len(rows))
	for i, r := range rows {
		out[i] = Change{r.Revision, r.ID, skills[r.ID], listed[r.ID]}
	}
	return out, nil
}

// Several returns those of some skills that there are, by their ids, and where each is
// seen. At most [MaxPage] are asked for.
func (t Skills) Several(ctx context.Context, ids []string) (map[string]*Skill, map[string][]Namespace, error) {
	if len(ids) > MaxPage {
		return nil, nil, fmt.Errorf("%d skills: %w: more than %d", len(ids), ErrInvalid, MaxPage)
	}
	if len(ids) == 0 {
		return nil, nil, nil
	}
	skills, listed, err := t.several(ctx, anys(ids))
	if err != nil {
		return nil, nil, fmt.Errorf("%d skills: %w", len(ids), err)
	}
	return skills, listed, nil
}

func (t Skills) several(ctx context.Context, ids []any) (map[string]*Skill, map[string][]Namespace, error) {
	skills, err := all[Skill](ctx, t.c, skillSelect+"WHERE s.id IN ("+places(1, len(ids))+")", ids...)
	if err != nil {
		return nil, nil, err
	}
	listed, err := t.listed(ctx, ids)
	if err != nil {
		return nil, nil, err
	}
	byID := make(map[string]*Skill, len(skills))
	for i := range skills {
		byID[skills[i].ID] = &skills[i]
	}
	return byID, listed, nil
}

// exists reports what an error of a question says about whether a thing is there.
func exists(err error) (bool, error) {
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
