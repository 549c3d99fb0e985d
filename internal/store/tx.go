package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Tx is a transaction. Only the function that received it may use it, in a
// single goroutine and only until it returns.
type Tx struct{ Tables }

// Tx calls f in a serializable transaction. It stores all changes that f makes
// through tx, or none if f, a change or the commit fails. After a conflict, Tx
// calls f again, so f must have no other effects. Tx fails with [ErrBusy] if
// conflicts persist for [Options.Wait]. f must not use db: a change through db
// would wait for f and fail.
func (db *DB) Tx(ctx context.Context, f func(tx *Tx) error) error {
	return conn{db: db}.inTransaction(ctx, func(c conn) error { return f(&Tx{tables(c)}) })
}

// conn executes SQL in a transaction or directly on the database.
type conn struct {
	db     *DB
	tx     *transaction // nil outside a transaction
	urgent bool         // whether a change takes precedence over other waiting changes
}

// transaction is an SQL transaction that records its first failed change.
type transaction struct {
	*sql.Tx
	// failed is the error from the first failed change. After an error,
	// PostgreSQL rejects further statements; SQLite would accept them.
	failed error
}

// querier executes SQL on a connection or in a transaction.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// inTransaction calls f in the current transaction, or in a new one if there is none.
func (c conn) inTransaction(ctx context.Context, f func(conn) error) error {
	if c.tx != nil {
		err := f(c)
		if err != nil && c.tx.failed == nil {
			c.tx.failed = err // f may have made some of its changes
		}
		return err
	}
	return c.db.retry(ctx, func() error { return c.runTx(ctx, sql.LevelSerializable, f) })
}

// retry calls fn until it succeeds, fails permanently, or has failed
// temporarily for [Options.Wait]. The limit is a duration rather than a number
// of attempts, because PostgreSQL reports conflicts between transactions that
// merely use the same index page. Under load, a dozen in a row are normal.
func (db *DB) retry(ctx context.Context, fn func() error) error {
	start := time.Now()
	for try := 1; ; try++ {
		err := fn()
		if !isTemporary(err) || time.Since(start) > db.wait {
			return err
		}
		if err := backOff(ctx, try); err != nil {
			return err
		}
	}
}

// runTx calls f in a new transaction.
func (c conn) runTx(ctx context.Context, level sql.IsolationLevel, f func(conn) error) error {
	single, release, err := c.db.acquireWriter(ctx, c.urgent)
	if err != nil {
		return err
	}
	defer release()
	tx, err := single.BeginTx(ctx, &sql.TxOptions{Isolation: level})
	if err != nil {
		return classifyError(ctx, err)
	}
	defer tx.Rollback() // no effect after Commit
	t := &transaction{Tx: tx}
	if err := f(conn{db: c.db, tx: t}); err != nil {
		return err
	}
	if t.failed != nil {
		return t.failed
	}
	err = tx.Commit()
	return classifyEnd(ctx, err, errors.Is(err, syscall.EPIPE) || pgconn.SafeToRetry(err)) // then the commit was not sent
}

// acquireWriter returns a connection for writing, and a function that releases it.
// It waits only for a limited time, because the function that is using the
// connection may itself be waiting for the caller's change.
func (db *DB) acquireWriter(ctx context.Context, urgent bool) (_ *sql.Conn, release func(), err error) {
	if db.queue != nil {
		if err := db.queue.acquire(ctx, urgent, db.wait); err != nil {
			return nil, nil, err
		}
		defer func() {
			if err != nil {
				db.queue.release()
			}
		}()
	}
	wait, stop := context.WithTimeoutCause(ctx, db.wait, ErrBusy)
	defer stop()
	single, err := db.writer.Conn(wait)
	switch {
	case err != nil && wait.Err() != nil:
		return nil, nil, fmt.Errorf("wait for concurrent changes: %w", context.Cause(wait))
	case err != nil:
		return nil, nil, classifyError(ctx, err)
	}
	return single, func() {
		single.Close()
		if db.queue != nil {
			db.queue.release()
		}
	}, nil
}

// backOff waits for a random time that increases with each try.
func backOff(ctx context.Context, try int) error {
	bound := min(time.Millisecond<<min(try, 10), 200*time.Millisecond)
	select {
	case <-time.After(rand.N(bound) + bound/4):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// exec executes a statement and returns the number of changed rows.
func (c conn) exec(ctx context.Context, query string, args ...any) (int64, error) {
	args, err := bindArgs(args)
	if err != nil {
		return 0, err
	}
	var n int64
	err = c.run(ctx, true, func(ctx context.Context, q querier) error {
		result, err := q.ExecContext(ctx, query, args...)
		if err != nil {
			return err
		}
		n, err = result.RowsAffected()
		return err
	})
	return n, err
}

// query calls fn for every row that a statement returns. If write is set, the
// statement may modify data.
func (c conn) query(ctx context.Context, write bool, fn func(*sql.Rows) error, query string, args ...any) error {
	args, err := bindArgs(args)
	if err != nil {
		return err
	}
	return c.run(ctx, write, func(ctx context.Context, q querier) error {
		rows, err := q.QueryContext(ctx, query, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			if err := fn(rows); err != nil {
				return err
			}
		}
		return rows.Err()
	})
}

// run calls f with the transaction, or else with a connection for writing or
// reading. f must use the context that it receives.
func (c conn) run(ctx context.Context, write bool, f func(context.Context, querier) error) error {
	if c.tx != nil {
		return c.tx.run(ctx, f)
	}
	// A statement fails temporarily before it returns its first row.
	return c.db.retry(ctx, func() error {
		if !write {
			return classifyError(ctx, f(ctx, c.db.reader))
		}
		single, release, err := c.db.acquireWriter(ctx, c.urgent)
		if err != nil {
			return err
		}
		defer release()
		if c.db.queue == nil {
			return classifyError(ctx, f(ctx, single))
		}
		// SQLite may store a change and report that it was cancelled.
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return classifyError(ctx, f(context.WithoutCancel(ctx), single))
	})
}

// run calls f with the transaction, unless an earlier statement failed.
func (t *transaction) run(ctx context.Context, f func(context.Context, querier) error) error {
	if t.failed == nil {
		err := f(ctx, t.Tx)
		t.failed = classifyEnd(ctx, err, err != nil && isDisconnected(err))
	}
	return t.failed
}
