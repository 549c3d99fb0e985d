package library

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/bm25"
	"github.com/loadout-dev/loadout/internal/store"
)

// skillIndex are the metadata of all skills, by namespace, as of a revision of the database:
// what all sources of a node have in common. It is safe for concurrent use.
type skillIndex struct {
	db         *store.DB
	refreshing chan struct{} // held while the database is asked for what changed
	wake       chan struct{} // has one while somebody is to look

	mu         sync.Mutex
	revision   int64
	skills     map[string]*indexedSkill // by id
	namespaces map[Namespace]*namespaceIndex
	watchers   map[*watcher]bool
}

// watcher is who wants to know of some changes.
type watcher struct {
	matches func(*indexedSkill) bool
	pending chan struct{} // has one while there is something new
}

// indexedSkill is the metadata of a skill.
type indexedSkill struct {
	id, digest string
	hidden     bool
	listings   []Namespace
	entry      *catalog.Entry // without the place that it is listed in
}

// namespaceIndex is what one namespace lists.
type namespaceIndex struct {
	byName  map[string]*indexedSkill
	entries map[*indexedSkill]*catalog.Entry // made when a source lists them
	sorted  []*catalog.Entry                 // of placed that are not hidden, by name; nil where it is to be made
	search  *bm25.Index                      // nil where it is to be made
	order   []*indexedSkill                  // of search
}

func newSkillIndex(db *store.DB) *skillIndex {
	return &skillIndex{
		db: db, refreshing: make(chan struct{}, 1), wake: make(chan struct{}, 1),
		skills: map[string]*indexedSkill{}, namespaces: map[Namespace]*namespaceIndex{}, watchers: map[*watcher]bool{},
	}
}

// refresh reads what has changed since it last did. Others who ask meanwhile wait for
// it, and then look whether that was enough.
func (s *skillIndex) refresh(ctx context.Context) error {
	revisions, err := s.db.Revisions(ctx)
	if err != nil {
		return err
	}
	want := revisions[store.SkillsRevision]
	if s.currentRevision() >= want {
		return nil
	}
	select {
	case s.refreshing <- struct{}{}:
		defer func() { <-s.refreshing }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for at := s.currentRevision(); at < want; at = s.currentRevision() {
		changes, err := s.db.Skills.Changes(ctx, at)
		if err != nil {
			return err
		}
		if len(changes) == 0 { // what changed last was changed again
			return nil
		}
		s.apply(changes)
	}
	return nil
}

func (s *skillIndex) currentRevision() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revision
}

// apply takes changes over, and tells those who want to know.
func (s *skillIndex) apply(changes []store.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range changes {
		old, new := s.skills[c.ID], newIndexedSkill(c)
		s.replace(c.ID, old, new)
		s.revision = c.Revision
		if !old.equal(new) {
			s.notify(old, new)
		}
	}
}

// notify wakes those who want to know of a change; mu is held.
func (s *skillIndex) notify(changed ...*indexedSkill) {
	for w := range s.watchers {
		for _, k := range changed {
			if k != nil && w.matches(k) {
				select {
				case w.pending <- struct{}{}:
				default:
				}
			}
		}
	}
}

// watch calls changed after changes that somebody wants to know of, until ctx ends, and
// first where there were any since a revision. Calls come one at a time.
func (s *skillIndex) watch(ctx context.Context, since int64, wants func(*indexedSkill) bool, changed func()) {
	w := &watcher{matches: wants, pending: make(chan struct{}, 1)}
	s.mu.Lock()
	s.watchers[w] = true
	if s.revision > since {
		w.pending <- struct{}{}
	}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.watchers, w)
		s.mu.Unlock()
	}()
	for {
		select {
		case <-w.pending:
			changed()
		case <-ctx.Done():
			return
		}
	}
}

// equal reports whether sources show a skill as they did.
func (k *indexedSkill) equal(other *indexedSkill) bool {
	if k == nil || other == nil {
		return k == other
	}
	return k.digest == other.digest && k.hidden == other.hidden && slices.Equal(k.listings, other.listings)
}

// newIndexedSkill is nil where the skill is gone, or has no version yet.
func newIndexedSkill(c store.Change) *indexedSkill {
	if c.Skill == nil || c.Skill.Number == 0 {
		return nil
	}
	m := readMeta(c.Skill.Meta)
	return &indexedSkill{
		id: c.ID, digest: c.Skill.Digest, hidden: c.Skill.Hidden, listings: c.Listings,
		entry: m.catalogEntry(c.Skill.Name, c.Skill.Display, c.Skill.Description, c.Skill.Label, c.Skill.Tags),
	}
}

// replace puts a skill where it is listed; mu is held. One that sources know stays the
// same for them where its files do: a review is no change to them.
func (s *skillIndex) replace(id string, old, new *indexedSkill) {
	delete(s.skills, id)
	if new != nil {
		s.skills[id] = new
	}
	if old != nil {
		for _, n := range old.listings {
			s.removeListing(n, old, new)
		}
	}
	if new != nil {
		for _, n := range new.listings {
			s.addListing(n, new)
		}
	}
}

