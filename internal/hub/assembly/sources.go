package assembly

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/bundled"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/skill"
)

// newSources returns the sources of a plan: named skills, the user's skills,
// and bundled skills.
func (b *base) newSources(ctx context.Context, p *plan) ([]catalog.Source, error) {
	var all []catalog.Source
	if p.draft != nil {
		all = append(all, p.draft)
	}
	for _, part := range groupByNamespace(p.refs) {
		s, err := b.assembler.o.Library.BoundSource(p.principal, agentOrigin(part.in), part.refs)
		if err != nil {
			return nil, err
		}
		if s, err = b.addSource(ctx, s, part.in); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	reached, err := b.assembler.o.Library.Sources(ctx, p.principal)
	if err != nil {
		return nil, err
	}
	bound := p.boundNames()
	for _, s := range reached {
		if s, err = b.addSource(ctx, s, sourceGroup(s)); err != nil {
			return nil, err
		}
		all = append(all, withoutNames(s, bound))
	}
	b.skillIDs[b.assembler.bundled.Origin()] = b.assembler.o.Library.Identify(store.Bundled)
	return append(all, withoutNames(b.assembler.bundled, bound)), nil
}

// withoutNames returns a source that omits the skills with the given names. If a
// skill named by an agent cannot be resolved, no other skill with that name may
// replace it.
func withoutNames(s catalog.Source, names []string) catalog.Source {
	if len(names) == 0 {
		return s
	}
	return newFilteredSource(s, nil, names)
}

// groupedRefs holds references to skills that are subject to the same group's
// settings.
type groupedRefs struct {
	in   store.Namespace // the group; "" if no group owns the skills
	refs []library.Ref
}

// groupByNamespace groups references by the group that owns the skill, preserving
// their order.
func groupByNamespace(refs []ref) []groupedRefs {
	var out []groupedRefs
	at := map[store.Namespace]int{}
	for _, r := range refs {
		in := r.home
		if in.Group() == "" {
			in = ""
		}
		i, ok := at[in]
		if !ok {
			i = len(out)
			at[in], out = i, append(out, groupedRefs{in: in})
		}
		out[i].refs = append(out[i].refs, r.Ref)
	}
	return out
}

// agentOrigin returns the origin of the skills named by an agent. It must
// remain stable, because conversations store it.
func agentOrigin(in store.Namespace) string {
	if in == "" {
		return "agent"
	}
	sum := sha256.Sum256([]byte(in))
	return "agent." + hex.EncodeToString(sum[:6])
}

// sourceGroup returns the group whose skills a source lists, or "" if the source
// does not belong to a group.
func sourceGroup(s catalog.Source) store.Namespace {
	if h, ok := s.(interface{ Namespace() store.Namespace }); ok && h.Namespace().Group() != "" {
		return h.Namespace()
	}
	return ""
}

// addSource registers a source's skill IDs and applies the settings of its group.
func (b *base) addSource(ctx context.Context, s catalog.Source, in store.Namespace) (catalog.Source, error) {
	if known, ok := s.(library.SkillIdentifier); ok {
		b.skillIDs[s.Origin()] = known
	}
	if in == "" {
		return s, nil
	}
	g := newFilteredSource(s, &b.assembler.layers, nil)
	g.setFilter(catalog.Filter{Disabled: true})
	err := b.watchSettings(ctx, []store.Namespace{in}, func(f catalog.Filter) {
		g.setFilter(f)
		b.signalChange()
	})
	return g, err
}

// filteredSource restricts a source to the skills that the settings allow and
// whose names are not omitted.
type filteredSource struct {
	catalog.Source
	layers  *filteredLayers
	omitted []string
	names   map[string]bool // names of omitted skills
	filter  atomic.Pointer[sourceFilter]
}

// sourceFilter is a filter for the skills of a source.
type sourceFilter struct {
	key string // identifies the filter; "" if it hides nothing
	// hiddenReason returns the reason why a skill is hidden, or "" if it is not
	// hidden.
	hiddenReason func(*catalog.Entry) string
}

func newFilteredSource(s catalog.Source, layers *filteredLayers, omitted []string) *filteredSource {
	g := &filteredSource{Source: s, layers: layers, omitted: omitted, names: map[string]bool{}}
	for _, n := range omitted {
		g.names[n] = true
	}
	g.setFilter(catalog.Filter{})
	return g
}

// setFilter replaces the filter. An invalid filter hides all skills.
func (g *filteredSource) setFilter(f catalog.Filter) {
	reason, err := f.Matcher()
	if err != nil {
		reason = func(*catalog.Entry) string { return err.Error() }
	}
	key := ""
	if err != nil || f.Disabled || len(f.Allow) > 0 || f.Select != nil || f.Shell != "" {
		key = fmt.Sprintf("%v %#v", err, f)
	}
	g.filter.Store(&sourceFilter{key, reason})
}

// hiddenReason returns the reason why a skill is not available, or "" if it is
// available.
func (g *filteredSource) hiddenReason(e *catalog.Entry) string {
	if g.names[e.Name] {
		return "the agent or a default names another skill"
	}
	return g.filter.Load().hiddenReason(e)
}

// List implements [catalog.Source]. It omits skills that the settings do not
// allow.
func (g *filteredSource) List(ctx context.Context) (catalog.Listing, error) {
	l, err := g.Source.List(ctx)
	if err != nil {
		return catalog.Listing{}, err
	}
	layer := l.Layer
	if layer == nil {
		layer = catalog.NewLayer(l.Entries)
	}
	if f := g.filter.Load(); f.key != "" {
		layer = g.layers.get(layer, f)
	}
	return catalog.Listing{Layer: layer.Without(g.omitted...), Problems: l.Problems}, nil
}

// filteredLayers caches filtered catalog layers, so that the members of a group
// share them. It is safe for concurrent use.
type filteredLayers struct {
	mu  sync.Mutex
	all map[filteredLayer]*catalog.Layer
}

type filteredLayer struct {
	of     *catalog.Layer
	filter string
}

const maxFilteredLayers = 64

// get returns the skills of a layer that a filter allows.
func (c *filteredLayers) get(layer *catalog.Layer, f *sourceFilter) *catalog.Layer {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := filteredLayer{layer, f.key}
	if l := c.all[key]; l != nil {
		return l
	}
	var allowed []*catalog.Entry
	for e := range layer.All() {
		if f.hiddenReason(e) == "" {
			allowed = append(allowed, e)
		}
	}
	if c.all == nil || len(c.all) >= maxFilteredLayers {
		c.all = map[filteredLayer]*catalog.Layer{}
	}
	l := catalog.NewLayer(allowed)
	c.all[key] = l
	return l
}

// Open implements [catalog.Source]. It returns an error for skills that the
// settings do not allow.
func (g *filteredSource) Open(ctx context.Context, e *catalog.Entry) (*skill.Bundle, error) {
	if why := g.hiddenReason(e); why != "" {
		return nil, &catalog.NotFoundError{Ref: e.Name, Reason: why}
	}
	return g.Source.Open(ctx, e)
}

// ListsVersions reports whether the entries of the wrapped source identify
// versions; see [catalog.Catalog.Digest].
func (g *filteredSource) ListsVersions() bool {
	s, ok := g.Source.(interface{ ListsVersions() bool })
	return ok && s.ListsVersions()
}

// Watch implements [catalog.Watcher]. It returns an error if the wrapped source does
// not support watching.
func (g *filteredSource) Watch(ctx context.Context, changed func()) error {
	if w, ok := g.Source.(catalog.Watcher); ok {
		return w.Watch(ctx, changed)
	}
	return fmt.Errorf("source %s does not support watching", g.Origin())
}

// staticSource is an immutable source. Any number of catalogs may share it.
type staticSource struct {
	catalog.Source
	list func() (catalog.Listing, error)
}

// newBundled returns the source of the bundled skills.
func newBundled() *staticSource {
	s := catalog.NewFS("bundled", catalog.Bundled, bundled.FS())
	return &staticSource{s, sync.OnceValues(func() (catalog.Listing, error) {
		l, err := s.List(context.Background())
		return catalog.Listing{Layer: catalog.NewLayer(l.Entries), Problems: l.Problems}, err
	})}
}

// List implements [catalog.Source]. It reads the skills only once.
func (c *staticSource) List(context.Context) (catalog.Listing, error) {
	l, err := c.list()
	return catalog.Listing{Layer: l.Layer, Problems: slices.Clone(l.Problems)}, err
}

// ListsVersions returns true, because the skills never change; see
// [catalog.Catalog.Digest].
func (c *staticSource) ListsVersions() bool { return true }

// Watch implements [catalog.Watcher]. It blocks until ctx is done, because the
// source never changes.
func (c *staticSource) Watch(ctx context.Context, _ func()) error {
	<-ctx.Done()
	return nil
}

// skillDigests returns the digests of the source's skills as a set.
func (c *staticSource) skillDigests(ctx context.Context) (map[string]bool, error) {
	l, err := c.list()
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for e := range l.Layer.All() {
		b, err := c.Open(ctx, e)
		if err != nil {
			return nil, err
		}
		m, _, err := new(skill.Hasher).Manifest(b.FS)
		b.Close()
		if err != nil {
			return nil, err
		}
		out[m.Digest()] = true
	}
	return out, nil
}
