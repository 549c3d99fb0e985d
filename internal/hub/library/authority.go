package library

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// Namespace is whose skills are: a user's, a group's, or everybody's.
type Namespace = store.Namespace

// place is a namespace as something that actions are on.
func place(n Namespace, author string) account.Resource {
	switch {
	case n.User() != "":
		return account.Of(account.UserID(n.User()))
	case n.Group() != "":
		return account.In(account.GroupID(n.Group()), account.UserID(author))
	case n == store.Public:
		return account.Resource{Shared: true}
	}
	return account.Resource{}
}

// home are the actions that are decided where a skill is at home, whoever it was
// published to. Of the others each place where it is listed is enough.
var home = map[account.Action]bool{
	account.SkillChange: true, account.SkillReview: true, account.SkillPublish: true, account.SkillHide: true, account.SkillDelete: true,
}

// held is a skill and where it is listed.
type held struct {
	store.Skill
	listings []Namespace
}

// resources are what an action on a skill is on, the skill at home first.
func (h *held) resources(a account.Action, author string) []account.Resource {
	at := place(h.Namespace, author)
	at.Hidden = h.Hidden
	all := []account.Resource{at}
	if home[a] {
		return all
	}
	for _, n := range h.listings {
		if n != h.Namespace {
			at := place(n, "")
			at.Hidden = h.Hidden
			all = append(all, at)
		}
	}
	return all
}

// check decides whether a principal may do an action on a skill. Of a review the author
// is that of the version, else of the skill.
func (h *held) check(p account.Principal, a account.Action, author string) error {
	var denied *account.DeniedError
	for _, r := range h.resources(a, author) {
		err := account.Check(p, a, r)
		if err == nil {
			return nil
		}
		var d *account.DeniedError
		if errors.As(err, &d) && (denied == nil || denied.Unseen && !d.Unseen) {
			denied = d
		}
	}
	if denied.Unseen && h.seen(p) {
		return &account.DeniedError{Action: a} // it is seen elsewhere than at home
	}
	if denied.Unseen {
		return notFound(h.ID)
	}
	return denied
}

// seen reports whether a principal may know of a skill, whatever the way in allows.
func (h *held) seen(p account.Principal) bool {
	p.Scopes = account.AllScopes
	return slices.ContainsFunc(h.resources(account.SkillRead, h.CreatedBy), func(r account.Resource) bool {
		return account.Can(p, account.SkillRead, r)
	})
}

// held reads a skill, without asking whether anybody may.
func (l *Library) held(ctx context.Context, t *store.Tables, id string) (*held, error) {
	s, err := t.Skills.Get(ctx, id)
	if err != nil {
		return nil, orNotFound(id, err)
	}
	listings, err := t.Skills.Listings(ctx, id)
	if err != nil {
		return nil, err
	}
	h := &held{Skill: s}
	for _, at := range listings {
		h.listings = append(h.listings, at.Namespace)
	}
	return h, nil
}

// may returns a skill on which a principal may do an action that changes nothing.
func (l *Library) may(ctx context.Context, p account.Principal, a account.Action, id string) (*held, error) {
	return l.decide(ctx, p, a, id, false)
}

// edit is a change of one skill. Its function may be called several times, and returns
// what the record of it says.
type edit func(tx *store.Tx, h *held) (details any, err error)

// change makes a change of a skill that a principal may make, with its record, in one
// transaction.
func (l *Library) change(ctx context.Context, p account.Principal, a account.Action, id string, f edit) error {
	return l.changeIf(ctx, p, a, id, func(_ *store.Tx, h *held) error { return h.check(p, a, h.CreatedBy) }, f)
}

// changeIf is change where may decides.
func (l *Library) changeIf(ctx context.Context, p account.Principal, a account.Action, id string, may func(*store.Tx, *held) error, f edit) error {
	var denied error
	var in Namespace
	err := l.db.Tx(ctx, func(tx *store.Tx) error {
		denied = nil
		h, err := l.held(ctx, &tx.Tables, id)
		if err != nil {
			return err
		}
		in = h.Namespace
		if err := may(tx, h); err != nil {
			if isDenied(err) || isNotFound(err) {
				if !h.seen(p) {
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
		return record(ctx, tx.Audit, p, a, in, id, "allowed", details)
	})
	switch {
	case denied != nil:
		return l.denied(ctx, p, a, in, id, denied)
	case err != nil:
		return err
	}
	l.changed()
	return nil
}

// denied is why something may not be done, which the audit log says too.
func (l *Library) denied(ctx context.Context, p account.Principal, a account.Action, in Namespace, subject string, why error) error {
	if err := record(ctx, l.db.Audit, p, a, in, subject, "denied", nil); err != nil {
		return errors.Join(why, err)
	}
	return why
}

// checkPlace decides whether a principal may do an action in a namespace, and records
// where it is not.
func (l *Library) checkPlace(ctx context.Context, p account.Principal, a account.Action, n Namespace, subject string) error {
	if err := inPlace(p, a, n); err != nil {
		return l.denied(ctx, p, a, n, subject, err)
	}
	return nil
}

// inPlace is why a principal may not do an action in a namespace; where he may not know
// of it, that it is not there.
func inPlace(p account.Principal, a account.Action, n Namespace) error {
	err := account.Check(p, a, place(n, ""))
	if d, ok := errors.AsType[*account.DeniedError](err); ok && d.Unseen {
		return fmt.Errorf("namespace %.100q: %w", string(n), ErrNotFound)
	}
	return err
}

// record writes a record of the audit log.
func record(ctx context.Context, audit store.Audit, p account.Principal, a account.Action, n Namespace, subject, decision string, details any) error {
	r := store.Record{Actor: string(p.User), Action: string(a), Namespace: n, Subject: plain(subject, 256), Decision: decision}
	if details != nil {
		data, err := json.Marshal(details)
		if err != nil {
			return err
		}
		r.Details = data
	}
	return audit.Append(ctx, r)
}

// namespaces are those whose skills a principal reaches by name, nearest first: his
// own, those of his groups, everybody's. Of more groups than one question may have the
// newest are left out: whoever makes groups puts people into them unasked. It fails where
// the way in allows no reading.
func namespaces(p account.Principal, a account.Action) ([]Namespace, error) {
	all := []Namespace{store.UserNamespace(string(p.User))}
	for _, g := range slices.Sorted(maps.Keys(p.Groups)) { // ids say when they were made
		if len(all) < store.MaxNamespaces-1 {
			all = append(all, store.GroupNamespace(string(g)))
		}
	}
	all = append(all, store.Public)
	may := all[:0:0]
	for _, n := range all {
		if account.Can(p, a, place(n, "")) {
			may = append(may, n)
		}
	}
	if len(may) == 0 {
		return nil, account.Check(p, a, place(store.Public, ""))
	}
	return may, nil
}
