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

// sources are the places that the skills of a plan come from: what it names, what the
// person reaches by name, and what comes with the program.
func (b *base) sources(ctx context.Context, p *plan) ([]catalog.Source, error) {
	var all []catalog.Source
	if p.draft != nil {
		all = append(all, p.draft)
	}
	for _, part := range byHome(p.refs) {
		s, err := b.kits.o.Library.BoundSource(p.principal, boundLabel(part.in), part.refs)
		if err != nil {
			return nil, err
		}
		if s, err = b.add(ctx, s, part.in); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	reached, err := b.kits.o.Library.Sources(ctx, p.principal)
	if err != nil {
		return nil, err
	}
	for _, s := range reached {
		if s, err = b.add(ctx, s, groupOf(s)); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return append(all, b.kits.bundled), nil
}

// homed are references to skills that are at home in one place.
type homed struct {
	in   store.Namespace // of a group, "" for all others
	refs []library.Ref
}

// byHome puts references together by the group whose settings count for them, in the
// order in which they are named.
func byHome(refs []ref) []homed {
	var out []homed
	at := map[store.Namespace]int{}
	for _, r := range refs {
		in := r.home
		if in.Group() == "" {
			in = ""
		}
		i, ok := at[in]
		if !ok {
			i = len(out)
			at[in], out = i, append(out, homed{in: in})
		}
		out[i].refs = append(out[i].refs, r.Ref)
	}
	return out
}

// boundLabel is the label of the skills that an agent names: the same each time, as
// conversations keep it.
func boundLabel(in store.Namespace) string {
	if in == "" {
		return "agent"
	}
	sum := sha256.Sum256([]byte(in))
	return "agent." + hex.EncodeToString(sum[:6])
}

// groupOf is the group whose skills a source of the library has, "" where it is of none.
func groupOf(s catalog.Source) store.Namespace {
	if h, ok := s.(interface{ Namespace() store.Namespace }); ok && h.Namespace().Group() != "" {
		return h.Namespace()
	}
	return ""
}

// add keeps by which source skills of a label are known, and lets through what the
// settings of its group do.
func (b *base) add(ctx context.Context, s catalog.Source, in store.Namespace) (catalog.Source, error) {
	if known, ok := s.(library.SkillIdentifier); ok {
		b.ids[s.Origin()] = known
	}
	if in == "" {
		return s, nil
	}
	g := &gated{Source: s}
	g.set(catalog.Filter{Disabled: true})
	err := b.follow(ctx, []store.Namespace{in}, func(f catalog.Filter) {
		g.set(f)
		b.again()
	})
	return g, err
}

// gated is a source as far as settings let its skills through.
type gated struct {
	catalog.Source
	hides atomic.Pointer[func(*catalog.Entry) string]
}

// set changes what is let through. A pattern that cannot be read lets nothing through.
func (g *gated) set(f catalog.Filter) {
	hides, err := f.Matcher()
	if err != nil {
		hides = func(*catalog.Entry) string { return err.Error() }
	}
	g.hides.Store(&hides)
}

// List returns what is let through.
func (g *gated) List(ctx context.Context) (catalog.Listing, error) {
	l, err := g.Source.List(ctx)
	hides := *g.hides.Load()
	l.Entries = slices.DeleteFunc(l.Entries, func(e *catalog.Entry) bool { return hides(e) != "" })
	return l, err
}

// Open opens a skill that is let through.
func (g *gated) Open(ctx context.Context, e *catalog.Entry) (*skill.Bundle, error) {
	if why := (*g.hides.Load())(e); why != "" {
		return nil, &catalog.NotFoundError{Ref: e.Name, Reason: why}
	}
	return g.Source.Open(ctx, e)
}

// Watch watches the source.
func (g *gated) Watch(ctx context.Context, changed func()) error {
	if w, ok := g.Source.(catalog.Watcher); ok {
		return w.Watch(ctx, changed)
	}
	return fmt.Errorf("%s cannot be watched", g.Origin())
}

// constant is a source that never changes, for any number of catalogs.
type constant struct {
	catalog.Source
	list func() (catalog.Listing, error)
}

// newBundled are the skills that come with the program.
func newBundled() *constant {
	s := catalog.NewFS("bundled", catalog.Bundled, bundled.FS())
	return &constant{s, sync.OnceValues(func() (catalog.Listing, error) { return s.List(context.Background()) })}
}

// List returns what there is.
func (c *constant) List(context.Context) (catalog.Listing, error) {
	l, err := c.list()
	return catalog.Listing{Entries: slices.Clone(l.Entries), Problems: slices.Clone(l.Problems)}, err
}

// Watch waits for the end.
func (c *constant) Watch(ctx context.Context, _ func()) error {
	<-ctx.Done()
	return nil
}

// digests are those of its skills.
func (c *constant) digests(ctx context.Context) (map[string]bool, error) {
	l, err := c.list()
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for _, e := range l.Entries {
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
