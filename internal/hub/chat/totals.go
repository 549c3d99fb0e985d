package chat

import (
	"context"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// TotalsQuery selects and groups the usage of conversations.
type TotalsQuery struct {
	By    store.GroupBy
	Since time.Time // from the start of this day in UTC
	// User limits the totals to one user. "" includes all users if the
	// principal may see them: administrators, or maintainers for agents of
	// their group. For others it means the principal.
	User account.UserID
	// In limits the totals to agents of a namespace; "" includes all
	// conversations. Maintainers of a group see the totals of its agents.
	In store.Namespace
}

// Totals returns the usage of conversations by group and model: see
// [store.Meter.Sum]. It contains no messages.
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

// canReadAll reports whether a principal may see the usage of all users with
// agents of a namespace, "" for all agents.
func canReadAll(p account.Principal, in store.Namespace) bool {
	switch {
	case in.Group() != "":
		return account.Can(p, account.MeterRead, account.OwnedByGroup(account.GroupID(in.Group()), ""))
	case in.User() != "":
		return account.Can(p, account.MeterRead, account.OwnedBy(account.UserID(in.User())))
	}
	return account.Can(p, account.MeterRead, account.Resource{})
}
