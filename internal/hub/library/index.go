package library

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/bm25"
	"github.com/loadout-dev/loadout/internal/store"
)

// skillIndex holds the metadata of all skills at a database revision. All catalog
// sources on a node share it. It is safe for concurrent use.
type skillIndex struct {
	db         *store.DB
	refreshing chan struct{} // contains an element during a refresh
	wake       chan struct{} // receives requests for a refresh

	mu         sync.Mutex
	revision   int64
	skills     map[string]*indexedSkill // by ID
	namespaces map[Namespace]*namespaceIndex
	watchers   map[*watcher]bool
}

// watcher is notified when a matching skill changes.
type watcher struct {
	matches  func(*indexedSkill) bool
	versions bool          // whether to notify of changes to versions that are not current
	pending  chan struct{} // receives a value after a change
}

// indexedSkill holds the metadata of a skill.
type indexedSkill struct {
	id, digest string
	hidden     bool // whether the skill is hidden or withheld
	withheld   bool // whether the current version was rejected and is withheld
	listings   []Namespace
	entry      *catalog.Entry // catalog entry without origin and path
	examples   string         // examples and questions; see [meta.searchText]
	summary
}

// namespaceIndex holds the skills that one namespace lists.
type namespaceIndex struct {
	byName  map[string]*indexedSkill
	entries map[*indexedSkill]*catalog.Entry // created on demand
	layer   *catalog.Layer                   // visible entries; nil if outdated
	search  *bm25.Index                      // nil if outdated
	order   []*indexedSkill                  // skills in the order of the search index
}

func newSkillIndex(db *store.DB) *skillIndex {
	return &skillIndex{
		db: db, refreshing: make(chan struct{}, 1), wake: make(chan struct{}, 1),
		skills: map[string]*indexedSkill{}, namespaces: map[Namespace]*namespaceIndex{}, watchers: map[*watcher]bool{},
	}
}

// refresh reads the changes since the last refresh. A concurrent call waits and
// then reads only newer changes.
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
		if len(changes) == 0 { // the changed skill has a newer revision
			return nil
		}
		s.apply(changes)
	}
	return nil
}

