package chat

import (
	"context"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// TotalsQuery selects the usage of conversations and specifies how to group it.
type TotalsQuery struct {
	By    store.GroupBy
	Since time.Time // the first day, in UTC
	// User selects a user. "" selects all users whose usage the principal may
	// see: all users for administrators, all users of a group's agents for the
	// group's maintainers, and only the principal otherwise.
	User account.UserID
	// In selects the agents in a namespace; "" selects all conversations. A
	// group's maintainers may see the totals of its agents.
	In store.Namespace
}

// Totals returns the total usage of conversations by model and by the column
// [TotalsQuery.By]; see [store.Meter.Sum].
func (e *Engine) Totals(ctx context.Context, p account.Principal, q TotalsQuery) ([]store.MeterEntry, error) {
	if err := account.Check(p, account.MeterRead, account.OwnedBy(p.User)); err != nil {
		return nil, err
	}
	if group := account.GroupID(q.In.Group()); group != "" {
		if err := account.Check(p, account.UsageRead, account.OwnedByGroup(group, "")); err != nil {
			return nil, err
		}
	}
	if q.User == "" && !canReadAll(p, q.In) {
		q.User = p.User
	}
	if q.User != "" && q.User != p.User && !canReadAll(p, q.In) {
		if err := account.Check(p, account.MeterRead, account.OwnedBy(q.User)); err != nil {
			return nil, err
		}
	}
	return e.db.Meter.Sum(ctx, store.MeterQuery{GroupBy: q.By, Since: q.Since, Owner: string(q.User), Namespace: q.In})
}

// canReadAll reports whether a principal may see how all users use the agents in
// a namespace. The namespace "" stands for all agents on the hub.
func canReadAll(p account.Principal, in store.Namespace) bool {
	switch {
	case in.Group() != "":
		return account.Can(p, account.MeterRead, account.OwnedByGroup(account.GroupID(in.Group()), ""))
	case in.User() != "":
		return account.Can(p, account.MeterRead, account.OwnedBy(account.UserID(in.User())))
	}
	return account.Can(p, account.MeterRead, account.Resource{})
}
