package library

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/skill"
)

// Sources returns catalog sources with the skills that a principal can use by
// name: its own, each of its groups', the public ones, and those of the operator's
// directories. They omit hidden and bundled skills, and ignore the preload setting in
// SKILL.md; see [Library.DefaultSkills].
//
// A source reads the database at each call, but uses the principal's rights at the
// time of the call to Sources. Create new sources when the rights change. Watching
// a source requires a running [Library.Run].
func (l *Library) Sources(ctx context.Context, p account.Principal) ([]catalog.Source, error) {
	in, err := namespaces(p, account.SkillUse)
	if err != nil {
		return nil, err
	}
	var out []catalog.Source
	for _, n := range in {
		s := &namespaceSource{l: l, in: n}
		switch {
		case n == store.Bundled:
			continue // every catalog has a source for them
		case n.IsShared():
			s.scope, s.origin = catalog.Public, string(n)
		case n.User() != "":
			s.scope, s.origin = catalog.User, "user"
		default:
			s.scope = catalog.Group
			if s.origin, err = l.groupOrigin(ctx, n.Group()); isNotFound(err) {
				continue // the group was deleted
			}
		}
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// groupOrigin returns the label of a group's source: the group's name if it is a
// valid label, otherwise its ID.
func (l *Library) groupOrigin(ctx context.Context, id string) (string, error) {
	g, err := l.db.Groups.Get(ctx, id)
	if err != nil {
		return "", err
	}
	if isLabel(g.Name) {
		return "group." + g.Name, nil
	}
	return "group-id." + id, nil
}

func isLabel(name string) bool {
	return name != "" && len(name) <= 64 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789.-") == ""
}

// namespaceSource is a catalog source with the skills that a namespace lists.
type namespaceSource struct {
	l      *Library
	in     Namespace
	origin string
	scope  catalog.Scope
	at     atomic.Int64 // database revision before the last listing
}

var _ catalog.Watcher = (*namespaceSource)(nil)

func (s *namespaceSource) Origin() string       { return s.origin }
func (s *namespaceSource) Scope() catalog.Scope { return s.scope }

// ListsVersions returns true, because each version of a skill has its own
// entry; see [catalog.Catalog.Digest].
func (s *namespaceSource) ListsVersions() bool { return true }

func (s *namespaceSource) List(ctx context.Context) (catalog.Listing, error) {
	if err := s.l.index.refresh(ctx); err != nil {
		return catalog.Listing{}, fmt.Errorf("list skills of %s: %w", s.origin, err)
	}
	s.at.Store(s.l.index.currentRevision())
	return catalog.Listing{Layer: s.l.index.list(s.in, s.origin, s.scope)}, nil
}

func (s *namespaceSource) Open(ctx context.Context, e *catalog.Entry) (*skill.Bundle, error) {
	k, err := s.l.index.find(ctx, []Namespace{s.in}, e.Name, func(k *indexedSkill) bool { return !k.withheld })
	if err != nil {
		return nil, err
	}
	if k == nil {
		return nil, notExist(s.origin, e.Name)
	}
	t := s.l.trees.get(k.digest)
	if t == nil {
		v, err := s.l.db.Versions.GetByDigest(ctx, k.id, k.digest)
		if isNotFound(err) {
			return nil, notExist(s.origin, e.Name)
		}
		if err == nil {
			t, err = s.l.tree(ctx, v)
		}
		if err != nil {
			return nil, err
		}
	}
	return s.l.treeBundle(context.WithoutCancel(ctx), k.entry.Name, t), nil
}

// notExist returns the [fs.ErrNotExist] error for a deleted skill.
func notExist(origin, name string) error {
	return fmt.Errorf("open skill %q of %s: %w", name, origin, fs.ErrNotExist)
}

// openVersion opens a version. The bundle remains usable after ctx is done, because
// it may outlive the request. Each read has its own timeout.
func (l *Library) openVersion(ctx context.Context, name string, v store.Version) (*skill.Bundle, error) {
	return l.bundle(context.WithoutCancel(ctx), name, v)
}

func (s *namespaceSource) Watch(ctx context.Context, changed func()) error {
	s.l.index.watch(ctx, s.at.Load(), false, func(k *indexedSkill) bool { return slices.Contains(k.listings, s.in) }, changed)
	return nil
}

// MaxBound is the maximum number of references for [Library.BoundSource].
const MaxBound = store.MaxRefs

// BoundSource returns a source with the skills that an agent references. It
// includes hidden skills and pinned versions. Each listing resolves the references
// again and reports unresolved ones as problems. The skills have the user scope;
// put the source before those of [Library.Sources] in a catalog. origin is the
// label of the source.
func (l *Library) BoundSource(p account.Principal, origin string, refs []Ref) (catalog.Source, error) {
	if len(refs) > MaxBound {
		return nil, fmt.Errorf("%w: too many references (%d, limit %d)", ErrInvalid, len(refs), MaxBound)
	}
	return &boundSource{l: l, p: p, origin: origin, refs: slices.Clone(refs), known: map[boundKey]*catalog.Entry{}}, nil
}

type boundSource struct {
	l      *Library
	p      account.Principal
	origin string
	refs   []Ref
	at     atomic.Int64 // database revision before the last listing

	mu    sync.Mutex
	known map[boundKey]*catalog.Entry // entries in the last listing
	opens map[*catalog.Entry]boundKey
}

type boundKey struct{ id, digest, name string }

var _ catalog.Watcher = (*boundSource)(nil)

func (s *boundSource) Origin() string       { return s.origin }
func (s *boundSource) Scope() catalog.Scope { return catalog.User }
func (s *boundSource) ListsVersions() bool  { return true }

func (s *boundSource) List(ctx context.Context) (catalog.Listing, error) {
	var out catalog.Listing
	known, opens, names := map[boundKey]*catalog.Entry{}, map[*catalog.Entry]boundKey{}, map[string]bool{}
	s.mu.Lock()
	old := s.known
	s.mu.Unlock()
	s.at.Store(s.l.index.currentRevision())
	for _, r := range s.refs {
		found, err := s.l.Resolve(ctx, s.p, r)
		switch {
		case isNotFound(err), account.IsDenied(err), isReviewError(err), errors.Is(err, ErrConflict):
			out.Problems = append(out.Problems, s.problem(r, err))
			continue
		case err != nil:
			return catalog.Listing{}, err
		case names[found.Skill.Name]:
			continue // use only the first of several equal references
		}
		names[found.Skill.Name] = true
		key := boundKey{found.Skill.ID, found.Version.Digest, found.Skill.Name}
		e := old[key]
		if e == nil {
			if e, err = s.l.boundEntry(ctx, key, s.origin); err != nil {
				return catalog.Listing{}, err
			}
		}
		known[key], opens[e] = e, key
		out.Entries = append(out.Entries, e)
	}
	s.mu.Lock()
	s.known, s.opens = known, opens
	s.mu.Unlock()
	return out, nil
}

func (s *boundSource) problem(r Ref, err error) catalog.Problem {
	name := printable.OneLine(r.Name)
	if name == "" {
		name = printable.OneLine(r.ID)
	}
	return catalog.Problem{Path: s.origin + "/" + name, Origin: s.origin, Diagnostic: skill.Diagnostic{
		Severity: skill.Warning, Code: "reference", Message: "unresolved skill reference: " + err.Error(),
		Fix: "name an existing skill, or publish it where it is used",
	}}
}

// boundEntry returns the catalog entry for a bound version.
func (l *Library) boundEntry(ctx context.Context, k boundKey, origin string) (*catalog.Entry, error) {
	v, err := l.db.Versions.GetByDigest(ctx, k.id, k.digest)
	if err != nil {
		return nil, err
	}
	m := readMeta(v.Meta)
	return locateEntry(m.catalogEntry(k.name, v.Display, v.Description, v.Label, v.Tags), origin, catalog.User), nil
}

func (s *boundSource) Open(ctx context.Context, e *catalog.Entry) (*skill.Bundle, error) {
	s.mu.Lock()
	key, ok := s.opens[e]
	s.mu.Unlock()
	if !ok {
		return nil, notExist(s.origin, e.Name)
	}
	// Check the rights and the review again, but open the version that was listed.
	h, err := s.l.authorizeBound(ctx, s.p, account.SkillUse, key.id)
	var v store.Version
	if err == nil {
		v, err = s.l.getVersionFor(ctx, s.p, h, key.digest)
	}
	if isNotFound(err) {
		return nil, notExist(s.origin, e.Name)
	}
	if err != nil {
		return nil, err
	}
	return s.l.openVersion(ctx, key.name, v)
}

func (s *boundSource) Watch(ctx context.Context, changed func()) error {
	ids, names := map[string]bool{}, map[string]bool{}
	for _, r := range s.refs {
		if r.ID != "" {
			ids[r.ID] = true
		} else {
			names[r.Name] = true
		}
	}
	s.l.index.watch(ctx, s.at.Load(), true, func(k *indexedSkill) bool { return ids[k.id] || names[k.entry.Name] }, changed)
	return nil
}
