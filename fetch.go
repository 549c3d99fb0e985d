package loadout

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/session"
	"github.com/loadout-dev/loadout/skill"
)

// Fetch resolves a reference and returns the skill and those it needs, each
// after those it needs, as they are on disk now. The error is a
// [*catalog.NotFoundError], [*catalog.DependencyError] or
// [*catalog.BrokenError] where the skill is to blame.
func (r *Runtime) Fetch(ctx context.Context, ref string) ([]*session.Material, error) {
	e, err := r.catalog.Resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	return r.FetchEntry(ctx, e)
}

// FetchEntry is [Runtime.Fetch] for a skill that was resolved before.
func (r *Runtime) FetchEntry(ctx context.Context, e *catalog.Entry) ([]*session.Material, error) {
	snap := r.catalog.Snapshot()
	order, err := snap.LoadOrder(e)
	if err != nil {
		return nil, err
	}
	out := make([]*session.Material, 0, len(order))
	for _, e := range order {
		m, err := r.material(ctx, snap, e)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

func (r *Runtime) material(ctx context.Context, snap *catalog.Snapshot, e *catalog.Entry) (*session.Material, error) {
	s, src, err := r.catalog.Read(ctx, e)
	if err != nil {
		return nil, err
	}
	m := &session.Material{
		ID:           session.ID{Name: e.Name, Origin: e.Origin, Dir: e.Dir},
		Title:        s.Title(),
		Description:  s.Description,
		Version:      s.Version,
		Digest:       digest(src),
		Instructions: s.Instructions,
		Location:     e.Location(),
		Hidden:       e.DisableModelInvocation,
		ArgumentHint: e.ArgumentHint,
		AllowedTools: s.AllowedTools,
		Model:        s.Model,
	}
	m.Tokens = r.tokens.count(m.Digest, s.Instructions)
	for _, dep := range e.Dependencies {
		if d, err := snap.Get(dep); err == nil {
			m.Needs = append(m.Needs, d.Name)
		}
	}
	for _, ref := range snap.Missing(e) {
		m.Problems = append(m.Problems, fmt.Sprintf("it asks for the skill %q, which is not here", ref))
	}
	if strings.TrimSpace(s.Instructions) == "" {
		m.Problems = append(m.Problems, "it has no instructions: SKILL.md says nothing after its frontmatter")
	}
	if m.Files, err = r.catalog.Files(ctx, e); err != nil {
		m.Problems = append(m.Problems, "the files of the skill cannot be listed: "+err.Error())
	}
	return m, nil
}

// digest identifies the bytes of a file.
func digest(b []byte) string {
	return "sha256:" + skill.Hash(b)
}

// tokenCache remembers the size of instructions by digest, as counting takes
// longer than reading.
type tokenCache struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *tokenCache) count(digest, text string) int {
	c.mu.Lock()
	n, ok := c.n[digest]
	c.mu.Unlock()
	if ok {
		return n
	}
	n = skill.Tokens(text)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil || len(c.n) >= 4096 {
		c.n = map[string]int{}
	}
	c.n[digest] = n
	return n
}

// Digest returns "sha256:" and the hex SHA-256 of a skill's SKILL.md as it is
// now, by which a load names what it delivered.
func (r *Runtime) Digest(ctx context.Context, e *catalog.Entry) (string, error) {
	_, src, err := r.catalog.Read(ctx, e)
	if err != nil {
		return "", err
	}
	return digest(src), nil
}
