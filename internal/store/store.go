// Package store keeps what a hub knows: people, skills with their versions and
// files, kinds, conversations, questions, grants, usage. It speaks to SQLite and to
// PostgreSQL with the same SQL, and promises the same on both.
//
// A [DB] has one field for each noun, as db.Skills or db.Users, whose methods are
// single changes or questions. What has to happen together happens in [DB.Tx]. Rows
// are plain structs; what is JSON in them is kept as it was given.
//
// The package decides nothing: who may see or change what is asked before. It knows
// no skill format and no cipher: digests, manifests and sealed bytes are given to
// it. Names are compared byte by byte; who wants them folded folds them.
//
// # Times
//
// Times are kept in milliseconds and returned in UTC; the zero time is kept. No order
// of things that matters is by a clock: it is by sequence numbers, and what expires
// between nodes expires by the clock of the database.
//
// # Bounds
//
// A text or a document has at most [MaxValue] bytes, many have less, as the schema says; what is
// beyond is refused with [ErrInvalid]. So is text that is not UTF-8 or has a NUL.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
)

// MaxValue bounds one value, in bytes: a document, a text, a file.
const MaxValue = 16 << 20

// Options are the settings of [Open]. The zero value is useful.
type Options struct {
	// Connections bounds those that are open at once, of SQLite the readers; 0 is 16.
	Connections int
	// Wait is for how long a change waits for its turn, or is tried again where others
	// were in the way, before it fails with [ErrBusy]; 0 is 10 s.
	Wait time.Duration
}

func (o *Options) orDefaults() Options {
	var out Options
	if o != nil {
		out = *o
	}
	if out.Connections <= 0 {
		out.Connections = 16
	}
	if out.Wait <= 0 {
		out.Wait = 10 * time.Second
	}
	return out
}

// DB is an open database. It is safe for concurrent use, also by several processes
// on one SQLite file of a local disk. One that goes away and comes back is used
// again without doing anything.
//
// With SQLite a change that has returned survives the end of the process; the last
// ones may be lost with the power, but never a part of one.
type DB struct {
	Tables
	dialect dialect
	writer  *sql.DB
	reader  *sql.DB // the same as writer, but of SQLite
	path    string  // of the file; "" unless it is SQLite
	wait    time.Duration
}

// Tables are the nouns that are kept. Those of a [DB] make a change of their own of
// each call; those of a [Tx] are part of it.
type Tables struct {
	Users    Users
	Tokens   Tokens
	Logins   Logins
	Groups   Groups
	Blobs    Blobs
	Skills   Skills
	Versions Versions
	Kinds    Kinds
	Refs     Refs
	Sessions Sessions
	Events   Events
	Leases   Leases
	Asks     Asks
	Grants   Grants
	Audit    Audit
	Usage    Usage
	Secrets  Secrets
	Settings Settings
	Notices  Notices
	Ratings  Ratings
	Defaults Defaults

	Attachments Attachments
	Meter       Meter
	Definitions Definitions
	Drafts      Drafts
	SignIns     SignIns
	Sent        SentMessages
}

func tables(c conn) Tables {
	return Tables{
		Users: Users{c}, Tokens: Tokens{c}, Logins: Logins{c}, Groups: Groups{c},
		Blobs: Blobs{c}, Skills: Skills{c}, Versions: Versions{c},
		Kinds: Kinds{c}, Refs: Refs{c},
		Sessions: Sessions{c}, Events: Events{c}, Leases: Leases{c}, Asks: Asks{c},
		Grants: Grants{c}, Audit: Audit{c}, Usage: Usage{c}, Secrets: Secrets{c}, Settings: Settings{c},
		Notices: Notices{c}, Ratings: Ratings{c}, Defaults: Defaults{c},
		Attachments: Attachments{c},
		Meter:       Meter{c}, Definitions: Definitions{c}, Drafts: Drafts{c}, SignIns: SignIns{c}, Sent: SentMessages{c},
	}
}

// Open opens a database and brings its schema to the newest that this program
// knows. The address is sqlite:PATH, or a path, of a file that is made where it is
// missing, readable by its owner only; or a postgres:// URL. Nodes that open one
// at the same time wait for each other. A schema that is newer than the program is
// refused with [ErrTooNew], one that others changed with [ErrCorrupt]. The caller closes it.
func Open(ctx context.Context, address string, opts *Options) (*DB, error) {
	db, err := open(ctx, address, opts.orDefaults())
	if err != nil {
		return nil, err
	}
	if err := db.migrate(ctx, migrations); err != nil {
		return nil, errors.Join(fmt.Errorf("open the %s database: %w", db.dialect.name, err), db.Close())
	}
	return db, nil
}

// open opens a database as it is.
func open(ctx context.Context, address string, opts Options) (*DB, error) {
	scheme, rest, found := strings.Cut(address, ":")
	var (
		db  *DB
		err error
	)
	switch {
	case scheme == "postgres" || scheme == "postgresql":
		db, err = openPostgres(address, opts)
	case scheme == "sqlite" && found:
		db, err = openSQLite(strings.TrimPrefix(rest, "//"), opts)
	case strings.Contains(address, "://"):
		return nil, fmt.Errorf("open the database: %.20q is neither sqlite: nor postgres://", scheme)
	default:
		db, err = openSQLite(address, opts)
	}
	if err != nil {
		return nil, err
	}
	db.wait = opts.Wait
	db.Tables = tables(conn{db: db})
	if err := db.Ping(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open the %s database: %w", db.dialect.name, err), db.Close())
	}
	return db, nil
}

// Ping asks the database whether it is there: [ErrUnavailable] where it is not.
func (db *DB) Ping(ctx context.Context) error {
	return classify(ctx, db.reader.PingContext(ctx))
}

// Kind names the database: SQLite or PostgreSQL.
func (db *DB) Kind() string { return db.dialect.name }

// Close waits for what is under way and closes the database.
func (db *DB) Close() error {
	err := db.reader.Close()
	if db.writer != db.reader {
		err = errors.Join(err, db.writer.Close())
	}
	if err != nil {
		return fmt.Errorf("close the database: %w", err)
	}
	return nil
}