// find returns the current metadata of the first skill that one of the namespaces
// lists under the given name and that matches. It returns nil if there is none.
func (s *skillIndex) find(ctx context.Context, in []Namespace, name string, matches func(*indexedSkill) bool) (*indexedSkill, error) {
	if err := s.refresh(ctx); err != nil {
		return nil, fmt.Errorf("find skill %q: %w", name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range in {
		if sh := s.namespaces[n]; sh != nil && sh.byName[name] != nil && matches(sh.byName[name]) {
			return sh.byName[name], nil
		}
	}
	return nil, nil
}

func (s *skillIndex) currentRevision() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revision
}

// apply applies changes and notifies the watchers.
func (s *skillIndex) apply(changes []store.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range changes {
		old, new := s.skills[c.ID], newIndexedSkill(c)
		s.replace(c.ID, old, new)
		s.revision = c.Revision
		s.notify(!old.equal(new), old, new)
	}
}

// notify notifies the watchers that match a changed skill. If current is false,
// only versions other than the current one have changed, for example by a review.
// The caller must hold mu.
func (s *skillIndex) notify(current bool, changed ...*indexedSkill) {
	for w := range s.watchers {
		for _, k := range changed {
			if k != nil && (current || w.versions) && w.matches(k) {
				select {
				case w.pending <- struct{}{}:
				default:
				}
			}
		}
	}
}

// watch calls changed after each change to a skill for which matches returns true,
// until ctx is done. It calls changed immediately if any skill has changed since
// the given revision. Calls to changed never overlap. Changes to versions that are
// not current count only if versions is set.
func (s *skillIndex) watch(ctx context.Context, since int64, versions bool, matches func(*indexedSkill) bool, changed func()) {
	w := &watcher{matches: matches, versions: versions, pending: make(chan struct{}, 1)}
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

// equal reports whether two skills have the same catalog metadata.
func (k *indexedSkill) equal(other *indexedSkill) bool {
	if k == nil || other == nil {
		return k == other
	}
	return k.digest == other.digest && k.hidden == other.hidden && slices.Equal(k.listings, other.listings)
}

// newIndexedSkill returns the metadata of a changed skill, or nil if the skill
// was deleted or has no version.
func newIndexedSkill(c store.Change) *indexedSkill {
	if c.Skill == nil || c.Skill.Number == 0 {
		return nil
	}
	m := readMeta(c.Skill.Meta)
	return &indexedSkill{
		id: c.ID, digest: c.Skill.Digest, hidden: c.Skill.Hidden || isWithheld(*c.Skill), withheld: isWithheld(*c.Skill), listings: c.Listings, summary: newSummary(*c.Skill, m, c.Pending),
		entry:    m.catalogEntry(c.Skill.Name, c.Skill.Display, c.Skill.Description, c.Skill.Label, c.Skill.Tags),
		examples: m.searchText(),
	}
}

// replace replaces a skill's metadata in all namespaces that list the skill. If
// the files have not changed, it keeps the catalog entry. The caller must hold mu.
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
	if sh.byName[old.entry.Name] == old { // otherwise another skill has taken the name
		delete(sh.byName, old.entry.Name)
	}
	if e := sh.entries[old]; e != nil && new != nil && new.digest == old.digest {
		sh.entries[new] = e
	}
	delete(sh.entries, old)
	sh.search, sh.order, sh.layer = nil, nil, nil
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
	sh.search, sh.order, sh.layer = nil, nil, nil
}

// isShadowed reports whether the skill's name resolves to another skill, including
// the draft in t, if any. The namespaces are in order of precedence.
func (s *skillIndex) isShadowed(t *draftOverlay, id, name string, in []Namespace) bool {
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

// list returns the catalog entries of the visible skills in a namespace, with the
// given origin and scope. All catalogs share the returned layer.
func (s *skillIndex) list(n Namespace, origin string, scope catalog.Scope) *catalog.Layer {
	s.mu.Lock()
	defer s.mu.Unlock()
	sh := s.namespaces[n]
	if sh == nil {
		return catalog.NewLayer(nil)
	}
	if sh.layer == nil {
		var all []*catalog.Entry
		for _, k := range sh.byName {
			if !k.hidden {
				all = append(all, sh.entryFor(k, origin, scope))
			}
		}
		sh.layer = catalog.NewLayer(all)
	}
	return sh.layer
}

// entryFor returns the catalog entry of a skill. It returns the same pointer until
// the skill's files change.
func (sh *namespaceIndex) entryFor(k *indexedSkill, origin string, scope catalog.Scope) *catalog.Entry {
	e := sh.entries[k]
	if e == nil {
		e = locateEntry(k.entry, origin, scope)
		sh.entries[k] = e
	}
	return e
}

// locateEntry returns a copy of an entry with the origin, scope and path set.
func locateEntry(entry *catalog.Entry, origin string, scope catalog.Scope) *catalog.Entry {
	e := *entry
	e.Origin, e.Scope, e.Dir, e.Path = origin, scope, e.Name, origin+"/"+e.Name
	return &e
}

// rankedSkill is a search result.
type rankedSkill struct {
	id    string
	score float64
	fit   float64 // see [catalog.Hit]
	share float64 // score in the namespace in, divided by that of the best hit there
	in    Namespace
}

// compareRanked orders search results: weak ones last, then by score.
func compareRanked(a, b rankedSkill) int {
	if weak := bm25.IsWeak(a.fit); weak != bm25.IsWeak(b.fit) {
		if weak {
			return 1
		}
		return -1
	}
	return cmp.Compare(b.score, a.score)
}

// search returns the skills in the given namespaces that match a query, best
// first. Each namespace has its own index, so that skills in other namespaces do
// not affect the result. The results are merged by rank; weak hits follow all
// others, because a skill may be the best one of a small namespace by chance.
func (s *skillIndex) search(query string, in []Namespace, limit int) []rankedSkill {
	return s.searchWith(nil, query, in, limit)
}

// searchWith is like search, but includes the draft in t, if any.
func (s *skillIndex) searchWith(t *draftOverlay, query string, in []Namespace, limit int) []rankedSkill {
	const smooth = 60 // the usual constant k of reciprocal rank fusion
	var out []rankedSkill
	at := map[string]int{} // index in out by ID
	for _, n := range in {
		index, of := t.index(s, n)
		if index == nil {
			continue
		}
		rank, best := 0, 0.0
		for _, h := range index.Search(query, limit*2) {
			best = max(best, h.Score)
			k := of[h.Doc]
			if s.isShadowed(t, k.id, k.entry.Name, in) {
				continue
			}
			i, ok := at[k.id]
			if !ok {
				i = len(out)
				at[k.id] = i
				out = append(out, rankedSkill{id: k.id})
			}
			out[i].score = max(out[i].score, 1/float64(smooth+rank))
			out[i].fit = max(out[i].fit, h.Fit)
			if share := h.Score / best; share > out[i].share {
				out[i].share, out[i].in = share, n
			}
			rank++
		}
	}
	slices.SortStableFunc(out, compareRanked)
	return out[:min(limit, len(out))]
}

// index returns the search index of a namespace, rebuilding it if it is outdated.
// It does not hold mu while building, so concurrent calls may both build it.
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

func searchDocs(skills []*indexedSkill) iter.Seq[bm25.Doc] {
	return func(yield func(bm25.Doc) bool) {
		for _, k := range skills {
			if !yield(bm25.Doc{Name: k.entry.Name, Description: k.entry.Description, Tags: k.entry.Tags, Body: k.examples}) {
				return
			}
		}
	}
}
