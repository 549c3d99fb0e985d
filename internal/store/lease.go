package store

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Lease says that one node, and no other, does a piece of work for some time.
type Lease struct {
	Name  string
	Node  string // a name that no other process has, nor had
	Fence int64  // grows with every node that takes the lease
	Until time.Time
}

const leaseColumns = "name, node, fence, until"

func (l *Lease) fields() []any { return []any{&l.Name, &l.Node, &l.Fence, (*stamp)(&l.Until)} }

// Leases keeps which node does what. Time passes here by the clock of the database
// alone. A node whose lease is over may not know it yet: what it writes then, it writes
// in a transaction with [Leases.Check].
type Leases struct{ c conn }

// free is the condition of a lease that anybody may take. One that seems to last
// much longer than it was taken for was taken before the clock was set back.
func (d dialect) free() string {
	return "(leases.node = '' OR leases.until <= " + d.now + " OR leases.until > " + d.now + " + 2 * leases.span)"
}

// Take takes a lease that nobody has, or whose time is over, and returns it. While
// another node has it, or this one took it before, it is [ErrHeld].
func (t Leases) Take(ctx context.Context, name, node string, span time.Duration) (Lease, error) {
	if node == "" || span < time.Millisecond {
		return Lease{}, fmt.Errorf("take %q: %w: a lease is some node's, for some time", name, ErrInvalid)
	}
	d := t.c.db.dialect
	taken, err := changed[Lease](ctx, t.c, `INSERT INTO leases (name, node, fence, until, span)
		VALUES ($1, $2, 1, `+d.now+` + CAST($3 AS BIGINT), $3)
		ON CONFLICT (name) DO UPDATE SET node = excluded.node, fence = leases.fence + 1, until = excluded.until, span = excluded.span
		WHERE `+d.free()+" RETURNING "+leaseColumns, name, node, span.Milliseconds())
	if err == nil && len(taken) == 0 {
		err = ErrHeld
	}
	if err != nil {
		return Lease{}, fmt.Errorf("take %q: %w", name, err)
	}
	return taken[0], nil
}

// Renew lets a lease last for some time from now, and returns it. One that another
// node took since is [ErrHeld]; one that is over, but that nobody took, is renewed.
func (t Leases) Renew(ctx context.Context, l Lease, span time.Duration) (Lease, error) {
	renewed, err := changed[Lease](ctx, t.c, "UPDATE leases SET until = "+t.c.db.dialect.now+` + CAST($4 AS BIGINT), span = $4
		WHERE name = $1 AND node = $2 AND fence = $3 RETURNING `+leaseColumns, l.Name, l.Node, l.Fence, span.Milliseconds())
	if err == nil && len(renewed) == 0 {
		err = ErrHeld
	}
	if err != nil {
		return Lease{}, fmt.Errorf("renew %q: %w", l.Name, err)
	}
	return renewed[0], nil
}

// Check fails with [ErrHeld] where another node took the lease since, or it was
// released. In a transaction it holds until the end of that.
func (t Leases) Check(ctx context.Context, l Lease) error {
	err := t.c.mustChange(ctx, "UPDATE leases SET fence = fence WHERE name = $1 AND node = $2 AND fence = $3", l.Name, l.Node, l.Fence)
	if errors.Is(err, ErrNotFound) {
		err = ErrHeld
	}
	if err != nil {
		return fmt.Errorf("lease %q: %w", l.Name, err)
	}
	return nil
}

// Release gives a lease back, so that another node can take it at once. One that is
// not the caller's any more is released already.
func (t Leases) Release(ctx context.Context, l Lease) error {
	_, err := t.c.exec(ctx, "UPDATE leases SET node = '', until = 0 WHERE name = $1 AND node = $2 AND fence = $3", l.Name, l.Node, l.Fence)
	if err != nil {
		return fmt.Errorf("release %q: %w", l.Name, err)
	}
	return nil
}

// Lapsed returns leases whose time is over and that nobody released, those that are
// over for longest first: work of nodes that are gone. There are at most limit, and
// never more than [MaxPage].
func (t Leases) Lapsed(ctx context.Context, limit int) ([]Lease, error) {
	found, err := all[Lease](ctx, t.c, "SELECT "+leaseColumns+" FROM leases WHERE until > 0 AND "+t.c.db.dialect.free()+
		" ORDER BY until LIMIT $1", Page{Limit: limit}.limit())
	if err != nil {
		return nil, fmt.Errorf("leases that are over: %w", err)
	}
	return found, nil
}
