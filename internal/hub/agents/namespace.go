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

// actor is somebody at work on what is kept: all that is looked up for him, and
// whether he may, is here.
type actor struct {
	store.Tables
	p account.Principal
}

func (r *Registry) newActor(p account.Principal) actor { return actor{r.db.Tables, p} }

// withReadScope is the actor where he looks for what he is about to decide on: that needs no
// leave for the way in but that for the decision.
func (a actor) withReadScope() actor {
	a.p.Scopes |= account.ScopeRead
	return a
}

// requireSignIn fails for somebody who is not.
func (a actor) requireSignIn(action account.Action) error {
	if a.p.Anonymous() {
		return account.Check(a.p, action, account.Resource{})
	}
	return nil
}

// ResolveNamespace is what somebody means by the name of a namespace: "" and default are his
// own, public is everybody's, then there are the names of groups, and user:ID and
// group:ID as the store has them. A group that he is not in is [store.ErrNotFound],
// unless he is an admin.
func (r *Registry) ResolveNamespace(ctx context.Context, p account.Principal, written string) (store.Namespace, error) {
	return r.newActor(p).resolveNamespace(ctx, written)
}

func (a actor) resolveNamespace(ctx context.Context, written string) (store.Namespace, error) {
	if err := a.requireSignIn(account.KindRead); err != nil {
		return "", err
	}
	switch in := store.Namespace(written); {
	case written == "" || written == "default":
		return store.UserNamespace(string(a.p.User)), nil
	case in == store.Public:
		return in, nil
	case in.User() != "" || in.Group() != "":
		if a.p.Admin || slices.Contains(a.visibleNamespaces(), in) {
			return in, nil
		}
	default:
		g, err := a.Groups.ByName(ctx, written)
		if err == nil && (a.p.Admin || a.p.Groups[account.GroupID(g.ID)] > account.Outsider) {
			return store.GroupNamespace(g.ID), nil
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return "", err
		}
	}
	return "", fmt.Errorf("namespace %.100q: %w", written, store.ErrNotFound)
}

// FormatNamespace is how documents of somebody write a namespace: the contrary of
// [Registry.ResolveNamespace].
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
	if err != nil || nameProblem(g.Name) != "" || slices.Contains([]string{"default", string(store.Public)}, g.Name) || strings.Contains(g.Name, ":") {
		return string(in), ignoreNotFound(err) // its id is as good
	}
	return g.Name, nil
}

// visibleNamespaces are the namespaces that somebody sees, the nearest first: his own, those of
// his groups, and that of everybody.
func (a actor) visibleNamespaces() []store.Namespace {
	out := []store.Namespace{store.UserNamespace(string(a.p.User))}
	for _, id := range sortedIDs(a.p.Groups) {
		if a.p.Groups[id] > account.Outsider && len(out) < store.MaxNamespaces-1 {
			out = append(out, store.GroupNamespace(string(id)))
		}
	}
	return append(out, store.Public)
}

func sortedIDs(groups map[account.GroupID]account.Role) []account.GroupID {
	var out []account.GroupID
	for id := range groups {
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}

// lookupNamespaces is where a thing of a namespace finds what it names without saying where: a
// person's among all that he sees, a group's in the group and with everybody, so that
// it is the same for all of its members.
func (a actor) lookupNamespaces(home store.Namespace) []store.Namespace {
	switch {
	case home == store.UserNamespace(string(a.p.User)):
		return a.visibleNamespaces()
	case home == store.Public:
		return []store.Namespace{home}
	}
	return []store.Namespace{home, store.Public}
}

// resourceOf is a thing of a namespace, made by somebody, as account knows it.
func resourceOf(in store.Namespace, author string) account.Resource {
	switch {
	case in == store.Public:
		return account.Resource{Shared: true}
	case in.Group() != "":
		return account.OwnedByGroup(account.GroupID(in.Group()), account.UserID(author))
	}
	return account.OwnedBy(account.UserID(in.User()))
}

// checkAccess is whether somebody may do something with a thing. What he may not know of is
// not found.
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

// findKind looks for what a thing of a namespace names, and that may be used for an action.
func (a actor) findKind(ctx context.Context, action account.Action, home store.Namespace, kind string, ref Ref) (store.Kind, error) {
	in, err := a.refNamespaces(ctx, home, ref.Namespace)
	if err != nil {
		return store.Kind{}, err
	}
	found, err := a.Kinds.Find(ctx, kind, ref.Name, in)
	if err != nil {
		return store.Kind{}, err
	}
	for _, k := range found {
		if account.Can(a.p, action, resourceOf(k.Namespace, k.CreatedBy)) {
			return k, nil
		}
	}
	return store.Kind{}, fmt.Errorf("%s %q: %w", kind, ref, store.ErrNotFound)
}

// refNamespaces are the namespaces in which a reference is looked for. In what is a group's,
// default is no person's.
func (a actor) refNamespaces(ctx context.Context, home store.Namespace, written string) ([]store.Namespace, error) {
	if written == "" || written == "default" {
		return a.lookupNamespaces(home), nil
	}
	in, err := a.resolveNamespace(ctx, written)
	return []store.Namespace{in}, err
}

// findSkill looks for a skill that a thing of a namespace names, the nearest first,
// that may be used for an action. bound reports whether it names a skill
// already, by id: those may be hidden by now.
func (a actor) findSkill(ctx context.Context, action account.Action, home store.Namespace, name string, ref SkillRef, bound func(id string) bool) (*store.Skill, error) {
	if ref.ID != "" {
		return a.getSkillByID(ctx, action, name, ref, bound)
	}
	in := a.visibleNamespaces()
	if home.Group() != "" || home == store.Public { // a group's own come before those of other groups
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

// getSkillByID looks for a skill that is named precisely.
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
			return nil, fmt.Errorf("skill %q: %w: that id is of the skill %q", name, store.ErrConflict, s.Name)
		}
		return &s, a.checkVersion(ctx, s, ref.Digest)
	}
	return nil, fmt.Errorf("skill %q: %w", name, store.ErrNotFound)
}

// checkVersion fails where a skill has no version of a digest that is asked for.
func (a actor) checkVersion(ctx context.Context, s store.Skill, digest string) error {
	if digest == "" || digest == s.Digest {
		return nil
	}
	_, err := a.Versions.GetByDigest(ctx, s.ID, digest)
	return err
}

// listedResource is a skill as it is seen in a namespace in which it is listed.
func listedResource(s store.Skill, in store.Namespace, bound bool) account.Resource {
	r := resourceOf(s.Namespace, s.CreatedBy)
	switch {
	case in == store.Public:
		r.Shared = true
	case in != s.Namespace:
		r = resourceOf(in, s.CreatedBy)
	}
	r.Hidden = s.Hidden && !bound
	return r
}

// ignoreNotFound is err, unless it says that something is not there.
func ignoreNotFound(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}
