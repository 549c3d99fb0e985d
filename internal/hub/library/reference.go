package library

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// Values of [Reference.Kind], in addition to resource kinds such as Ghost.
const (
	DefaultReference = "Default" // users of a namespace have the skill by default
	ListingReference = "Listing" // the skill is published to a namespace
	SkillReference   = store.SkillKind
)

// Reference describes the use of a skill by a resource, a skill or a namespace.
type Reference struct {
	Kind      string    `json:"kind" doc:"Ghost, Bot or Team; Skill for a dependent skill; Default; or Listing for a namespace that lists it"`
	ID        string    `json:"id" doc:"ID of the resource or skill; for defaults and listings, the namespace"`
	Name      string    `json:"name,omitempty"`
	Namespace Namespace `json:"namespace" doc:"Owner"`
	Slot      string    `json:"slot,omitempty" doc:"Field with the reference"`
	Precise   bool      `json:"precise" doc:"Whether it refers to the ID of the skill, not to its name"`
	Digest    string    `json:"content_hash,omitempty" doc:"Digest of the referenced version"`
}

func (r Reference) String() string {
	if r.Name == "" {
		return fmt.Sprintf("%s of %s", r.Kind, r.Namespace)
	}
	return fmt.Sprintf("%s %q of %s", r.Kind, r.Name, r.Namespace)
}

// isRemovable reports whether the reference can be removed. A dependency cannot,
// because it is part of a skill's files.
func (r Reference) isRemovable() bool { return r.Kind != SkillReference }

// References lists the references to a skill.
type References struct {
	Visible []Reference `json:"seen" nullable:"false"`
	Hidden  int         `json:"others" doc:"Number of others that you may not see"`
	More    bool        `json:"more" doc:"Whether there are more than were counted"`

	all      []Reference
	moreByID bool // whether more references by ID exist than were read
}

// Total returns the number of references, including those that are not visible.
func (r *References) Total() int { return len(r.all) }

func (r *References) summarize() string {
	var parts []string
	if r.Total() == 0 {
		parts = append(parts, "too many references to list")
	}
	const shown = 5
	for _, s := range r.Visible[:min(len(r.Visible), shown)] {
		parts = append(parts, s.String())
	}
	if n := len(r.Visible) - shown; n > 0 {
		parts = append(parts, fmt.Sprintf("%d more", n))
	}
	if r.Hidden > 0 {
		parts = append(parts, fmt.Sprintf("%d hidden", r.Hidden))
	}
	return strings.Join(parts, ", ")
}

func (r *References) containsRemovable() bool {
	return slices.ContainsFunc(r.all, Reference.isRemovable)
}

// filter returns the references for which keep returns true.
func (r *References) filter(keep func(Reference) bool) References {
	out := References{More: r.More, moreByID: r.moreByID}
	for _, ref := range r.all {
		if !keep(ref) {
			continue
		}
		out.all = append(out.all, ref)
		if slices.Contains(r.Visible, ref) {
			out.Visible = append(out.Visible, ref)
		} else {
			out.Hidden++
		}
	}
	return out
}

// filterByDigest returns the references that pin a version by its digest.
func (r *References) filterByDigest(digest string) References {
	return r.filter(func(ref Reference) bool { return ref.Digest == digest })
}

// References returns the references to a skill by resources, by other skills, by
// defaults, and by namespaces to which it was published. The principal must be
// allowed to delete the skill.
func (l *Library) References(ctx context.Context, p account.Principal, id string) (*References, error) {
	h, err := l.authorize(ctx, p, account.SkillDelete, id)
	if err != nil {
		return nil, err
	}
	refs, err := l.loadReferences(ctx, &l.db.Tables, p, h)
	if err != nil {
		return nil, err
	}
	return &refs, nil
}

// maxReferences is the maximum number of rows read by each of two queries: one
// for references to a skill's ID, and one for references to its ID or name. A
// skill with more references to its ID cannot be deleted. A skill with more
// references to its name can be deleted with unbind, because every user can
// refer to a name, and names are resolved when they are used.
const maxReferences = store.MaxPage

// loadRows reads the references to the ID and to the name of a skill.
func (r *References) loadRows(ctx context.Context, t *store.Tables, h *skillRecord) ([]store.Reference, error) {
	rows, err := t.Refs.ListTo(ctx, store.SkillKind, h.ID, "", maxReferences) // references by ID only
	if err != nil {
		return nil, err
	}
	r.moreByID = len(rows) == maxReferences
	both, err := t.Refs.ListTo(ctx, store.SkillKind, h.ID, h.Name, maxReferences)
	r.More = len(both) == maxReferences
	for _, row := range both {
		if row.ToID == "" {
			rows = append(rows, row)
		}
	}
	return rows, err
}

