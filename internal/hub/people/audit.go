package people

import (
	"context"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// Audit is the log of what was done on a hub, and what was refused.
type Audit struct{ b *book }

// List returns records, the newest first. Admins read all; a user reads what is of his
// own namespace, or what he did himself; an owner what is of his group's.
func (l Audit) List(ctx context.Context, p account.Principal, q store.AuditQuery) ([]store.Record, error) {
	r := account.Resource{}
	switch n := q.Namespace; {
	case n.User() != "":
		r = account.Of(account.UserID(n.User()))
	case n.Group() != "":
		r = account.In(account.GroupID(n.Group()), "")
	case n == "" && q.Actor != "":
		r = account.Of(account.UserID(q.Actor))
	}
	if err := account.Check(p, account.AuditRead, r); err != nil {
		return nil, err
	}
	return l.b.db.Audit.List(ctx, q)
}
