package users

import (
	"context"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// Audit provides access to the hub's audit log of allowed and denied actions.
type Audit struct{ b *core }

// List returns records, newest first. Administrators may read all records. Other
// users may read the records of their own actions and of all actions in their
// own namespace. Group owners may also read the records of actions in their
// groups.
func (l Audit) List(ctx context.Context, p account.Principal, q store.AuditQuery) ([]store.AuditRecord, error) {
	r := account.Resource{}
	switch n := q.Namespace; {
	case n.User() != "":
		r = account.OwnedBy(account.UserID(n.User()))
	case n.Group() != "":
		r = account.OwnedByGroup(account.GroupID(n.Group()), "")
	case n == "" && q.Actor != "":
		r = account.OwnedBy(account.UserID(q.Actor))
	}
	if err := account.Check(p, account.AuditRead, r); err != nil {
		return nil, err
	}
	return l.b.db.Audit.List(ctx, q)
}
