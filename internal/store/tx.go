package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Tx is a transaction. It is for one goroutine, until the function that got it
// returns.
type Tx struct{ Tables }

// Tx calls f and keeps everything that it changed through its argument, or, where
// f or the end of the transaction fails, nothing. What f reads is as if nobody else
// was at work. Where others were in the way f is called again, for as long as
// [Options.Wait] says, so that it has no effects but those on tx; then it fails with
// [ErrBusy]. Once a change failed nothing is kept, even where f returns nil. f uses tx
// only: a change through db waits for the end of f, and so fails.
func (db *DB) Tx(ctx context.Context, f func(tx *Tx) error) error {
	return conn{db: db}.atomic(ctx, func(c conn) error { return f(&Tx{tables(c)}) })
}

// conn is where the SQL of a noun goes: to a transaction, or to the database.
type conn struct {
	db *DB
	tx *work // nil outside a transaction
}

// work is a transaction under way.
type work struct {
	*sql.Tx
	// failed is the first error of a change. PostgreSQL answers nothing after one,
	// SQLite would go on.
	failed error
}

// querier is what a connection and a transaction have in common.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// atomic calls f in the transaction that there is, or in one of its own.
func (c conn) atomic(ctx context.Context, f func(conn) error) error {
	if c.tx != nil {
		err := f(c)
		if err != nil && c.tx.failed == nil {
			c.tx.failed = err // a part of it may be done
		}
		return err
	}
	// Not by a number of tries: PostgreSQL finds a conflict where two only use the same
	// page of an index, so that a dozen losses in a row are nothing special among many.
	began := time.Now()
	for try := 1; ; try++ {
		err := c.once(ctx, sql.LevelSerializable, f)
		if !errors.Is(err, errAgain) || time.Since(began) > c.db.wait {
			return err
		}
		if err := pause(ctx, try); err != nil {
			return err
		}
	}
}

// once calls f in a transaction of its own.
func (c conn) once(ctx context.Context, level sql.IsolationLevel, f func(conn) error) error {
	single, err := c.db.turn(ctx)
	if err != nil {
		return err
	}
	defer single.Close()
	tx, err := single.BeginTx(ctx, &sql.TxOptions{Isolation: level})
	if err != nil {
		return classify(ctx, err)
	}
	defer tx.Rollback() // without effect after a commit
	t := &work{Tx: tx}
	if err := f(conn{db: c.db, tx: t}); err != nil {
		return err
	}
	if t.failed != nil {
		return t.failed
	}
	return classify(ctx, tx.Commit())
}

// turn returns a connection to write with. It waits for one for a bounded time: who
// has them may be waiting for this very change.
func (db *DB) turn(ctx context.Context) (*sql.Conn, error) {
	wait, stop := context.WithTimeoutCause(ctx, db.wait, ErrBusy)
	defer stop()
	single, err := db.writer.Conn(wait)
	if err != nil && wait.Err() != nil {
		return nil, fmt.Errorf("wait for a turn to write: %w", context.Cause(wait))
	}
	return single, classify(ctx, err)
}

// pause waits for a moment that grows, and differs between those who wait.
func pause(ctx context.Context, try int) error {
	bound := min(time.Millisecond<<min(try, 10), 200*time.Millisecond)
	select {
	case <-time.After(rand.N(bound) + bound/4):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// exec runs a statement and returns how many rows it changed.
func (c conn) exec(ctx context.Context, query string, args ...any) (int64, error) {
	args, err := bind(args)
	if err != nil {
		return 0, err
	}
	var n int64
	err = c.run(ctx, true, func(q querier) error {
		result, err := q.ExecContext(ctx, query, args...)
		if err != nil {
			return err
		}
		n, err = result.RowsAffected()
		return err
	})
	return n, err
}

// query calls each for every row that a question, or with write a change, returns.
func (c conn) query(ctx context.Context, write bool, each func(*sql.Rows) error, query string, args ...any) error {
	args, err := bind(args)
	if err != nil {
		return err
	}
	return c.run(ctx, write, func(q querier) error {
		rows, err := q.QueryContext(ctx, query, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			if err := each(rows); err != nil {
				return err
			}
		}
		return rows.Err()
	})
}

// run gives f what it asks.
func (c conn) run(ctx context.Context, write bool, f func(querier) error) error {
	if c.tx != nil {
		return c.tx.run(ctx, f)
	}
	if !write {
		return classify(ctx, f(c.db.reader))
	}
	single, err := c.db.turn(ctx)
	if err != nil {
		return err
	}
	defer single.Close()
	return classify(ctx, f(single))
}

// run gives f the transaction, unless a statement of it failed before.
func (t *work) run(ctx context.Context, f func(querier) error) error {
	if t.failed == nil {
		t.failed = classify(ctx, f(t.Tx))
	}
	return t.failed
}
