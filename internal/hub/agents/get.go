package agents

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/plainjson"
	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/skill"
)

// Resource is a document stored on the hub.
type Resource struct {
	Document
	ID         string
	In         store.Namespace
	Generation int64
	CreatedBy  string
	ChangedBy  string // user who made the last change
	// ServersBy is the user who last changed the resource's servers and therefore
	// cannot review them.
	ServersBy string
	Created   time.Time
	Updated   time.Time
	// Can lists what the principal may do with it, apart from reading. Only
	// [Registry.Get] sets it.
	Can []account.Action
}

// Get returns the resource with the given kind, namespace and name. The namespace
// is in the syntax of [Registry.ResolveNamespace].
func (r *Registry) Get(ctx context.Context, p account.Principal, kind, namespace, name string) (*Resource, error) {
	a := r.newActor(p)
	k, err := a.getKind(ctx, account.KindRead, kind, namespace, name)
	if err != nil {
		return nil, err
	}
	res, err := a.decodeResource(ctx, k)
	if err != nil {
		return nil, err
	}
	for _, action := range []account.Action{account.KindUse, applyAction(kind), account.KindDelete} {
		if account.Can(p, action, accountResource(k.Namespace, k.CreatedBy)) {
			res.Can = append(res.Can, action)
		}
	}
	return res, nil
}

// getKind returns a stored resource if the actor may perform the action on it.
func (a actor) getKind(ctx context.Context, action account.Action, kind, namespace, name string) (store.Kind, error) {
	in, err := a.resolveNamespace(ctx, namespace)
	if err != nil {
		return store.Kind{}, err
	}
	k, err := a.Kinds.ByName(ctx, kind, in, name)
	if err == nil {
		err = a.checkAccess(action, accountResource(k.Namespace, k.CreatedBy), kind, name)
	}
	return k, err
}

func (a actor) decodeResource(ctx context.Context, k store.Kind) (*Resource, error) {
	kept, err := decodeRecord(k)
	if err != nil {
		return nil, err
	}
	spec, err := decodeSpec(k.Kind, kept.Spec)
	if err != nil {
		return nil, fmt.Errorf("decode %s %q: %w: %w", k.Kind, k.Name, store.ErrCorrupt, err)
	}
	in, err := a.formatNamespace(ctx, k.Namespace)
	if err != nil {
		return nil, err
	}
	return &Resource{
		Document: Document{APIVersion: APIVersion, Kind: k.Kind, Namespace: in, Name: k.Name, Description: kept.Description, Spec: spec},
		ID:       k.ID, In: k.Namespace, Generation: k.Generation, CreatedBy: k.CreatedBy, ChangedBy: kept.By, ServersBy: kept.ServersBy, Created: k.Created, Updated: k.Updated,
	}, nil
}

// List returns the visible resources of a kind sorted by name, and the cursor of
// the next page. It lists one namespace, in the syntax of
// [Registry.ResolveNamespace], or all of them if namespace is "". A damaged
// resource has a finding instead of a spec.
func (r *Registry) List(ctx context.Context, p account.Principal, kind, namespace string, page store.Page) ([]*Resource, string, error) {
	a := r.newActor(p)
	if err := account.Check(p, account.KindRead, account.Resource{Shared: true}); err != nil {
		return nil, "", err
	}
	in := a.visibleNamespaces()
	if namespace != "" {
		one, err := a.resolveNamespace(ctx, namespace)
		if err != nil {
			return nil, "", err
		}
		in = []store.Namespace{one}
	}
	found, next, err := a.Kinds.List(ctx, kind, in, page)
	if err != nil {
		return nil, "", err
	}
	var out []*Resource
	for _, k := range found {
		if err := a.checkAccess(account.KindRead, accountResource(k.Namespace, k.CreatedBy), kind, k.Name); err != nil {
			return nil, "", err
		}
		one, err := a.decodeResource(ctx, k)
		if errors.Is(err, store.ErrCorrupt) {
			one, err = damagedResource(k, err), nil
		}
		if err != nil {
			return nil, "", err
		}
		out = append(out, one)
	}
	return out, next, nil
}

// damagedResource returns a resource without a spec and with a finding that
// explains why it cannot be decoded.
func damagedResource(k store.Kind, why error) *Resource {
	return &Resource{
		Document: Document{APIVersion: APIVersion, Kind: k.Kind, Namespace: string(k.Namespace), Name: k.Name, Findings: skill.Diagnostics{
			{Severity: skill.Error, Code: "document-damaged", Message: printable.OneLine(why.Error()), Fix: "apply the document again, or delete it"}}},
		ID: k.ID, In: k.Namespace, Generation: k.Generation, CreatedBy: k.CreatedBy, Created: k.Created, Updated: k.Updated,
	}
}

