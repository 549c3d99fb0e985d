package catalog

import (
	"context"
	"sync"

	"github.com/loadout-dev/loadout/internal/bm25"
	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/skill"
)

// Hit is a skill found by a search.
type Hit struct {
	*Entry
	Score float64 // higher is better; comparable only within one search
}

// SearchOptions configure a search. The zero value returns the best ten of all
// skills.
type SearchOptions struct {
	Limit int // default 10
	// ForModel leaves out skills that only users may invoke.
	ForModel bool
}

// searchCache holds the index of the snapshot that was searched last.
type searchCache struct {
	mu      sync.Mutex // held while building the index, so that it is built once
	of      *Snapshot
	index   *bm25.Index
	entries []*Entry
}

// Search ranks the skills by how well their names, descriptions, tags and the
// beginning of their instructions match the query. An empty query lists all
// skills by name. The first search of a snapshot reads the instructions.
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
			return hits, nil // hits were filtered out, and there are no more
		}
	}
}

// maxIndexed is the maximum number of skills that a catalog with
// [Options.Search] indexes itself.
const maxIndexed = 200

// ranked finds skills with the function from [Options.Search].
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

// Warm builds the search index in advance of the first search.
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

// bodyHead returns the beginning of a skill's instructions. It returns "" if
// they cannot be read, so that the skill is found by its description alone.
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
	return string(skill.Body(buf[:n]))
}
