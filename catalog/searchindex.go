package catalog

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/loadout-dev/loadout/internal/bm25"
)

// searchIndex holds the index of the most recently searched snapshot. The words
// of a skill are in a saved segment of its source, or in memory. When the
// catalog changes, only new and changed skills are read.
type searchIndex struct {
	save sync.Mutex // held while saving; locked before mu

	mu      sync.Mutex // held while building the index, so that it is built only once
	of      *Snapshot
	index   *bm25.Index
	entries []*Entry
	memory  []*wordSegment // the largest first
	saved   map[string]*savedWords
}

// wordSegment is a segment of the search index in memory.
type wordSegment struct {
	*bm25.Segment
	texts map[*Entry]int32
	at    []int32 // position of each text in the current snapshot, or -1
	live  int     // number of positions
}

// maxPartShare limits the size of small segments: if the small segments have
// more than 1/maxPartShare as many texts as the large one, they are merged with
// it.
const maxPartShare = 8

// wordKey returns the key of the skill's words in a saved segment, or 0 if the
// words must not be saved. The words depend only on the content of the file and
// on the skill's name, which may be the name of the directory.
func (e *Entry) wordKey() uint64 {
	if e.change == 0 {
		return 0
	}
	h := mixHash(e.change, uint64(len(e.Name)))
	for s := e.Name; len(s) > 0; {
		v := uint64(0)
		n := min(8, len(s))
		for i := range n {
			v |= uint64(s[i]) << (8 * i)
		}
		h, s = mixHash(h, v), s[n:]
	}
	return max(1, h)
}

// searchIndex returns the index of a snapshot. It returns an error only if ctx
// is done.
func (c *Catalog) searchIndex(ctx context.Context, s *Snapshot) (*bm25.Index, []*Entry, error) {
	x := &c.index
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.of != s {
		if err := c.buildSearchIndex(ctx, s); err != nil {
			return nil, nil, err
		}
	}
	return x.index, x.entries, nil
}

// buildSearchIndex builds the index of a snapshot. It must be called with
// c.index.mu held.
func (c *Catalog) buildSearchIndex(ctx context.Context, s *Snapshot) error {
	x := &c.index
	c.openSaved(s)
	shown := s.Skills()
	missing := x.assign(shown)
	if len(missing) > 0 {
		added, err := c.readWords(ctx, shown, missing)
		if err != nil {
			return err
		}
		x.memory = append(x.memory, added)
	}
	x.compact()
	x.of, x.entries, x.index = s, shown, bm25.Combine(len(shown), x.parts()...)
	return nil
}

// assign finds the words of the given skills in the segments. It returns the
// positions of the skills whose words it did not find.
func (x *searchIndex) assign(shown []*Entry) (missing []int32) {
	for _, m := range x.memory {
		m.clearPositions()
	}
	for _, w := range x.saved {
		for _, f := range w.files() {
			f.clearPositions()
		}
	}
	origin, saved := "", (*savedWords)(nil)
	for i, e := range shown {
		if e.Origin != origin {
			origin, saved = e.Origin, x.saved[e.Origin]
		}
		at := int32(i)
		if !saved.assign(e, at) && !slices.ContainsFunc(x.memory, func(m *wordSegment) bool { return m.assign(e, at) }) {
			missing = append(missing, at)
		}
	}
	return missing
}

func (m *wordSegment) clearPositions() {
	m.at, m.live = newPositions(m.Len()), 0 // the previous index still uses the old ones
}

func (m *wordSegment) assign(e *Entry, at int32) bool {
	text, ok := m.texts[e]
	if ok {
		m.at[text] = at
		m.live++
	}
	return ok
}

// newPositions returns n positions, all of them -1.
func newPositions(n int) []int32 {
	at := make([]int32, n)
	for i := range at {
		at[i] = -1
	}
	return at
}

// readWords returns a segment with the words of the skills at the given
// positions, which it reads.
func (c *Catalog) readWords(ctx context.Context, shown []*Entry, positions []int32) (*wordSegment, error) {
	// Segments are merged in the order of keys, so a text is written in that order.
	keys := make(map[int32]uint64, len(positions))
	for _, at := range positions {
		keys[at] = shown[at].wordKey()
	}
	slices.SortFunc(positions, func(a, b int32) int { return cmp.Or(cmp.Compare(keys[a], keys[b]), cmp.Compare(a, b)) })
	buf := make([]byte, firstRead)
	m := &wordSegment{texts: make(map[*Entry]int32, len(positions)), at: positions, live: len(positions)}
	m.Segment = bm25.NewSegment(func(yield func(uint64, bm25.Doc) bool) {
		for i, at := range positions {
			if ctx.Err() != nil {
				return
			}
			e, key := shown[at], keys[at]
			body, ok := c.bodyHead(ctx, e, buf)
			if !ok {
				key = 0
			}
			m.texts[e] = int32(i)
			if !yield(key, bm25.Doc{Name: e.Name, Description: e.Description, Tags: e.Tags, Body: body}) {
				return
			}
		}
	})
	return m, ctx.Err()
}

// compact drops in-memory segments that contain no skills, and merges small
// ones.
func (x *searchIndex) compact() {
	x.memory = slices.DeleteFunc(x.memory, func(m *wordSegment) bool { return m.live == 0 })
	slices.SortStableFunc(x.memory, func(a, b *wordSegment) int { return cmp.Compare(b.live, a.live) })
	small := 0
	for _, m := range x.memory[min(1, len(x.memory)):] {
		small += m.live
	}
	switch {
	case len(x.memory) > 1 && small*maxPartShare > x.memory[0].live:
		x.memory = []*wordSegment{mergeWords(x.memory)}
	case len(x.memory) > 2:
		x.memory = []*wordSegment{x.memory[0], mergeWords(x.memory[1:])}
	case len(x.memory) > 0 && x.memory[0].live < x.memory[0].Len()/2:
		x.memory[0] = mergeWords(x.memory[:1])
	}
}

// mergeWords merges segments in memory. The result contains only skills that
// are in the current snapshot.
func mergeWords(segments []*wordSegment) *wordSegment {
	out := &wordSegment{texts: map[*Entry]int32{}}
	var parts []bm25.Part
	for _, m := range segments {
		part := bm25.Part{Segment: m.Segment, At: newPositions(m.Len())}
		for text, at := range m.at {
			if at >= 0 {
				part.At[text] = int32(len(out.at))
				out.at = append(out.at, at)
			}
		}
		for e, text := range m.texts {
			if part.At[text] >= 0 {
				out.texts[e] = part.At[text]
			}
		}
		parts = append(parts, part)
	}
	out.live = len(out.at)
	out.Segment, _ = bm25.Merge(out.live, parts...) // fails only for segments in files
	return out
}

// parts returns all segments, saved and in memory, with the positions of their
// skills.
func (x *searchIndex) parts() []bm25.Part {
	var parts []bm25.Part
	for _, w := range x.saved {
		for _, f := range w.files() {
			parts = append(parts, bm25.Part{Segment: f.Segment, At: f.at})
		}
	}
	for _, m := range x.memory {
		parts = append(parts, bm25.Part{Segment: m.Segment, At: m.at})
	}
	return parts
}

// discardSaved stops using the saved segments, because one of them is damaged.
// The next [Catalog.Warm] replaces them.
func (x *searchIndex) discardSaved() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, w := range x.saved {
		w.large, w.small = w.large.discarded(), w.small.discarded()
	}
	x.of = nil
}
