package library

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/bm25"
)

// Found are the skills that fit a query, with a draft among them.
type Found struct {
	Query string
	Hits  []DraftHit
	Rank  int // of the draft, 1 being the first; 0 where it is not among the best hundred
}

// DraftHit is a skill that a search found, or the draft.
type DraftHit struct {
	Skill       *Skill // nil of the draft
	Name        string
	Namespace   Namespace
	Description string
	Score       float64
}

// FindDraft ranks skills as [Library.Search] does for each of some queries, as if a draft
// had been uploaded: in place of the skill that it is a version of, or of the one that
// has its name where the draft is to be kept; "" is the principal's own namespace. Of each
// answer at most limit hits are returned.
func (l *Library) FindDraft(ctx context.Context, p account.Principal, d Draft, in Namespace, queries []string, limit int) ([]Found, error) {
	opened, c, err := l.readDraft(ctx, p, d)
	if err != nil {
		return nil, fmt.Errorf("search with a draft: %w", err)
	}
	reached, err := namespaces(p, account.SkillRead)
	if err != nil {
		return nil, err
	}
	if err := l.shelf.refresh(ctx); err != nil {
		return nil, err
	}
	places := []Namespace{own(p)}
	switch {
	case opened.of != nil:
		places = opened.of.listings
	case in != "":
		if err := inPlace(p, account.SkillRead, in); err != nil {
			return nil, err
		}
		places = []Namespace{in}
	}
	done, err := turn(ctx, l.turns)
	if err != nil {
		return nil, err
	}
	defer done()
	t := l.shelf.tryOut(newDraftEntry(c.skill, c.meta), d.Of, places)
	out := make([]Found, len(queries))
	for i, q := range queries {
		if out[i], err = l.findTried(ctx, p, t, q, reached, limit); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (l *Library) findTried(ctx context.Context, p account.Principal, t *tried, query string, in []Namespace, limit int) (Found, error) {
	ranks := l.shelf.searchWith(t, query, in, maxHits)
	out := Found{Query: query, Rank: 1 + slices.IndexFunc(ranks, func(r ranked) bool { return r.id == triedID })}
	ranks = ranks[:min(limit, len(ranks))]
	hits, err := l.hits(ctx, p, slices.DeleteFunc(slices.Clone(ranks), func(r ranked) bool { return r.id == triedID }))
	if err != nil {
		return out, err
	}
	for _, r := range ranks {
		if r.id == triedID {
			e := t.draft.entry
			seen := slices.IndexFunc(in, func(n Namespace) bool { return slices.Contains(t.in, n) }) // others may not be known of
			out.Hits = append(out.Hits, DraftHit{nil, e.Name, in[seen], e.Description, r.score})
		} else if i := slices.IndexFunc(hits, func(h Hit) bool { return h.ID == r.id }); i >= 0 {
			h := hits[i]
			out.Hits = append(out.Hits, DraftHit{h.Skill, h.Name, h.Namespace, h.Description, h.Score})
		}
	}
	return out, nil
}

// triedID is the id of a draft in a search. No skill has it: ids are of letters and digits.
const triedID = "(draft)"

// tried is a draft on the shelves of some namespaces, as a search sees them.
type tried struct {
	draft   *known
	in      []Namespace
	indexes map[Namespace]searched
}

type searched struct {
	index *bm25.Index
	order []*known
}

// tryOut puts a draft on the shelves of namespaces, for one search, in place of the skill
// with an id and of the one that has its name.
func (s *shelves) tryOut(e *catalog.Entry, of string, in []Namespace) *tried {
	t := &tried{draft: &known{id: triedID, entry: e}, in: in, indexes: map[Namespace]searched{}}
	for _, n := range in {
		order := []*known{t.draft}
		s.mu.Lock()
		if sh := s.shelf[n]; sh != nil {
			for _, k := range sh.byName {
				if !k.hidden && k.id != of && k.entry.Name != e.Name {
					order = append(order, k)
				}
			}
		}
		s.mu.Unlock()
		slices.SortFunc(order, func(a, b *known) int { return strings.Compare(a.entry.Name, b.entry.Name) })
		t.indexes[n] = searched{bm25.New(docs(order)), order}
	}
	return t
}

// index is what a namespace is searched by. Without a draft there it is that of all.
func (t *tried) index(s *shelves, n Namespace) (*bm25.Index, []*known) {
	if t != nil {
		if i, ok := t.indexes[n]; ok {
			return i.index, i.order
		}
	}
	return s.index(n)
}

// lists reports whether names find the draft in a namespace.
func (t *tried) lists(n Namespace, name string) bool {
	return t != nil && name == t.draft.entry.Name && slices.Contains(t.in, n)
}
