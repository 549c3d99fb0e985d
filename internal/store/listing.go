package store

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Listing is a namespace in which a skill is seen.
type Listing struct {
	Namespace Namespace
	SkillID   string
	ListedBy  string
	Listed    time.Time
}

func (l *Listing) fields() []any {
	return []any{(*string)(&l.Namespace), &l.SkillID, &l.ListedBy, (*stamp)(&l.Listed)}
}

// list lists a skill in a namespace, in a transaction.
func (c conn) list(ctx context.Context, in Namespace, skillID, by string) error {
	n, err := c.exec(ctx, `INSERT INTO listings (namespace, name, skill_id, listed_by, listed)
		SELECT $1, s.name, s.id, $3, CAST($4 AS BIGINT) FROM skills s WHERE s.id = $2`, string(in), skillID, by, stamp(now()))
	if err == nil && n == 0 {
		err = ErrNotFound
	}
	return err
}

// Publish lists a skill in another namespace too. Where that lists a skill of that
// name already it is [ErrExists], also where it is the same.
func (t Skills) Publish(ctx context.Context, id string, in Namespace, by string) error {
	return t.change(ctx, "publish", id, func(c conn) error {
		if err := c.mustExist(ctx, in); err != nil {
			return err
		}
		return c.list(ctx, in, id, by)
	})
}

// Withdraw takes a skill out of a namespace that it was published to; its own is
// [ErrReferenced].
func (t Skills) Withdraw(ctx context.Context, id string, from Namespace) error {
	return t.change(ctx, "withdraw", id, func(c conn) error {
		own, err := scalar[string](ctx, c, "SELECT namespace FROM skills WHERE id = $1", id)
		if err != nil {
			return err
		}
		if own == string(from) {
			return referenced(nil, "it is at home there")
		}
		return c.mustChange(ctx, "DELETE FROM listings WHERE skill_id = $1 AND namespace = $2", id, string(from))
	})
}

// Listings returns where a skill is seen.
func (t Skills) Listings(ctx context.Context, id string) ([]Listing, error) {
	found, err := all[Listing](ctx, t.c, "SELECT namespace, skill_id, listed_by, listed FROM listings WHERE skill_id = $1 ORDER BY namespace", id)
	if err != nil {
		return nil, fmt.Errorf("listings of skill %q: %w", id, err)
	}
	return found, nil
}

func (t Skills) listed(ctx context.Context, ids []any) (map[string][]Namespace, error) {
	found, err := all[Listing](ctx, t.c, "SELECT namespace, skill_id, listed_by, listed FROM listings WHERE skill_id IN ("+places(1, len(ids))+") ORDER BY namespace", ids...)
	out := make(map[string][]Namespace, len(ids))
	for _, l := range found {
		out[l.SkillID] = append(out[l.SkillID], l.Namespace)
	}
	return out, err
}

// Candidate is a skill, and the namespace in which it was found.
type Candidate struct {
	In Namespace
	Skill
}

func (c *Candidate) fields() []any { return append([]any{(*string)(&c.In)}, c.Skill.fields()...) }

// Find returns the skills of a name that are listed in namespaces, hidden ones too, in
// the order of the namespaces as they are given: the first is the nearest. There are
// at most [MaxNamespaces] of them.
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
	rows, err := all[Candidate](ctx, t.c, strings.Replace(skillSelect, "SELECT ", "SELECT l.namespace, ", 1)+
		"JOIN listings l ON l.skill_id = s.id WHERE l.name = $1 AND l.namespace IN ("+places(2, len(in))+")",
		append([]any{name}, anys(in)...)...)
	if err != nil {
		return nil, err
	}
	byNamespace := make(map[Namespace]Candidate, len(rows))
	for _, r := range rows {
		byNamespace[r.In] = r
	}
	var out []Candidate
	for _, n := range in {
		if c, ok := byNamespace[n]; ok {
			out = append(out, c)
			delete(byNamespace, n) // of one that is given twice
		}
	}
	return out, nil
}

