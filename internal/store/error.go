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

// What a program can act on. Errors of this package wrap one of these, that of
// the context which ended, or else say what the database said of a fault that is
// no answer.
var (
	// ErrNotFound says that there is no such thing, or that what it belongs to is not there.
	ErrNotFound = errors.New("not found")
	// ErrExists says that there is one of that name, id or digest already.
	ErrExists = errors.New("it exists already")
	// ErrConflict says that it is not, or not any more, what the caller took it for.
	ErrConflict = errors.New("it was changed in the meantime")
	// ErrHeld says that another node has the lease.
	ErrHeld = errors.New("another node has it")
	// ErrReferenced says that other things still refer to it.
	ErrReferenced = errors.New("others refer to it")
	// ErrInvalid says that a value cannot be kept: it is too long, or no text, or no JSON.
	ErrInvalid = errors.New("it cannot be kept as it is")
	// ErrTooMany says that a bound on the number of things is reached.
	ErrTooMany = errors.New("there are too many")
	// ErrBusy says that others kept the database busy; the same may work later.
	ErrBusy = errors.New("the database is busy")
	// ErrFull says that the disk of the database is full. Nothing of the change is kept.
	ErrFull = errors.New("the disk of the database is full")
	// ErrUnavailable says that the database cannot be reached. Of a change that was
	// under way it is not known whether it is kept.
	ErrUnavailable = errors.New("the database cannot be reached")
	// ErrCorrupt says that what is kept is damaged.
	ErrCorrupt = errors.New("the data is damaged")
	// ErrTooNew says that a newer program made the schema.
	ErrTooNew = errors.New("the database was made by a newer version of this program")
	// ErrUnsupported says that this kind of database does it in another way.
	ErrUnsupported = errors.New("not with this database")
)

// errAgain says that a transaction lost against another and has to begin again.
var errAgain error = again{}

type again struct{}

func (again) Error() string { return "the database is busy with changes of others" }
func (again) Unwrap() error { return ErrBusy }

// classify makes what a driver said one of the errors of this package. What the
// drivers say of connecting is left out: it names hosts and users.
func classify(ctx context.Context, err error) error {
	var (
		pg   *pgconn.PgError
		lite *sqlite.Error
	)
	switch {
	case err == nil || known(err):
		return err
	case ctx.Err() != nil:
		return fmt.Errorf("the database was not waited for: %w", context.Cause(ctx))
	case errors.As(err, &pg):
		return classifyPostgres(pg)
	case errors.As(err, &lite):
		return classifySQLite(lite)
	case errors.Is(err, context.DeadlineExceeded), disconnected(err):
		return fmt.Errorf("%w: %s", ErrUnavailable, reason(err))
	}
	return fmt.Errorf("the database: %w", err)
}

// known reports whether an error is one of this package already.
func known(err error) bool {
	for _, k := range []error{ErrNotFound, ErrExists, ErrConflict, ErrHeld, ErrReferenced, ErrInvalid, ErrTooMany,
		ErrBusy, ErrFull, ErrUnavailable, ErrCorrupt, ErrTooNew, ErrUnsupported} {
		if errors.Is(err, k) {
			return true
		}
	}
	return false
}

// classifyPostgres reads the SQLSTATE: its first two characters are a class.
func classifyPostgres(err *pgconn.PgError) error {
	switch err.Code {
	case "23505":
		return ErrExists
	case "23503":
		return ErrReferenced
	case "23514", "54000":
		return fmt.Errorf("%w: the bound %s", ErrInvalid, err.ConstraintName)
	case "40001", "40P01":
		return errAgain
	case "53100":
		return ErrFull
	case "55P03", "57014":
		return ErrBusy
	}
	switch class := err.Code[:min(2, len(err.Code))]; class {
	case "22":
		return fmt.Errorf("%w (%s)", ErrInvalid, err.Code)
	case "08", "28", "3D", "53", "57":
		return fmt.Errorf("%w: it answers %s", ErrUnavailable, err.Code)
	case "XX":
		return fmt.Errorf("%w (%s)", ErrCorrupt, err.Code)
	}
	return fmt.Errorf("the database answers %s: %s", err.Code, err.Message)
}

// classifySQLite reads the extended result code: its lowest byte is the class.
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
	return fmt.Errorf("the database: %s", err)
}

// disconnected reports whether a connection ended or never came about.
func disconnected(err error) bool {
	var (
		connect *pgconn.ConnectError
		network net.Error
	)
	return errors.As(err, &connect) || errors.As(err, &network) || errors.Is(err, driver.ErrBadConn) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, sql.ErrConnDone) || pgconn.SafeToRetry(err) || strings.Contains(err.Error(), "conn closed")
}

// reason says why there is no connection, without the address of the server.
func reason(err error) string {
	var op *net.OpError
	switch {
	case errors.As(err, &op):
		return fmt.Sprintf("%s: %s", op.Op, op.Err)
	case errors.Is(err, context.DeadlineExceeded):
		return "it takes too long"
	}
	return "the connection ended"
}
