package chat

import (
	"context"
	"time"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// TotalsQuery asks what conversations took.
type TotalsQuery struct {
	By    store.By
	Since time.Time // its day in UTC, and those after it
	// User is whose they are; "" is of all of whom the principal may know it, which with
	// no namespace is for administrators, and he alone for others.
	User account.UserID
	// In is where the agent is that they were with; "" is any, and none. Of agents of a
	// group who maintains that knows of all.
	In store.Namespace
}

// Totals returns what conversations took, in turn of what is asked and by model: see
// [store.Meter.Sum]. It says nothing of what was said.
func (e *Engine) Totals(ctx context.Context, p account.Principal, q TotalsQuery) ([]store.Spent, error) {
	if err := account.Check(p, account.MeterRead, account.Of(p.User)); err != nil {
		return nil, err
	}
	if group := account.GroupID(q.In.Group()); group != "" {
		if err := account.Check(p, account.UsageRead, account.In(group, "")); err != nil {
			return nil, err
		}
	}
	if q.User == "" && !everybody(p, q.In) {
		q.User = p.User
	}
	if q.User != "" && q.User != p.User && !everybody(p, q.In) {
		if err := account.Check(p, account.MeterRead, account.Of(q.User)); err != nil {
			return nil, err
		}
	}
	return e.db.Meter.Sum(ctx, store.MeterQuery{By: q.By, Since: q.Since, Owner: string(q.User), In: q.In})
}

// everybody reports whether somebody may know what all people spent with agents of a
// namespace, "" for all agents.
func everybody(p account.Principal, in store.Namespace) bool {
	switch {
	case in.Group() != "":
		return account.Can(p, account.MeterRead, account.In(account.GroupID(in.Group()), ""))
	case in.User() != "":
		return account.Can(p, account.MeterRead, account.Of(account.UserID(in.User())))
	}
	return account.Can(p, account.MeterRead, account.Resource{})
}