// MaxText bounds, in bytes, the text that is looked for.
const MaxText = 256

// SkillQuery asks for skills.
type SkillQuery struct {
	// In are the namespaces that are looked at, at most [MaxNamespaces]; none is no
	// skill.
	In []Namespace
	// Text is part of the name, the title, the tags or the beginning of the description,
	// in capitals or not; "" is in all of them. It has at most [MaxText] bytes.
	Text string
	// Hidden asks for those that are hidden too.
	Hidden bool
	Page
}

// List returns the skills that are listed in namespaces, each once, by name, and how
// to ask for more. It costs as much as the page and the number of namespaces, not as
// the number of skills; but with a text.
func (t Skills) List(ctx context.Context, q SkillQuery) ([]Skill, string, error) {
	skills, next, err := t.listPage(ctx, q)
	if err != nil {
		return nil, "", fmt.Errorf("list skills: %w", err)
	}
	return skills, next, nil
}

func (t Skills) listPage(ctx context.Context, q SkillQuery) ([]Skill, string, error) {
	keys, err := q.keys(2)
	if err == nil {
		err = checkNamespaces(q.In)
	}
	if err == nil && len(q.Text) > MaxText {
		err = fmt.Errorf("%w: a text of %d bytes, more than %d", ErrInvalid, len(q.Text), MaxText)
	}
	if err != nil || len(q.In) == 0 {
		return nil, "", err
	}
	query, args := q.sql(t.c.db.dialect, keys)
	skills, err := all[Skill](ctx, t.c, query, args...)
	if err != nil {
		return nil, "", err
	}
	skills, next := cut(q.Page, skills, func(s Skill) []string { return []string{s.Name, s.ID} })
	return skills, next, nil
}

// sql asks each namespace for as many as the page holds, in the order of an index,
// and merges them: a plan that no number of skills makes slow. A single question
// over all namespaces would sort all that is visible for every page.
func (q SkillQuery) sql(d dialect, keys []string) (string, []any) {
	args := []any{keys[0], keys[1], q.limit() + 1}
	place := func(v any) string {
		args = append(args, v)
		return "$" + strconv.Itoa(len(args))
	}
	where := "(l.name, l.skill_id) > ($1, $2)"
	if !q.Hidden {
		where += " AND NOT h.hidden"
	}
	if q.Text != "" {
		where += " AND " + d.find + "(h.folded, " + place(fold(q.Text)) + ") > 0"
	}
	var parts []string
	for _, n := range q.In {
		parts = append(parts, `SELECT * FROM (SELECT l.name, l.skill_id FROM listings l JOIN skills h ON h.id = l.skill_id
			WHERE l.namespace = `+place(string(n))+" AND "+where+" ORDER BY l.name LIMIT $3) one")
	}
	// DISTINCT is on the merged keys alone: rows with their texts are looked up for
	// the page.
	return skillSelect + "JOIN (SELECT DISTINCT name, skill_id FROM (" + strings.Join(parts, " UNION ALL ") +
		") merged ORDER BY name, skill_id LIMIT $3) page ON page.skill_id = s.id ORDER BY page.name, page.skill_id", args
}

// ByOrigin returns the skills that came from a place, by id, and how to ask for
// more.
func (t Skills) ByOrigin(ctx context.Context, origin string, p Page) ([]Skill, string, error) {
	keys, err := p.keys(1)
	if err != nil {
		return nil, "", fmt.Errorf("skills of an origin: %w", err)
	}
	skills, err := all[Skill](ctx, t.c, skillSelect+"WHERE s.origin = $1 AND s.id > $2 ORDER BY s.id LIMIT $3", origin, keys[0], p.limit()+1)
	if err != nil {
		return nil, "", fmt.Errorf("skills of an origin: %w", err)
	}
	skills, next := cut(p, skills, func(s Skill) []string { return []string{s.ID} })
	return skills, next, nil
}
