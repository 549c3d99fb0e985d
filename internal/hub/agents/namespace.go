package agents

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// actor performs database operations for a principal, either directly or within a
// transaction.
type actor struct {
	store.Tables
	p     account.Principal
	trial trialDocuments // replace the saved documents of their names; may be nil
}

func (r *Registry) newActor(p account.Principal) actor { return actor{Tables: r.db.Tables, p: p} }

// withReadScope returns a copy of the actor with the read scope. A token that may
// perform an action on a resource may also read that resource.
func (a actor) withReadScope() actor {
	a.p.Scopes |= account.ScopeRead
	return a
}

// requireSignIn returns an error for anonymous principals.
func (a actor) requireSignIn(action account.Action) error {
	if a.p.Anonymous() {
		return account.Check(a.p, action, account.Resource{})
	}
	return nil
}

// ResolveNamespace converts a namespace name to a namespace. "" and default mean
// the principal's own namespace; public, hub and bundled mean namespaces that
// everyone can see; any other name means a group. It also accepts user:ID and
// group:ID. It returns [store.ErrNotFound] for a group that the principal is not a
// member of, unless the principal is an administrator.
func (r *Registry) ResolveNamespace(ctx context.Context, p account.Principal, name string) (store.Namespace, error) {
	return r.newActor(p).resolveNamespace(ctx, name)
}

func (a actor) resolveNamespace(ctx context.Context, name string) (store.Namespace, error) {
	if err := a.requireSignIn(account.KindRead); err != nil {
		return "", err
	}
	switch in := store.Namespace(name); {
	case name == "" || name == "default":
		return store.UserNamespace(string(a.p.User)), nil
	case in.IsShared():
		return in, nil
	case in.User() != "" || in.Group() != "":
		if a.p.Admin || slices.Contains(a.visibleNamespaces(), in) {
			return in, nil
		}
	default:
		g, err := a.Groups.ByName(ctx, name)
		if err == nil && (a.p.Admin || a.p.Groups[account.GroupID(g.ID)] > account.Outsider) {
			return store.GroupNamespace(g.ID), nil
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return "", err
		}
	}
	return "", fmt.Errorf("namespace %.100q: %w", name, store.ErrNotFound)
}

// FormatNamespace returns the name that documents use for a namespace. It is the
// inverse of [Registry.ResolveNamespace].
func (r *Registry) FormatNamespace(ctx context.Context, p account.Principal, in store.Namespace) (string, error) {
	return r.newActor(p).formatNamespace(ctx, in)
}

func (a actor) formatNamespace(ctx context.Context, in store.Namespace) (string, error) {
	switch {
	case in == store.UserNamespace(string(a.p.User)):
		return "", nil
	case in.Group() == "":
		return string(in), nil
	}
	g, err := a.Groups.Get(ctx, in.Group())
	if err != nil || nameProblem(g.Name) != "" || g.Name == "default" || store.Namespace(g.Name).IsShared() || strings.Contains(g.Name, ":") {
		return string(in), ignoreNotFound(err) // the group was deleted
	}
	return g.Name, nil
}

// visibleNamespaces returns the namespaces in which names are resolved for the
// actor, in order of precedence: the actor's own namespace, the namespaces of
// its groups, the public one, and the operator's.
func (a actor) visibleNamespaces() []store.Namespace {
	out := []store.Namespace{store.UserNamespace(string(a.p.User))}
	for _, id := range sortedIDs(a.p.Groups) {
		if a.p.Groups[id] > account.Outsider && len(out) < store.MaxNamespaces-2 {
			out = append(out, store.GroupNamespace(string(id)))
		}
	}
	return append(out, store.Public, store.Operator)
}

