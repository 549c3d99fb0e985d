package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Errors that a caller can handle. Each error of this package wraps one of them
// or the cause of a cancelled context, or else reports an unexpected database
// failure.
var (
	// ErrNotFound is returned if a row, or a row that it belongs to, does not
	// exist.
	ErrNotFound = errors.New("not found")
	// ErrExists is returned if a name, id or digest is already taken.
	ErrExists = errors.New("already exists")
	// ErrConflict is returned if the row changed since the caller read it.
	ErrConflict = errors.New("changed concurrently")
	// ErrLeaseHeld is returned if another node holds the lease.
	ErrLeaseHeld = errors.New("lease held by another node")
	// ErrReferenced is returned if other rows still refer to the row.
	ErrReferenced = errors.New("still in use")
	// ErrInvalid is returned if a value cannot be stored because it is too
	// long, not valid text, or not valid JSON.
	ErrInvalid = errors.New("value cannot be stored")
	// ErrTooMany is returned if the number of items would exceed its limit.
	ErrTooMany = errors.New("too many")
	// ErrBusy is returned if a change timed out waiting for other changes. The
	// caller may try again.
	ErrBusy = errors.New("database is busy")
	// ErrFull is returned if the database disk is full. No part of the change
	// is stored.
	ErrFull = errors.New("database disk is full")
	// ErrUnavailable is returned if the database cannot be reached. A change in
	// progress may or may not have been stored.
	ErrUnavailable = errors.New("database cannot be reached")
	// ErrCorrupt is returned if stored data is damaged.
	ErrCorrupt = errors.New("data is damaged")
	// ErrTooNew is returned if a newer program created the schema.
	ErrTooNew = errors.New("database was created by a newer version of this program")
	// ErrUnsupported is returned if this kind of database does not support the
	// operation.
	ErrUnsupported = errors.New("not supported by this database")
)

// errRetry is returned if a transaction must start over because of a conflict.
var errRetry error = retryError{}

type retryError struct{}

func (retryError) Error() string { return "database is busy with other changes" }
func (retryError) Unwrap() error { return ErrBusy }

// lockTimeoutError reports that a statement waited [lockTimeout] for a lock. The
// transaction can start over.
type lockTimeoutError struct{}

func (lockTimeoutError) Error() string {
	return fmt.Sprintf("lock not available after %s: another node or transaction holds it; try again", lockTimeout)
}
func (lockTimeoutError) Unwrap() error { return ErrBusy }

// endedError reports that the server closed the connection of a transaction before
// its commit. The transaction can start over on another connection.
type endedError struct{ error }

func (e endedError) Unwrap() error { return e.error }

// classifyEnd is like [classifyError] for an error in a transaction. If ended is
// set, the connection was closed before the commit.
func classifyEnd(ctx context.Context, err error, ended bool) error {
	if err = classifyError(ctx, err); ended && errors.Is(err, ErrUnavailable) {
		return endedError{err}
	}
	return err
}

// isTemporary reports whether a transaction that failed with err can start over,
// because none of its changes were stored.
func isTemporary(err error) bool {
	_, ended := errors.AsType[endedError](err)
	return ended || errors.Is(err, errRetry) || errors.Is(err, lockTimeoutError{})
}

// classifyError converts a driver error to an error of this package. It omits
// connection details, because they contain host and user names.
func classifyError(ctx context.Context, err error) error {
	var (
		pg   *pgconn.PgError
		lite *sqlite.Error
	)
	switch {
	case err == nil || isKnown(err):
		return err
	case ctx.Err() != nil:
		return fmt.Errorf("cancelled while waiting for the database: %w", context.Cause(ctx))
	case errors.As(err, &pg):
		return classifyPostgres(pg)
	case errors.As(err, &lite):
		return classifySQLite(lite)
	case errors.Is(err, context.DeadlineExceeded), isDisconnected(err):
		return fmt.Errorf("%w: %s", ErrUnavailable, disconnectReason(err))
	}
	return fmt.Errorf("database: %w", err)
}

// isKnown reports whether err wraps one of this package's errors.
func isKnown(err error) bool {
	for _, k := range []error{ErrNotFound, ErrExists, ErrConflict, ErrLeaseHeld, ErrReferenced, ErrInvalid, ErrTooMany,
		ErrBusy, ErrFull, ErrUnavailable, ErrCorrupt, ErrTooNew, ErrUnsupported} {
		if errors.Is(err, k) {
			return true
		}
	}
	return false
}

// classifyPostgres converts a PostgreSQL error to an error of this package. The
// first two characters of its SQLSTATE are the error class.
func classifyPostgres(err *pgconn.PgError) error {
	switch err.Code {
	case "23505":
		return ErrExists
	case "23503":
		return ErrReferenced
	case "23514", "54000":
		return fmt.Errorf("%w: constraint %s", ErrInvalid, err.ConstraintName)
	case "40001", "40P01":
		return errRetry
	case "25P03": // rolled back, because this process did not run for idleTimeout
		return errRetry
	case "53100":
		return ErrFull
	case "55P03":
		return lockTimeoutError{}
	case "57014":
		return ErrBusy
	}
	switch class := err.Code[:min(2, len(err.Code))]; class {
	case "22":
		return fmt.Errorf("%w (%s)", ErrInvalid, err.Code)
	case "08", "28", "3D", "53", "57":
		return fmt.Errorf("%w: server returned %s", ErrUnavailable, err.Code)
	case "XX":
		return fmt.Errorf("%w (%s)", ErrCorrupt, err.Code)
	}
	return fmt.Errorf("database returned %s: %s", err.Code, err.Message)
}

// classifySQLite converts an SQLite error to an error of this package. The
// lowest byte of its extended result code is the primary result code.
func classifySQLite(err *sqlite.Error) error {
	switch err.Code() {
	case sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY:
		return ErrExists
	case sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY:
		return ErrReferenced
	case sqlite3.SQLITE_CONSTRAINT_CHECK, sqlite3.SQLITE_CONSTRAINT_NOTNULL:
		return fmt.Errorf("%w: %s", ErrInvalid, err)
	}
	switch err.Code() & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return ErrBusy
	case sqlite3.SQLITE_FULL:
		return ErrFull
	case sqlite3.SQLITE_TOOBIG:
		return ErrInvalid
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("%w: %s", ErrCorrupt, err)
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
		return fmt.Errorf("%w: %s", ErrUnavailable, err)
	}
	return fmt.Errorf("database: %s", err)
}

// isDisconnected reports whether err means that a connection was closed or
// could not be opened.
func isDisconnected(err error) bool {
	var (
		connect *pgconn.ConnectError
		network net.Error
	)
	return errors.As(err, &connect) || errors.As(err, &network) || errors.Is(err, driver.ErrBadConn) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, sql.ErrConnDone) || pgconn.SafeToRetry(err) || strings.Contains(err.Error(), "conn closed")
}

// disconnectReason describes a connection error without the server's address.
func disconnectReason(err error) string {
	var op *net.OpError
	switch {
	case errors.As(err, &op):
		return fmt.Sprintf("%s: %s", op.Op, op.Err)
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	}
	return "connection closed"
}