func (l *Library) loadReferences(ctx context.Context, t *store.Tables, p account.Principal, h *skillRecord) (References, error) {
	var out References
	rows, err := out.loadRows(ctx, t, h)
	if err != nil {
		return out, err
	}
	add := func(r Reference, seen bool) {
		out.all = append(out.all, r)
		if seen {
			out.Visible = append(out.Visible, r)
		} else {
			out.Hidden++
		}
	}
	for _, row := range rows {
		from, seen, err := l.describeReferrer(ctx, t, p, row)
		if isNotFound(err) {
			continue // the referrer was deleted
		}
		if err != nil {
			return out, err
		}
		means := row.ToID == h.ID
		if !means {
			if means, err = l.resolvesTo(ctx, t, row, from.Namespace, h); err != nil {
				return out, err
			}
		}
		if means && !(from.Kind == SkillReference && from.ID == h.ID) {
			add(from, seen)
		}
	}
	defaults, err := t.Defaults.ListBySkill(ctx, h.ID)
	if err != nil {
		return out, err
	}
	out.More = out.More || len(defaults) == store.MaxPage
	for _, d := range defaults {
		if d.Namespace != h.Namespace { // defaults in its own namespace are deleted with the skill
			add(Reference{Kind: DefaultReference, ID: string(d.Namespace), Namespace: d.Namespace, Precise: true}, canSee(p, account.SkillRead, d.Namespace))
		}
	}
	for _, n := range h.listings {
		if n != h.Namespace {
			add(Reference{Kind: ListingReference, ID: string(n), Namespace: n, Precise: true}, canSee(p, account.SkillRead, n))
		}
	}
	slices.SortFunc(out.Visible, func(a, b Reference) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Slot, b.Slot))
	})
	return out, nil
}

func canSee(p account.Principal, a account.Action, n Namespace) bool {
	return account.Can(p, a, accountResource(n, ""))
}

// describeReferrer returns the reference stored in a row. It also reports whether
// the principal may see the reference.
func (l *Library) describeReferrer(ctx context.Context, t *store.Tables, p account.Principal, row store.Reference) (Reference, bool, error) {
	out := Reference{Kind: row.FromKind, ID: row.FromID, Slot: row.Slot, Precise: row.ToID != "", Digest: row.Digest}
	if row.FromKind == store.SkillKind {
		h, err := l.getSkill(ctx, t, row.FromID)
		if err != nil {
			return out, false, err
		}
		out.Name, out.Namespace = h.Name, h.Namespace
		return out, h.check(p, account.SkillRead, h.CreatedBy) == nil, nil
	}
	k, err := t.Kinds.Get(ctx, row.FromID)
	out.Name, out.Namespace = k.Name, k.Namespace
	return out, err == nil && account.Can(p, account.KindRead, accountResource(k.Namespace, k.CreatedBy)), err
}

// resolvesTo reports whether a reference by name in a namespace resolves to the
// skill h. A name in the public namespace resolves differently for each user; here,
// it resolves to the public skill.
func (l *Library) resolvesTo(ctx context.Context, t *store.Tables, row store.Reference, in Namespace, h *skillRecord) (bool, error) {
	reach := []Namespace{row.ToNamespace}
	if row.ToNamespace == "" {
		var err error
		if reach, err = l.reachableNamespaces(ctx, t, in); err != nil {
			return false, err
		}
	}
	found, err := t.Skills.Find(ctx, row.ToName, reach)
	return err == nil && len(found) > 0 && found[0].ID == h.ID, err
}

// reachableNamespaces returns the namespaces in which the documents of a namespace
// resolve skill names.
func (l *Library) reachableNamespaces(ctx context.Context, t *store.Tables, in Namespace) ([]Namespace, error) {
	out := []Namespace{in}
	if in.User() != "" {
		groups, err := t.Groups.ListMemberships(ctx, in.User())
		if err != nil {
			return nil, err
		}
		for _, g := range groups[:min(len(groups), store.MaxNamespaces-1-len(sharedNamespaces))] {
			out = append(out, store.GroupNamespace(g.GroupID))
		}
	}
	return append(slices.DeleteFunc(out, store.Namespace.IsShared), sharedNamespaces...), nil
}

// Unbind removes the references to a skill that have the kind and ID of r. The
// principal must be allowed to delete the skill. Dependencies of other skills
// cannot be removed. Unbind returns [store.ErrUnsupported] for references from
// resources if [Options.Unbind] is nil.
func (l *Library) Unbind(ctx context.Context, p account.Principal, id string, r Reference) error {
	return l.unbindAll(ctx, p, id, func(have Reference) bool {
		return have.Kind == r.Kind && have.ID == r.ID
	}, true)
}

