package catalog

import (
	"context"
	"sync"

	"github.com/loadout-dev/loadout/internal/bm25"
	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/skill"
)

// Hit is a search result.
type Hit struct {
	*Entry
	Score float64 // higher is better; comparable only within a search
}

// SearchOptions configures a search. The zero value returns the ten best
// matches among all skills.
type SearchOptions struct {
	Limit int // maximum number of hits; default 10
	// ForModel omits skills that only users may invoke.
	ForModel bool
}

// searchCache holds the index of the most recently searched snapshot.
type searchCache struct {
	mu      sync.Mutex // held while building the index, so that it is built only once
	of      *Snapshot
	index   *bm25.Index
	entries []*Entry
}

// Search ranks the skills of [Snapshot.Skills] by how well their names,
// descriptions, tags and the start of their instructions match query. An empty
// query lists the first skills by name, with a score of 0. The first search of a
// snapshot reads the instructions. Search returns an error only if ctx is done
// or [Options.Search] fails.
func (c *Catalog) Search(ctx context.Context, query string, o SearchOptions) ([]Hit, error) {
	if o.Limit <= 0 {
		o.Limit = 10
	}
	s := c.Snapshot()
	var hits []Hit
	keep := func(e *Entry, score float64) bool {
		if !o.ForModel || !e.DisableModelInvocation {
			hits = append(hits, Hit{e, score})
		}
		return len(hits) < o.Limit
	}
	if printable.OneLine(query) == "" {
		for _, e := range s.shown {
			if !keep(e, 0) {
				break
			}
		}
		return hits, nil
	}
	if c.rank != nil && len(s.shown) > maxIndexed {
		return c.ranked(ctx, s, query, o)
	}
	index, entries, err := c.searchIndex(ctx, s)
	if err != nil {
		return nil, err
	}
	for limit := min(o.Limit, len(entries)); ; limit = min(4*limit, len(entries)) {
		found := index.Search(query, limit)
		hits = nil
		for _, h := range found {
			if !keep(entries[h.Doc], h.Score) {
				return hits, nil
			}
		}
		if len(found) < limit || limit == len(entries) {
			return hits, nil // no more hits remain after filtering
		}
	}
}

// maxIndexed is the maximum number of skills for which a catalog with
// [Options.Search] uses its own index.
const maxIndexed = 200

// ranked searches with [Options.Search].
func (c *Catalog) ranked(ctx context.Context, s *Snapshot, query string, o SearchOptions) ([]Hit, error) {
	names, err := c.rank(ctx, query, 2*o.Limit) // some may be filtered out
	if err != nil {
		return nil, err
	}
	var hits []Hit
	for i, name := range names {
		e := s.winner(s.withName(name))
		if e == nil || o.ForModel && e.DisableModelInvocation {
			continue
		}
		if hits = append(hits, Hit{e, 1 / float64(1+i)}); len(hits) == o.Limit {
			break
		}
	}
	return hits, nil
}

// Warm builds the search index of the current snapshot ahead of the first
// search. It returns an error only if ctx is done.
func (c *Catalog) Warm(ctx context.Context) error {
	_, _, err := c.searchIndex(ctx, c.Snapshot())
	return err
}

func (c *Catalog) searchIndex(ctx context.Context, s *Snapshot) (*bm25.Index, []*Entry, error) {
	c.index.mu.Lock()
	defer c.index.mu.Unlock()
	if c.index.of == s {
		return c.index.index, c.index.entries, nil
	}
	buf := make([]byte, firstRead)
	index := bm25.New(func(yield func(bm25.Doc) bool) {
		for _, e := range s.shown {
			if ctx.Err() != nil {
				return
			}
			if !yield(bm25.Doc{Name: e.Name, Description: e.Description, Tags: e.Tags, Body: c.bodyHead(ctx, e, buf)}) {
				return
			}
		}
	})
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	c.index.of, c.index.index, c.index.entries = s, index, s.shown
	return index, s.shown, nil
}

// bodyHead returns the start of a skill's instructions. If they cannot be read,
// it returns "", so that the skill is found by its description alone.
func (c *Catalog) bodyHead(ctx context.Context, e *Entry, buf []byte) string {
	if e.archive || e.id == (fileID{}) {
		s, _, err := c.Read(ctx, e)
		if err != nil {
			return ""
		}
		return s.Instructions[:min(len(s.Instructions), firstRead)]
	}
	d, err := openDir(e.Path)
	if err != nil {
		return ""
	}
	defer d.close()
	n, _, err := d.readHead(e.file, buf)
	if err != nil {
		return ""
	}
	s, _, _ := skill.ParseHead(buf[:n], true, e.file, "") // the text may end within a line
	if s == nil {
		return ""
	}
	return s.Instructions
}