// Referrers returns the visible resources that refer to a resource, and the number
// of referrers that the principal is not allowed to see.
func (r *Registry) Referrers(ctx context.Context, p account.Principal, kind, namespace, name string) ([]Referrer, int, error) {
	a := r.newActor(p)
	k, err := a.getKind(ctx, account.KindRead, kind, namespace, name)
	if err != nil {
		return nil, 0, err
	}
	return a.findReferrers(ctx, k)
}

// findReferrers returns the resources whose references resolve to k. It ignores
// references that resolve to another resource with the same name.
func (a actor) findReferrers(ctx context.Context, k store.Kind) (by []Referrer, hidden int, err error) {
	refs, err := a.Refs.ListTo(ctx, k.Kind, k.ID, k.Name, store.MaxPage)
	if err != nil {
		return nil, 0, err
	}
	for _, ref := range refs {
		from, err := a.Kinds.Get(ctx, ref.FromID)
		if errors.Is(err, store.ErrNotFound) {
			continue // not a resource
		}
		if err != nil {
			return nil, 0, err
		}
		means, err := a.refersTo(ctx, from, ref, k)
		if err != nil {
			return nil, 0, err
		}
		switch in, err := a.formatNamespace(ctx, from.Namespace); {
		case err != nil:
			return nil, 0, err
		case !means:
		case account.Can(a.p, account.KindRead, accountResource(from.Namespace, from.CreatedBy)):
			by = append(by, Referrer{Kind: from.Kind, ID: from.ID, Namespace: in, Name: from.Name, Slot: ref.Slot})
		default:
			hidden++
		}
	}
	return by, hidden, nil
}

// refersTo reports whether ref, a reference in the resource source, resolves to
// target.
func (a actor) refersTo(ctx context.Context, source store.Kind, ref store.Reference, target store.Kind) (bool, error) {
	if ref.ToNamespace != "" {
		return ref.ToNamespace == target.Namespace, nil
	}
	owner := actor{Tables: a.Tables, p: account.Principal{User: account.UserID(source.Namespace.User())}}
	if source.Namespace.User() != "" {
		groups, err := a.Groups.ListMemberships(ctx, source.Namespace.User())
		if err != nil {
			return false, err
		}
		owner.p.Groups = map[account.GroupID]account.Role{}
		for _, m := range groups {
			owner.p.Groups[account.GroupID(m.GroupID)] = account.Reporter
		}
	}
	in := owner.lookupNamespaces(source.Namespace)
	if source.Namespace.User() == "" {
		in = slices.DeleteFunc(in, func(n store.Namespace) bool { return n.User() != "" })
	}
	found, err := a.Kinds.Find(ctx, target.Kind, ref.ToName, in)
	return len(found) > 0 && found[0].ID == target.ID, err
}

// recordDenied writes an audit record if err is a denial, and returns err.
func (r *Registry) recordDenied(ctx context.Context, p account.Principal, action account.Action, subject string, err error) error {
	if _, ok := errors.AsType[*account.DeniedError](err); !ok || p.Anonymous() {
		return err
	}
	return errors.Join(err, r.newActor(p).appendAudit(ctx, action, "", subject, "denied", nil))
}

// UnbindSkill removes a skill from the selection of a Ghost or Bot and deletes the
// references within tx. It neither checks permissions nor writes an audit record,
// because the library does both. It returns [store.ErrNotFound] if the resource
// does not select the skill.
func (r *Registry) UnbindSkill(ctx context.Context, tx *store.Tx, k store.Kind, skillID, name string) error {
	kept, err := decodeRecord(k)
	if err != nil {
		return err
	}
	spec, err := decodeSpec(k.Kind, kept.Spec)
	if err != nil {
		return fmt.Errorf("decode %s %q: %w: %w", k.Kind, k.Name, store.ErrCorrupt, err)
	}
	have := findSelection(spec)
	if have == nil || !have.removeSkill(skillID, name) {
		return fmt.Errorf("%s %q: skill %q: %w", k.Kind, k.Name, name, store.ErrNotFound)
	}
	if kept.Spec, err = plainjson.Line(spec); err != nil {
		return err
	}
	raw, err := plainjson.Line(kept)
	if err != nil {
		return err
	}
	_, err = tx.Kinds.Update(ctx, k.ID, k.Generation, raw)
	return err
}

// removeSkill removes a skill and reports whether it was selected.
func (s *Selection) removeSkill(id, name string) bool {
	if ref := s.SkillRefs[name]; ref.ID != "" && ref.ID != id {
		return false
	}
	before := len(s.Skills)
	is := func(one string) bool { return one == name }
	s.Skills, s.Preload = slices.DeleteFunc(s.Skills, is), slices.DeleteFunc(s.Preload, is)
	delete(s.SkillRefs, name)
	return len(s.Skills) < before
}

func isCorrupt(err error) bool { return errors.Is(err, store.ErrCorrupt) }
