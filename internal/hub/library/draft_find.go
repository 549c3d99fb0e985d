package library

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/bm25"
	"github.com/loadout-dev/loadout/internal/hub/account"
)

// DraftSearchResult is the result of one [Library.SearchWithDraft] query.
type DraftSearchResult struct {
	Query string
	Hits  []DraftHit
	Rank  int // rank of the draft, starting at 1; 0 if it is not in the top hundred
}

// DraftHit is a skill or the draft that matches a query.
type DraftHit struct {
	Skill       *Skill // nil for the draft
	Name        string
	Namespace   Namespace
	Description string
	Score       float64
	Fit         float64 // see [catalog.Hit]
}

// SearchWithDraft runs each query like [Library.Search], as if the draft had been
// uploaded to a namespace. If in is "", it is the principal's own namespace. The
// draft replaces the skill to which it adds a version, or the skill with the same
// name in that namespace. Each result has at most limit hits.
func (l *Library) SearchWithDraft(ctx context.Context, p account.Principal, d Draft, in Namespace, queries []string, limit int) ([]DraftSearchResult, error) {
	opened, c, err := l.readDraft(ctx, p, d)
	if err != nil {
		return nil, fmt.Errorf("search skills with draft: %w", err)
	}
	reached, err := namespaces(p, account.SkillRead)
	if err != nil {
		return nil, err
	}
	if err := l.index.refresh(ctx); err != nil {
		return nil, err
	}
	places := []Namespace{ownNamespace(p)}
	switch {
	case opened.of != nil:
		places = opened.of.listings
	case in != "":
		if err := checkNamespace(p, account.SkillRead, in); err != nil {
			return nil, err
		}
		places = []Namespace{in}
	}
	done, err := acquireSlot(ctx, l.packageSlots)
	if err != nil {
		return nil, err
	}
	defer done()
	t := l.index.withDraft(newDraftEntry(c.skill, c.meta), c.meta.searchText(), d.Of, places)
	out := make([]DraftSearchResult, len(queries))
	for i, q := range queries {
		if out[i], err = l.findWithDraft(ctx, p, t, q, reached, limit); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (l *Library) findWithDraft(ctx context.Context, p account.Principal, t *draftOverlay, query string, in []Namespace, limit int) (DraftSearchResult, error) {
	ranks := l.index.searchWith(t, query, in, maxHits)
	if err := l.orderNearEqual(ctx, p, ranks); err != nil {
		return DraftSearchResult{}, err
	}
	out := DraftSearchResult{Query: query, Rank: 1 + slices.IndexFunc(ranks, func(r rankedSkill) bool { return r.id == draftID })}
	ranks = ranks[:min(limit, len(ranks))]
	hits, err := l.loadHits(ctx, p, slices.DeleteFunc(slices.Clone(ranks), func(r rankedSkill) bool { return r.id == draftID }))
	if err != nil {
		return out, err
	}
	for _, r := range ranks {
		if r.id == draftID {
			e := t.draft.entry
			seen := slices.IndexFunc(in, func(n Namespace) bool { return slices.Contains(t.in, n) }) // a namespace that the principal can see
			out.Hits = append(out.Hits, DraftHit{nil, e.Name, in[seen], e.Description, r.score, r.fit})
		} else if i := slices.IndexFunc(hits, func(h Hit) bool { return h.ID == r.id }); i >= 0 {
			h := hits[i]
			out.Hits = append(out.Hits, DraftHit{h.Skill, h.Name, h.Namespace, h.Description, h.Score, h.Fit})
		}
	}
	return out, nil
}

// draftID stands for the draft in search results. It cannot be a skill ID,
// because those contain no parentheses.
const draftID = "(draft)"

// draftOverlay adds a draft to the search indexes of several namespaces.
type draftOverlay struct {
	draft   *indexedSkill
	in      []Namespace
	indexes map[Namespace]searchIndex
}

type searchIndex struct {
	index *bm25.Index
	order []*indexedSkill
}

// withDraft returns an overlay that adds a draft to a search. The draft replaces
// any skill that has the ID skillID or the draft's name.
func (s *skillIndex) withDraft(e *catalog.Entry, examples, skillID string, in []Namespace) *draftOverlay {
	t := &draftOverlay{draft: &indexedSkill{id: draftID, entry: e, examples: examples}, in: in, indexes: map[Namespace]searchIndex{}}
	for _, n := range in {
		order := []*indexedSkill{t.draft}
		s.mu.Lock()
		if sh := s.namespaces[n]; sh != nil {
			for _, k := range sh.byName {
				if !k.hidden && k.id != skillID && k.entry.Name != e.Name {
					order = append(order, k)
				}
			}
		}
		s.mu.Unlock()
		slices.SortFunc(order, func(a, b *indexedSkill) int { return strings.Compare(a.entry.Name, b.entry.Name) })
		t.indexes[n] = searchIndex{bm25.New(searchDocs(order)), order}
	}
	return t
}

// index returns the search index of a namespace. It includes the draft if the
// namespace lists the draft.
func (t *draftOverlay) index(s *skillIndex, n Namespace) (*bm25.Index, []*indexedSkill) {
	if t != nil {
		if i, ok := t.indexes[n]; ok {
			return i.index, i.order
		}
	}
	return s.index(n)
}

// lists reports whether name resolves to the draft in a namespace.
func (t *draftOverlay) lists(n Namespace, name string) bool {
	return t != nil && name == t.draft.entry.Name && slices.Contains(t.in, n)
}
