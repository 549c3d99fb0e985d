package library

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// Namespace identifies the owner of skills: a user, a group, the public, or the
// operator of the hub.
type Namespace = store.Namespace

// accountResource returns the resource for authorizing access to an item that author
// created in namespace n.
func accountResource(n Namespace, author string) account.Resource {
	switch {
	case n.User() != "":
		return account.OwnedBy(account.UserID(n.User()))
	case n.Group() != "":
		return account.OwnedByGroup(account.GroupID(n.Group()), account.UserID(author))
	case n.IsShared():
		return account.Resource{Shared: true, ReadOnly: n.IsReadOnly()}
	}
	return account.Resource{}
}

// ownerActions lists the actions that require rights in the namespace that owns
// the skill. Other actions require rights in any namespace that lists it.
var ownerActions = map[account.Action]bool{
	account.SkillChange: true, account.SkillReview: true, account.SkillComment: true, account.SkillDismiss: true, account.SkillPublish: true, account.SkillHide: true, account.SkillDelete: true,
}

// skillRecord is a stored skill and the namespaces that list it.
type skillRecord struct {
	store.Skill
	listings []Namespace
	bound    bool // whether the skill is accessed through a reference, which remains valid if the skill is hidden
}

// isHidden reports whether only users who manage the skill may see it.
func (h *skillRecord) isHidden() bool { return !h.bound && (h.Hidden || isWithheld(h.Skill)) }

// resources returns the resources for an action on the skill; one of them must
// permit it. The first is for the namespace that owns the skill.
func (h *skillRecord) resources(a account.Action, author string) []account.Resource {
	at := accountResource(h.Namespace, author)
	at.Hidden = h.isHidden()
	all := []account.Resource{at}
	if ownerActions[a] {
		return all
	}
	for _, n := range h.listings {
		if n != h.Namespace {
			at := accountResource(n, "")
			at.Hidden = h.isHidden()
			all = append(all, at)
		}
	}
	return all
}

// check returns an error if the principal is not allowed to perform the action
// on the skill. For a review, author is the version's author, otherwise the
// skill's.
func (h *skillRecord) check(p account.Principal, a account.Action, author string) error {
	var denied *account.DeniedError
	for _, r := range h.resources(a, author) {
		err := account.Check(p, a, r)
		if err == nil {
			return nil
		}
		var d *account.DeniedError
		if errors.As(err, &d) && (denied == nil || denied.Hidden && !d.Hidden) {
			denied = d
		}
	}
	if denied.Hidden && h.isVisible(p) {
		return &account.DeniedError{Action: a} // another namespace makes the skill visible
	}
	if denied.Hidden {
		return notFound(h.ID)
	}
	return denied
}

// isVisible reports whether the principal may see the skill. It ignores the
// scopes of the principal's token.
func (h *skillRecord) isVisible(p account.Principal) bool {
	p.Scopes = account.AllScopes
	return slices.ContainsFunc(h.resources(account.SkillRead, h.CreatedBy), func(r account.Resource) bool {
		return account.Can(p, account.SkillRead, r)
	})
}

// getSkill returns a skill without checking any permission.
func (l *Library) getSkill(ctx context.Context, t *store.Tables, id string) (*skillRecord, error) {
	s, err := t.Skills.Get(ctx, id)
	if err != nil {
		return nil, hideNotFound(id, err)
	}
	listings, err := t.Skills.Listings(ctx, id)
	if err != nil {
		return nil, err
	}
	h := &skillRecord{Skill: s}
	for _, at := range listings {
		h.listings = append(h.listings, at.Namespace)
	}
	return h, nil
}

// authorize returns a skill if the principal may perform the read-only action.
func (l *Library) authorize(ctx context.Context, p account.Principal, a account.Action, id string) (*skillRecord, error) {
	return l.loadAuthorized(ctx, p, a, id, false)
}

// editFunc changes a skill in a transaction and returns the details for the audit
// record. It is called again if the transaction is retried.
type editFunc func(tx *store.Tx, h *skillRecord) (details any, err error)

// update calls f to change a skill if the principal may perform the action. It
// stores the change and its audit record in one transaction.
func (l *Library) update(ctx context.Context, p account.Principal, a account.Action, id string, f editFunc) error {
	return l.updateIf(ctx, p, a, id, func(_ *store.Tx, h *skillRecord) error { return h.check(p, a, h.CreatedBy) }, f)
}

