package catalog

import (
	"context"
	"strings"

	"github.com/loadout-dev/loadout/internal/bm25"
	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/skill"
)

// Hit is a search result.
type Hit struct {
	*Entry
	Score float64 // higher is better; comparable only within a search
	// Fit says how much of the query the skill's name, description, tags, examples
	// and the start of its instructions contain. It does not depend on the other
	// skills; see [Hit.Weak].
	Fit float64
}

// Weak reports whether the skill probably does not fit, because it contains too
// little of what the query says.
func (h Hit) Weak() bool { return bm25.IsWeak(h.Fit) }

// Match is a result of [Options.Search].
type Match struct {
	Name string
	Fit  float64 // see [Hit]
}

// SearchOptions configures a search. The zero value returns the ten best
// matches among all skills.
type SearchOptions struct {
	Limit int // maximum number of hits; default 10
	// ForModel omits skills that only users may invoke.
	ForModel bool
	// Among, if set, restricts the search to the skills for which it returns
	// true. It is called for some of the skills, and must be fast.
	Among func(*Entry) bool
}

// includes reports whether e may be in the search results.
func (o *SearchOptions) includes(e *Entry) bool {
	return (!o.ForModel || !e.DisableModelInvocation) && (o.Among == nil || o.Among(e))
}

// Search ranks the skills of [Snapshot.Skills] by how well their names,
// descriptions, tags and the start of their instructions match query. An empty
// query lists the first skills by name, with a score of 0. The first search of a
// snapshot reads the instructions of the skills that are new and not in a saved
// index. Search returns an error only if ctx is done or [Options.Search] fails.
func (c *Catalog) Search(ctx context.Context, query string, o SearchOptions) ([]Hit, error) {
	if o.Limit <= 0 {
		o.Limit = 10
	}
	s := c.Snapshot()
	if printable.OneLine(query) == "" {
		var hits []Hit
		for e := range s.Visible() {
			if len(hits) == o.Limit {
				break
			}
			if o.includes(e) {
				hits = append(hits, Hit{Entry: e, Fit: 1})
			}
		}
		return hits, nil
	}
	if c.rank != nil && s.size() > maxIndexed {
		return c.ranked(ctx, s, query, o)
	}
	for {
		index, entries, err := c.searchIndex(ctx, s)
		if err != nil {
			return nil, err
		}
		var keep func(doc int) bool
		if o.ForModel || o.Among != nil {
			keep = func(doc int) bool { return o.includes(entries[doc]) }
		}
		found, err := index.SearchAmong(query, o.Limit, keep)
		if err != nil { // only a saved index can be damaged
			c.log.Warn("rebuilding a damaged search index", "reason", err)
			c.index.discardSaved()
			continue
		}
		hits := make([]Hit, len(found))
		for i, h := range found {
			hits[i] = Hit{entries[h.Doc], h.Score, h.Fit}
		}
		return hits, nil
	}
}

// maxIndexed is the maximum number of skills for which a catalog with
// [Options.Search] uses its own index.
const maxIndexed = 200

// ranked returns the results of a search with [Options.Search].
func (c *Catalog) ranked(ctx context.Context, s *Snapshot, query string, o SearchOptions) ([]Hit, error) {
	matches, err := c.rank(ctx, query, 2*o.Limit) // some may be filtered out
	if err != nil {
		return nil, err
	}
	var hits []Hit
	for i, m := range matches {
		e := s.ByName(m.Name)
		if e == nil || !o.includes(e) {
			continue
		}
		if hits = append(hits, Hit{e, 1 / float64(1+i), m.Fit}); len(hits) == o.Limit {
			break
		}
	}
	return hits, nil
}

// Warm builds the search index of the current snapshot ahead of the first
// search. If enough skills are new, it also saves the words of skills in
// directories with a [DirOptions.IndexFile], so that the next process need not
// read these skills. Warm returns an error only if ctx is done.
func (c *Catalog) Warm(ctx context.Context) error {
	s := c.Snapshot()
	if _, _, err := c.searchIndex(ctx, s); err != nil {
		return err
	}
	c.saveSearch(ctx, s)
	return context.Cause(ctx)
}

// bodyHead returns the start of a skill's instructions. If they cannot be read,
// it returns false, and the skill is found by its description alone.
func (c *Catalog) bodyHead(ctx context.Context, e *Entry, buf []byte) (string, bool) {
	if e.Server != "" { // its files must not be fetched before they are used
		return "", true
	}
	if e.archive || e.id == (fileID{}) {
		s, _, err := c.Read(ctx, e)
		if err != nil {
			return "", false
		}
		return searchText(s), true
	}
	d, err := openDir(e.Path)
	if err != nil {
		return "", false
	}
	defer d.close()
	n, _, err := d.readHead(e.file, buf)
	if err != nil {
		return "", false
	}
	s, _, _ := skill.ParseHead(buf[:n], true, e.file, "") // the text may end within a line
	if s == nil {
		return "", false
	}
	return strings.Clone(searchText(s)), true // not in buf
}

// searchText returns the examples of a skill and the start of its instructions.
func searchText(s *skill.Skill) string {
	text := s.Instructions[:min(len(s.Instructions), firstRead)]
	if len(s.Examples) > 0 {
		text = strings.Join(s.Examples, "\n") + "\n" + text
	}
	return text
}