func (s *skillIndex) removeListing(n Namespace, old, new *indexedSkill) {
	sh := s.namespaces[n]
	if sh == nil {
		return
	}
	if sh.byName[old.entry.Name] == old { // else another one has the name by now
		delete(sh.byName, old.entry.Name)
	}
	if e := sh.entries[old]; e != nil && new != nil && new.digest == old.digest {
		sh.entries[new] = e
	}
	delete(sh.entries, old)
	sh.search, sh.order, sh.sorted = nil, nil, nil
	if len(sh.byName) == 0 && (new == nil || !slices.Contains(new.listings, n)) {
		delete(s.namespaces, n)
	}
}

func (s *skillIndex) addListing(n Namespace, new *indexedSkill) {
	sh := s.namespaces[n]
	if sh == nil {
		sh = &namespaceIndex{byName: map[string]*indexedSkill{}, entries: map[*indexedSkill]*catalog.Entry{}}
		s.namespaces[n] = sh
	}
	sh.byName[new.entry.Name] = new
	sh.search, sh.order, sh.sorted = nil, nil, nil
}

// isShadowed reports whether names find another skill before one that is listed in some
// of these namespaces, the nearest of which come first.
func (s *skillIndex) isShadowed(id, name string, in []Namespace) bool {
	return s.isShadowedWith(nil, id, name, in)
}

// isShadowedWith is shadowed with a draft on some of the shelves; nil is none.
func (s *skillIndex) isShadowedWith(t *draftOverlay, id, name string, in []Namespace) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range in {
		if t.lists(n, name) {
			return id != draftID
		}
		sh := s.namespaces[n]
		if sh == nil || sh.byName[name] == nil {
			continue
		}
		if k := sh.byName[name]; k.id == id || !k.hidden {
			return k.id != id
		}
	}
	return false
}

// list returns the entries of a namespace, by name, as a source with this origin has
// them.
func (s *skillIndex) list(n Namespace, origin string, scope catalog.Scope) []*catalog.Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	sh := s.namespaces[n]
	if sh == nil {
		return nil
	}
	if sh.sorted == nil {
		for _, k := range sh.byName {
			if !k.hidden {
				sh.sorted = append(sh.sorted, sh.entryFor(k, origin, scope))
			}
		}
		slices.SortFunc(sh.sorted, func(a, b *catalog.Entry) int { return strings.Compare(a.Name, b.Name) })
	}
	return slices.Clone(sh.sorted)
}

// entryFor is the entry of a skill, the same as long as its files are.
func (sh *namespaceIndex) entryFor(k *indexedSkill, origin string, scope catalog.Scope) *catalog.Entry {
	e := sh.entries[k]
	if e == nil {
		e = locateEntry(k.entry, origin, scope)
		sh.entries[k] = e
	}
	return e
}

func locateEntry(of *catalog.Entry, origin string, scope catalog.Scope) *catalog.Entry {
	e := *of
	e.Origin, e.Scope, e.Dir, e.Path = origin, scope, e.Name, origin+"/"+e.Name
	return &e
}

// rankedSkill is a skill that was found.
type rankedSkill struct {
	id    string
	score float64
}

// search ranks the skills that names find in some namespaces. Each namespace has an index
// of its own, so that what others have says nothing about what is found; by rank their
// answers become one.
func (s *skillIndex) search(query string, in []Namespace, limit int) []rankedSkill {
	return s.searchWith(nil, query, in, limit)
}

// searchWith is search with a draft on some of the shelves; nil is none.
func (s *skillIndex) searchWith(t *draftOverlay, query string, in []Namespace, limit int) []rankedSkill {
	const smooth = 60 // as reciprocal rank fusion has it: the first of each list count alike
	best := map[string]float64{}
	var order []string
	for _, n := range in {
		index, of := t.index(s, n)
		if index == nil {
			continue
		}
		rank := 0
		for _, h := range index.Search(query, limit*2) {
			k := of[h.Doc]
			if s.isShadowedWith(t, k.id, k.entry.Name, in) {
				continue
			}
			if _, ok := best[k.id]; !ok {
				order = append(order, k.id)
			}
			best[k.id] = max(best[k.id], 1/float64(smooth+rank))
			rank++
		}
	}
	out := make([]rankedSkill, len(order))
	for i, id := range order {
		out[i] = rankedSkill{id, best[id]}
	}
	slices.SortStableFunc(out, func(a, b rankedSkill) int { return cmp.Compare(b.score, a.score) })
	return out[:min(limit, len(out))]
}

// index is what a namespace is searched by. It is made outside the lock, by the first who
// asks after a change, and by another where two ask at once.
func (s *skillIndex) index(n Namespace) (*bm25.Index, []*indexedSkill) {
	s.mu.Lock()
	sh := s.namespaces[n]
	if sh == nil || sh.search != nil {
		defer s.mu.Unlock()
		if sh == nil {
			return nil, nil
		}
		return sh.search, sh.order
	}
	var order []*indexedSkill
	for _, k := range sh.byName {
		if !k.hidden {
			order = append(order, k)
		}
	}
	at := s.revision
	s.mu.Unlock()
	slices.SortFunc(order, func(a, b *indexedSkill) int { return strings.Compare(a.entry.Name, b.entry.Name) })
	index := bm25.New(searchDocs(order))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.revision == at && s.namespaces[n] == sh {
		sh.search, sh.order = index, order
	}
	return index, order
}

func searchDocs(of []*indexedSkill) iter.Seq[bm25.Doc] {
	return func(yield func(bm25.Doc) bool) {
		for _, k := range of {
			if !yield(bm25.Doc{Name: k.entry.Name, Description: k.entry.Description, Tags: k.entry.Tags}) {
				return
			}
		}
	}
}