// updateIf is like update, but calls check to authorize the change.
func (l *Library) updateIf(ctx context.Context, p account.Principal, a account.Action, id string, check func(*store.Tx, *skillRecord) error, f editFunc) error {
	var denied error
	var in Namespace
	err := l.db.Tx(ctx, func(tx *store.Tx) error {
		denied = nil
		h, err := l.getSkill(ctx, &tx.Tables, id)
		if err != nil {
			return err
		}
		in = h.Namespace
		if err := check(tx, h); err != nil {
			if account.IsDenied(err) || isNotFound(err) {
				if !h.isVisible(p) {
					err = notFound(id)
				}
				denied = err
			}
			return err
		}
		details, err := f(tx, h)
		if err != nil {
			return err
		}
		return appendAudit(ctx, tx.Audit, p, a, in, id, "allowed", details)
	})
	switch {
	case denied != nil:
		return l.recordDenied(ctx, p, a, in, id, denied)
	case err != nil:
		return err
	}
	l.NotifyChanged()
	return nil
}

// recordDenied records a denial in the audit log. It returns the reason, joined with
// any error from recording it.
func (l *Library) recordDenied(ctx context.Context, p account.Principal, a account.Action, in Namespace, subject string, why error) error {
	if err := appendAudit(ctx, l.db.Audit, p, a, in, subject, "denied", nil); err != nil {
		return errors.Join(why, err)
	}
	return why
}

// authorizeIn returns an error if the principal is not allowed to perform the
// action in the namespace, and records the denial.
func (l *Library) authorizeIn(ctx context.Context, p account.Principal, a account.Action, n Namespace, subject string) error {
	if err := checkNamespace(p, a, n); err != nil {
		return l.recordDenied(ctx, p, a, n, subject, err)
	}
	return nil
}

// checkNamespace returns an error if the principal is not allowed to perform the
// action in the namespace. The error wraps [ErrNotFound] if the principal must not
// see the namespace.
func checkNamespace(p account.Principal, a account.Action, n Namespace) error {
	return checkNamespaceAs(p, a, n, accountResource(n, ""))
}

// checkNamespaceAs is like checkNamespace, but authorizes the action on the
// resource r.
func checkNamespaceAs(p account.Principal, a account.Action, n Namespace, r account.Resource) error {
	err := account.Check(p, a, r)
	if d, ok := errors.AsType[*account.DeniedError](err); ok && d.Hidden {
		return fmt.Errorf("namespace %.100q: %w", string(n), ErrNotFound)
	}
	return err
}

func appendAudit(ctx context.Context, audit store.Audit, p account.Principal, a account.Action, n Namespace, subject, decision string, details any) error {
	r := store.AuditRecord{Actor: string(p.User), Action: string(a), Namespace: n, Subject: cleanLine(subject, 256), Decision: decision}
	if details != nil {
		data, err := json.Marshal(details)
		if err != nil {
			return err
		}
		r.Details = data
	}
	return audit.Append(ctx, r)
}

// sharedNamespaces are the namespaces that everyone can see, in order of precedence.
var sharedNamespaces = []Namespace{store.Public, store.Operator, store.Bundled}

// namespaces returns the namespaces in which a principal's skill names are
// resolved, in order: its own, its groups', and those that everyone can see. If
// there are more groups than a query permits, it omits the newest ones, so that
// other users cannot displace older groups by adding the principal to new ones.
// It returns an error if the token's scopes permit no access.
func namespaces(p account.Principal, a account.Action) ([]Namespace, error) {
	all := []Namespace{store.UserNamespace(string(p.User))}
	for _, g := range slices.Sorted(maps.Keys(p.Groups)) { // IDs sort by creation time
		if len(all) < store.MaxNamespaces-len(sharedNamespaces) {
			all = append(all, store.GroupNamespace(string(g)))
		}
	}
	all = append(all, sharedNamespaces...)
	may := all[:0:0]
	for _, n := range all {
		if account.Can(p, a, accountResource(n, "")) {
			may = append(may, n)
		}
	}
	if len(may) == 0 {
		return nil, account.Check(p, a, accountResource(store.Public, ""))
	}
	return may, nil
}