func sortedIDs(groups map[account.GroupID]account.Role) []account.GroupID {
	var out []account.GroupID
	for id := range groups {
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}

// lookupNamespaces returns the namespaces in which a document in home resolves
// unqualified names. For a user's document, these are all of the user's
// namespaces. For a group's document, these are only the group and the public
// namespace, so that all members get the same result.
func (a actor) lookupNamespaces(home store.Namespace) []store.Namespace {
	switch {
	case home == store.UserNamespace(string(a.p.User)):
		return a.visibleNamespaces()
	case home == store.Public:
		return []store.Namespace{home}
	}
	return []store.Namespace{home, store.Public}
}

// accountResource returns the resource for authorizing access to a document.
func accountResource(in store.Namespace, author string) account.Resource {
	switch {
	case in.IsShared():
		return account.Resource{Shared: true, ReadOnly: in.IsReadOnly()}
	case in.Group() != "":
		return account.OwnedByGroup(account.GroupID(in.Group()), account.UserID(author))
	}
	return account.OwnedBy(account.UserID(in.User()))
}

// checkAccess returns an error if the actor is not allowed to perform an action on
// a resource. The error is [store.ErrNotFound] if the actor must not see the
// resource.
func (a actor) checkAccess(action account.Action, r account.Resource, kind, name string) error {
	err := account.Check(a.p, action, r)
	if denied, ok := errors.AsType[*account.DeniedError](err); ok && denied.Hidden {
		return fmt.Errorf("%s %q: %w", kind, name, store.ErrNotFound)
	}
	if err != nil {
		return fmt.Errorf("%s %q: %w", kind, name, err)
	}
	return nil
}

// findKind resolves a reference in a document to a resource that the actor may
// use.
func (a actor) findKind(ctx context.Context, action account.Action, home store.Namespace, kind string, ref Ref) (store.Kind, error) {
	in, err := a.refNamespaces(ctx, home, ref.Namespace)
	if err != nil {
		return store.Kind{}, err
	}
	found, err := a.Kinds.Find(ctx, kind, ref.Name, in)
	if err != nil {
		return store.Kind{}, err
	}
	for _, k := range a.trial.replace(found, kind, ref.Name, in) {
		if account.Can(a.p, action, accountResource(k.Namespace, k.CreatedBy)) {
			return k, nil
		}
	}
	return store.Kind{}, fmt.Errorf("%s %q: %w", kind, ref, store.ErrNotFound)
}

// refNamespaces returns the namespaces in which a document in home resolves a
// reference. "default" means the same as no namespace, because a group's
// documents must not depend on the user.
func (a actor) refNamespaces(ctx context.Context, home store.Namespace, namespace string) ([]store.Namespace, error) {
	if namespace == "" || namespace == "default" {
		return a.lookupNamespaces(home), nil
	}
	in, err := a.resolveNamespace(ctx, namespace)
	return []store.Namespace{in}, err
}

// findSkill resolves a skill name in a document, trying the namespaces in order
// of precedence. bound reports whether the document already refers to the skill
// with the given ID; findSkill finds such a skill even if it is hidden.
func (a actor) findSkill(ctx context.Context, action account.Action, home store.Namespace, name string, ref SkillRef, bound func(id string) bool) (*store.Skill, error) {
	if ref.ID != "" {
		return a.getSkillByID(ctx, action, name, ref, bound)
	}
	in := a.visibleNamespaces()
	if home.Group() != "" || home == store.Public { // prefer the document's own group
		in = slices.DeleteFunc(in, func(n store.Namespace) bool { return n == home })
		in = slices.Insert(in, 1, home)[:min(len(in)+1, store.MaxNamespaces)]
	}
	switch {
	case ref.Public:
		in = []store.Namespace{store.Public}
	case ref.Namespace != "":
		one, err := a.resolveNamespace(ctx, ref.Namespace)
		if err != nil {
			return nil, err
		}
		in = []store.Namespace{one}
	}
	found, err := a.Skills.Find(ctx, name, in)
	if err != nil {
		return nil, err
	}
	for _, c := range found {
		if account.Can(a.p, action, listedResource(c.Skill, c.ListedIn, bound(c.ID))) {
			return &c.Skill, a.checkVersion(ctx, c.Skill, ref.Digest)
		}
	}
	return nil, fmt.Errorf("skill %q: %w", name, store.ErrNotFound)
}

// getSkillByID returns the skill with the ID in ref if the actor may use it.
func (a actor) getSkillByID(ctx context.Context, action account.Action, name string, ref SkillRef, bound func(id string) bool) (*store.Skill, error) {
	s, err := a.Skills.Get(ctx, ref.ID)
	if err != nil {
		return nil, fmt.Errorf("skill %q: %w", name, err)
	}
	listings, err := a.Skills.Listings(ctx, ref.ID)
	if err != nil {
		return nil, err
	}
	for _, l := range listings {
		if !account.Can(a.p, action, listedResource(s, l.Namespace, bound(s.ID))) {
			continue
		}
		if s.Name != name {
			return nil, fmt.Errorf("skill %q: %w: ID belongs to skill %q", name, store.ErrConflict, s.Name)
		}
		return &s, a.checkVersion(ctx, s, ref.Digest)
	}
	return nil, fmt.Errorf("skill %q: %w", name, store.ErrNotFound)
}

// checkVersion returns an error if no version of the skill has the given digest.
func (a actor) checkVersion(ctx context.Context, s store.Skill, digest string) error {
	if digest == "" || digest == s.Digest {
		return nil
	}
	_, err := a.Versions.GetByDigest(ctx, s.ID, digest)
	return err
}

// listedResource returns the resource for authorizing access to a skill through a
// namespace that lists it.
func listedResource(s store.Skill, in store.Namespace, bound bool) account.Resource {
	r := accountResource(s.Namespace, s.CreatedBy)
	switch {
	case in.IsShared():
		r.Shared = true
	case in != s.Namespace:
		r = accountResource(in, s.CreatedBy)
	}
	r.Hidden = s.Hidden && !bound
	return r
}

// ignoreNotFound returns nil if err is [store.ErrNotFound], otherwise err.
func ignoreNotFound(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}
