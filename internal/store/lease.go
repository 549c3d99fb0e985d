package store

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Lease gives a node the exclusive right to do some work for a limited time.
type Lease struct {
	Name    string
	Node    string // unique among all processes, past and present
	Fence   int64  // increases each time a node acquires the lease
	Expires time.Time
}

const leaseColumns = "name, node, fence, until"

func (l *Lease) fields() []any { return []any{&l.Name, &l.Node, &l.Fence, (*timestamp)(&l.Expires)} }

// Leases stores the leases held by nodes. Leases expire according to the
// database's clock. A node may not notice that its lease has expired, so it
// must call [Leases.Check] in each transaction that relies on the lease.
type Leases struct{ c conn }

// freeLease returns the SQL condition for a lease that any node may acquire.
// This includes a lease that ends much later than its span allows, because it
// was acquired before the clock was set back.
func (d dialect) freeLease() string {
	return "(leases.node = '' OR leases.until <= " + d.now + " OR leases.until > " + d.now + " + 2 * leases.span)"
}

// Acquire acquires a lease that is free or has expired. It fails with
// [ErrLeaseHeld] while any node holds it, including the caller.
func (t Leases) Acquire(ctx context.Context, name, node string, span time.Duration) (Lease, error) {
	if node == "" || span < time.Millisecond {
		return Lease{}, fmt.Errorf("acquire lease %q: %w: want a node name and a duration of at least 1ms", name, ErrInvalid)
	}
	d := t.c.db.dialect
	taken, err := execReturning[Lease](ctx, t.c, `INSERT INTO leases (name, node, fence, until, span)
		VALUES ($1, $2, 1, `+d.now+` + CAST($3 AS BIGINT), $3)
		ON CONFLICT (name) DO UPDATE SET node = excluded.node, fence = leases.fence + 1, until = excluded.until, span = excluded.span
		WHERE `+d.freeLease()+" RETURNING "+leaseColumns, name, node, span.Milliseconds())
	if err == nil && len(taken) == 0 {
		err = ErrLeaseHeld
	}
	if err != nil {
		return Lease{}, fmt.Errorf("acquire lease %q: %w", name, err)
	}
	return taken[0], nil
}

// Renew extends a lease so that it expires after span, counted from now. It
// also renews an expired lease, but fails with [ErrLeaseHeld] if another node
// has acquired it. With SQLite, Renew takes precedence over other waiting
// changes, because a node under load must not lose its leases.
func (t Leases) Renew(ctx context.Context, l Lease, span time.Duration) (Lease, error) {
	t.c.urgent = true
	renewed, err := execReturning[Lease](ctx, t.c, "UPDATE leases SET until = "+t.c.db.dialect.now+` + CAST($4 AS BIGINT), span = $4
		WHERE name = $1 AND node = $2 AND fence = $3 RETURNING `+leaseColumns, l.Name, l.Node, l.Fence, span.Milliseconds())
	if err == nil && len(renewed) == 0 {
		err = ErrLeaseHeld
	}
	if err != nil {
		return Lease{}, fmt.Errorf("renew lease %q: %w", l.Name, err)
	}
	return renewed[0], nil
}

// Check fails with [ErrLeaseHeld] if the lease was released or acquired by
// another node. In a transaction, no other node can acquire the lease before
// the commit.
func (t Leases) Check(ctx context.Context, l Lease) error {
	err := t.c.execAffecting(ctx, "UPDATE leases SET fence = fence WHERE name = $1 AND node = $2 AND fence = $3", l.Name, l.Node, l.Fence)
	if errors.Is(err, ErrNotFound) {
		err = ErrLeaseHeld
	}
	if err != nil {
		return fmt.Errorf("check lease %q: %w", l.Name, err)
	}
	return nil
}

// Release releases a lease, so that another node can acquire it immediately. It
// does nothing if the caller no longer holds the lease.
func (t Leases) Release(ctx context.Context, l Lease) error {
	_, err := t.c.exec(ctx, "UPDATE leases SET node = '', until = 0 WHERE name = $1 AND node = $2 AND fence = $3", l.Name, l.Node, l.Fence)
	if err != nil {
		return fmt.Errorf("release lease %q: %w", l.Name, err)
	}
	return nil
}

// AcquireExpired acquires up to limit expired leases of sessions. Such leases
// were not released, because their node crashed or hangs. It skips leases that a
// transaction of another node locks, so that one node cannot hold up all others.
func (t Leases) AcquireExpired(ctx context.Context, node string, span time.Duration, limit int) ([]Lease, error) {
	d := t.c.db.dialect
	taken, err := execReturning[Lease](ctx, t.c, `WITH expired AS MATERIALIZED (SELECT leases.name FROM leases
			WHERE leases.until > 0 AND `+d.freeLease()+` AND EXISTS (SELECT 1 FROM sessions WHERE sessions.id = leases.name)
			ORDER BY leases.until LIMIT $3 `+d.skipLocked+`)
		UPDATE leases SET node = $1, fence = fence + 1, until = `+d.now+` + CAST($2 AS BIGINT), span = $2
		WHERE name IN (SELECT name FROM expired) RETURNING `+leaseColumns, node, span.Milliseconds(), Page{Limit: limit}.Size())
	if err != nil {
		return nil, fmt.Errorf("acquire expired leases: %w", err)
	}
	return taken, nil
}

// ExpireNode ends all leases of a node whose process has ended, so that any node
// can acquire them immediately. It returns their number.
func (t Leases) ExpireNode(ctx context.Context, node string) (int64, error) {
	n, err := t.c.exec(ctx, `WITH held AS MATERIALIZED (SELECT leases.name FROM leases WHERE leases.node = $1 `+t.c.db.dialect.skipLocked+`)
		UPDATE leases SET until = 1 WHERE name IN (SELECT name FROM held)`, node)
	if err != nil {
		return 0, fmt.Errorf("expire leases of node %q: %w", node, err)
	}
	return n, nil
}