// UnbindAll removes references to a skill and returns the remaining ones. A call
// removes a limited number of references, and never dependencies. The principal
// must be allowed to delete the skill.
func (l *Library) UnbindAll(ctx context.Context, p account.Principal, id string) (*References, error) {
	if err := l.unbindAll(ctx, p, id, Reference.isRemovable, false); err != nil {
		return nil, err
	}
	return l.References(ctx, p, id)
}

func (l *Library) unbindAll(ctx context.Context, p account.Principal, id string, match func(Reference) bool, required bool) error {
	return l.update(ctx, p, account.SkillDelete, id, func(tx *store.Tx, h *skillRecord) (any, error) {
		refs, err := l.loadReferences(ctx, &tx.Tables, p, h)
		if err != nil {
			return nil, err
		}
		chosen := refs.filter(match)
		if required && chosen.Total() == 0 {
			return nil, fmt.Errorf("remove reference: %w", ErrNotFound)
		}
		return unbindDetails{h.Name, chosen.all}, l.unbind(ctx, tx, h, chosen.all)
	})
}

// unbindDetails holds the details of the audit record for removed references.
type unbindDetails struct {
	Name       string      `json:"name"`
	References []Reference `json:"references"`
}

func (l *Library) unbind(ctx context.Context, tx *store.Tx, h *skillRecord, refs []Reference) error {
	kinds := map[string]bool{} // resources already processed; one may have several references
	for _, r := range refs {
		var err error
		switch {
		case r.Kind == DefaultReference:
			err = tx.Defaults.Delete(ctx, r.Namespace, h.ID)
		case r.Kind == ListingReference:
			err = tx.Skills.Unpublish(ctx, h.ID, r.Namespace)
		case r.Kind == SkillReference:
			err = fmt.Errorf("remove dependency of skill %q: %w", r.Name, store.ErrReferenced)
		case l.opts.Unbind == nil:
			err = fmt.Errorf("remove reference from %s %q: %w", r.Kind, r.Name, store.ErrUnsupported)
		case !kinds[r.ID]:
			kinds[r.ID] = true
			err = l.unbindKind(ctx, tx, h, r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *Library) unbindKind(ctx context.Context, tx *store.Tx, h *skillRecord, r Reference) error {
	k, err := tx.Kinds.Get(ctx, r.ID)
	if err != nil {
		return err
	}
	if err := l.opts.Unbind(ctx, tx, k, h.ID, h.Name); err != nil {
		return err
	}
	_, err = tx.Refs.Remove(ctx, k.Kind, k.ID, store.SkillKind, h.ID, h.Name)
	return err
}

// Deletion is the result of deleting a skill.
type Deletion struct {
	Deleted    bool       `json:"deleted"`
	References References `json:"references" doc:"References that prevent the deletion, or that were removed"`
}

// Delete deletes a skill with all its versions and comments, and the notifications that
// quote them. If unbind is set, it first removes
// the references to the skill, except for dependencies. It returns a
// [*ReferencedError] if references remain. If dry is set, it changes nothing and
// returns the references. The name can be reused immediately; [Library.Sweep]
// removes the files later.
func (l *Library) Delete(ctx context.Context, p account.Principal, id string, dry, unbind bool) (*Deletion, error) {
	if dry {
		refs, err := l.References(ctx, p, id)
		if err != nil {
			return nil, err
		}
		return &Deletion{References: *refs}, nil
	}
	for unbind {
		// Remove references in batches, the last one together with the skill.
		refs, err := l.References(ctx, p, id)
		if err != nil {
			return nil, err
		}
		if !refs.More || !refs.containsRemovable() {
			break
		}
		if err := l.unbindAll(ctx, p, id, Reference.isRemovable, false); err != nil {
			return nil, err
		}
	}
	out := new(Deletion)
	err := l.update(ctx, p, account.SkillDelete, id, func(tx *store.Tx, h *skillRecord) (any, error) {
		refs, err := l.loadReferences(ctx, &tx.Tables, p, h)
		if err != nil {
			return nil, err
		}
		if !unbind && (refs.Total() > 0 || refs.More) || refs.moreByID {
			return nil, &ReferencedError{Skill: id, Name: h.Name, References: refs}
		}
		if err := l.notifyRemoved(ctx, tx, p, h); err != nil {
			return nil, err
		}
		if err := tx.Notifications.DeletePrefix(ctx, CommentAdded, id+"@"); err != nil {
			return nil, err
		}
		gone := refs.filter(Reference.isRemovable)
		if err := l.unbind(ctx, tx, h, gone.all); err != nil {
			return nil, err
		}
		*out = Deletion{Deleted: true, References: refs}
		return unbindDetails{h.Name, gone.all}, tx.Skills.Delete(ctx, id)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

var _ json.Marshaler = References{}

// MarshalJSON encodes empty lists as [].
func (r References) MarshalJSON() ([]byte, error) {
	type plain References // without this method
	r.Visible = append([]Reference{}, r.Visible...)
	return json.Marshal(plain(r))
}
