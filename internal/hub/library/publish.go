package library

import (
	"context"
	"fmt"
	"slices"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// Publish lists a skill in a group or in the public namespace. The principal must
// be allowed to upload there. Publish returns [ErrExists] if a skill with the same
// name is already listed there, and [ErrInvalid] if fewer reviewers approved a
// version than the group requires.
func (l *Library) Publish(ctx context.Context, p account.Principal, id string, in Namespace) error {
	if err := l.authorizeIn(ctx, p, account.SkillUpload, in, id); err != nil {
		return err
	}
	if in.User() != "" {
		return fmt.Errorf("%w: cannot publish a skill to a user namespace", ErrInvalid)
	}
	return l.update(ctx, p, account.SkillPublish, id, func(tx *store.Tx, h *skillRecord) (any, error) {
		if slices.Contains(h.listings, in) {
			return publishDetails{h.Name, in, nil}, nil
		}
		if err := h.checkApprovers(ctx, newApprovalReader(&tx.Tables, p), in); err != nil {
			return nil, err
		}
		return publishDetails{h.Name, in, nil}, tx.Skills.Publish(ctx, id, in, string(p.User))
	})
}

// publishDetails holds the details of the audit record for Publish and Unpublish.
type publishDetails struct {
	Name string      `json:"name"`
	In   Namespace   `json:"in"`
	Lost []Reference `json:"lost,omitempty"`
}

// Unpublish removes a skill from a namespace to which it was published. It returns
// the references that become invalid. If there are any and force is not set, it
// returns a [*ReferencedError]. The principal must manage the skill or the
// namespace.
func (l *Library) Unpublish(ctx context.Context, p account.Principal, id string, from Namespace, force bool) (*References, error) {
	var lost References
	may := func(_ *store.Tx, h *skillRecord) error {
		if h.isVisible(p) && account.Can(p, account.SkillPublish, accountResource(from, "")) {
			return nil
		}
		return h.check(p, account.SkillPublish, h.CreatedBy)
	}
	err := l.updateIf(ctx, p, account.SkillPublish, id, may, func(tx *store.Tx, h *skillRecord) (any, error) {
		all, err := l.loadReferences(ctx, &tx.Tables, p, h)
		if err != nil {
			return nil, err
		}
		if err := tx.Skills.Unpublish(ctx, id, from); err != nil {
			return nil, err
		}
		if lost, err = l.findLostReferences(ctx, tx, h, all, from); err != nil {
			return nil, err
		}
		if lost.Total() > 0 && !force {
			return nil, &ReferencedError{Skill: id, Name: h.Name, References: lost}
		}
		return publishDetails{h.Name, from, lost.all}, l.unbind(ctx, tx, h, lost.filter(func(r Reference) bool { return r.Kind == DefaultReference }).all)
	})
	if err != nil {
		return nil, err
	}
	return &lost, nil
}

// findLostReferences returns the references that become invalid when a namespace
// stops listing the skill.
func (l *Library) findLostReferences(ctx context.Context, tx *store.Tx, h *skillRecord, all References, from Namespace) (References, error) {
	listed := map[Namespace]bool{}
	for _, n := range h.listings {
		listed[n] = n != from
	}
	gone := map[Reference]bool{}
	for _, r := range all.all {
		if r.Kind == ListingReference {
			continue
		}
		reach, err := l.reachableNamespaces(ctx, &tx.Tables, r.Namespace)
		if err != nil {
			return References{}, err
		}
		reaches := false
		for _, n := range reach {
			reaches = reaches || listed[n]
		}
		gone[r] = !reaches
	}
	return all.filter(func(r Reference) bool { return gone[r] }), nil
}

// Hide sets whether a skill is hidden from lists and name resolution. It returns
// the references to the skill, which remain valid.
func (l *Library) Hide(ctx context.Context, p account.Principal, id string, hidden bool) (*References, error) {
	var refs References
	err := l.update(ctx, p, account.SkillHide, id, func(tx *store.Tx, h *skillRecord) (any, error) {
		var err error
		if refs, err = l.loadReferences(ctx, &tx.Tables, p, h); err != nil {
			return nil, err
		}
		return hideDetails{h.Name, hidden, refs.Total()}, tx.Skills.SetHidden(ctx, id, hidden)
	})
	if err != nil {
		return nil, err
	}
	return &refs, nil
}

// hideDetails holds the details of the audit record for Hide.
type hideDetails struct {
	Name       string `json:"name"`
	Hidden     bool   `json:"hidden"`
	References int    `json:"references"`
}
