package store

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Listing records that a namespace lists a skill.
type Listing struct {
	Namespace Namespace
	SkillID   string
	ListedBy  string
	Listed    time.Time
}

func (l *Listing) fields() []any {
	return []any{(*string)(&l.Namespace), &l.SkillID, &l.ListedBy, (*timestamp)(&l.Listed)}
}

// addListing lists a skill in a namespace. The caller must be in a transaction.
func (c conn) addListing(ctx context.Context, in Namespace, skillID, by string) error {
	n, err := c.exec(ctx, `INSERT INTO listings (namespace, name, skill_id, listed_by, listed)
		SELECT $1, s.name, s.id, $3, CAST($4 AS BIGINT) FROM skills s WHERE s.id = $2`, string(in), skillID, by, timestamp(now()))
	if err == nil && n == 0 {
		err = ErrNotFound
	}
	return err
}

// Publish lists a skill in another namespace. It fails with [ErrExists] if the
// namespace already lists this skill or another one with its name.
func (t Skills) Publish(ctx context.Context, id string, in Namespace, by string) error {
	return t.changeSkill(ctx, "publish", id, func(c conn) error {
		if err := c.checkNamespaceOwner(ctx, in); err != nil {
			return err
		}
		return c.addListing(ctx, in, id, by)
	})
}

// Unpublish removes a skill from a namespace's list. It fails with
// [ErrReferenced] if the skill belongs to the namespace.
func (t Skills) Unpublish(ctx context.Context, id string, from Namespace) error {
	return t.changeSkill(ctx, "unpublish", id, func(c conn) error {
		own, err := queryScalar[string](ctx, c, "SELECT namespace FROM skills WHERE id = $1", id)
		if err != nil {
			return err
		}
		if own == string(from) {
			return referencedError(nil, "skill belongs to namespace %q")
		}
		return c.execAffecting(ctx, "DELETE FROM listings WHERE skill_id = $1 AND namespace = $2", id, string(from))
	})
}

// Listings returns the namespaces that list a skill.
func (t Skills) Listings(ctx context.Context, id string) ([]Listing, error) {
	found, err := queryAll[Listing](ctx, t.c, "SELECT namespace, skill_id, listed_by, listed FROM listings WHERE skill_id = $1 ORDER BY namespace", id)
	if err != nil {
		return nil, fmt.Errorf("list namespaces of skill %q: %w", id, err)
	}
	return found, nil
}

func (t Skills) listNamespaces(ctx context.Context, ids []any) (map[string][]Namespace, error) {
	found, err := queryAll[Listing](ctx, t.c, "SELECT namespace, skill_id, listed_by, listed FROM listings WHERE skill_id IN ("+placeholders(1, len(ids))+") ORDER BY namespace", ids...)
	out := make(map[string][]Namespace, len(ids))
	for _, l := range found {
		out[l.SkillID] = append(out[l.SkillID], l.Namespace)
	}
	return out, err
}

// Candidate is a skill found by name, with the namespace that lists it.
type Candidate struct {
	ListedIn Namespace
	Skill
}

func (c *Candidate) fields() []any { return append([]any{(*string)(&c.ListedIn)}, c.Skill.fields()...) }

// Find returns the skills with the given name that are listed in up to
// [MaxNamespaces] namespaces, in the order of the namespaces. It includes
// hidden skills.
func (t Skills) Find(ctx context.Context, name string, in []Namespace) ([]Candidate, error) {
	found, err := t.find(ctx, name, in)
	if err != nil {
		return nil, fmt.Errorf("find skill %q: %w", name, err)
	}
	return found, nil
}

func (t Skills) find(ctx context.Context, name string, in []Namespace) ([]Candidate, error) {
	if err := checkNamespaces(in); err != nil || len(in) == 0 {
		return nil, err
	}
	rows, err := queryAll[Candidate](ctx, t.c, strings.Replace(skillSelect, "SELECT ", "SELECT l.namespace, ", 1)+
		"JOIN listings l ON l.skill_id = s.id WHERE l.name = $1 AND l.namespace IN ("+placeholders(2, len(in))+")",
		append([]any{name}, toArgs(in)...)...)
	if err != nil {
		return nil, err
	}
	byNamespace := make(map[Namespace]Candidate, len(rows))
	for _, r := range rows {
		byNamespace[r.ListedIn] = r
	}
	var out []Candidate
	for _, n := range in {
		if c, ok := byNamespace[n]; ok {
			out = append(out, c)
			delete(byNamespace, n) // the same namespace may be given twice
		}
	}
	return out, nil
}

// SkillQuery selects skills for [Skills.List].
type SkillQuery struct {
	// Namespaces are the namespaces to search, at most [MaxNamespaces]. If it
	// is empty, no skill matches.
	Namespaces []Namespace
	// Hidden specifies whether to include hidden skills.
	Hidden bool
	Page
}

// List returns the selected skills, each once, sorted by name, and the cursor
// of the next page. Its cost depends on the page size and the number of
// namespaces, not on the number of skills.
func (t Skills) List(ctx context.Context, q SkillQuery) ([]Skill, string, error) {
	skills, next, err := t.listPage(ctx, q)
	if err != nil {
		return nil, "", fmt.Errorf("list skills: %w", err)
	}
	return skills, next, nil
}

func (t Skills) listPage(ctx context.Context, q SkillQuery) ([]Skill, string, error) {
	keys, err := q.decodeCursor(2)
	if err == nil {
		err = checkNamespaces(q.Namespaces)
	}
	if err != nil || len(q.Namespaces) == 0 {
		return nil, "", err
	}
	query, args := q.sql(keys)
	skills, err := queryAll[Skill](ctx, t.c, query, args...)
	if err != nil {
		return nil, "", err
	}
	skills, next := cutPage(q.Page, skills, func(s Skill) []string { return []string{s.Name, s.ID} })
	return skills, next, nil
}

// sql returns a query that reads a page of each namespace in index order and
// merges the pages. A plain query over all namespaces would sort all visible
// skills for every page.
func (q SkillQuery) sql(keys []string) (string, []any) {
	args := []any{keys[0], keys[1], q.Size() + 1}
	place := func(v any) string {
		args = append(args, v)
		return "$" + strconv.Itoa(len(args))
	}
	where := "(l.name, l.skill_id) > ($1, $2)"
	if !q.Hidden {
		where += " AND NOT h.hidden"
	}
	var parts []string
	for _, n := range q.Namespaces {
		parts = append(parts, `SELECT * FROM (SELECT l.name, l.skill_id FROM listings l JOIN skills h ON h.id = l.skill_id
			WHERE l.namespace = `+place(string(n))+" AND "+where+" ORDER BY l.name LIMIT $3) one")
	}
	// DISTINCT compares only the merged keys. The other columns are read only for
	// the skills on the page.
	return skillSelect + "JOIN (SELECT DISTINCT name, skill_id FROM (" + strings.Join(parts, " UNION ALL ") +
		") merged ORDER BY name, skill_id LIMIT $3) page ON page.skill_id = s.id ORDER BY page.name, page.skill_id", args
}
