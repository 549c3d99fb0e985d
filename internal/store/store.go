// Package store provides the database of a hub. It stores users, skills with
// their versions and files, other resources, conversations, approval requests,
// grants and usage. It uses the same SQL for SQLite and PostgreSQL and gives the
// same guarantees on both.
//
// A [DB] has a field for each table or group of tables, for example db.Skills or
// db.Users. Each method makes one change or one query. [DB.Tx] combines several
// in a transaction. Rows are plain structs. JSON in them is stored unchanged.
// Start reading at [Open].
//
// The package does not check permissions; callers do. It neither parses skills
// nor encrypts: callers pass digests, manifests and encrypted bytes. It compares
// names byte by byte.
//
// # Times
//
// Times are stored in milliseconds and returned in UTC. The zero time remains
// zero. Sequence numbers, not clocks, define the order of events. Leases expire
// according to the database's clock.
//
// # Limits
//
// A value has at most [MaxValue] bytes; the schema limits many columns to less.
// Larger values fail with [ErrInvalid], as does text that is not UTF-8 or
// contains a NUL.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
)

// MaxValue is the maximum size, in bytes, of a value: a JSON document, a string
// or a file.
const MaxValue = 16 << 20

// Options configures [Open]. The zero value selects the defaults.
type Options struct {
	// Connections is the maximum number of open connections; for SQLite, it
	// limits only the connections for reading. 0 means 16.
	Connections int
	// Wait is how long a change waits for another one and retries after conflicts
	// before it fails with [ErrBusy]. 0 means 10 s. With SQLite, the changes of
	// this process take turns, and Wait limits how long a change waits for each
	// earlier one.
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

// DB is an open database. It is safe for concurrent use. Several processes can
// open the same SQLite file if it is on a local disk. DB reconnects
// automatically.
//
// With SQLite, a completed change survives a process crash. A power failure may
// lose the last changes, but never only a part of a change.
type DB struct {
	Tables
	dialect dialect
	writer  *sql.DB
	reader  *sql.DB      // same as writer for PostgreSQL
	queue   *writerQueue // queue for the only connection that writes; nil for PostgreSQL
	path    string       // SQLite file; "" for PostgreSQL
	wait    time.Duration
}

// Tables groups the stored data. In a [DB], each call is its own transaction;
// in a [Tx], it is part of that transaction.
type Tables struct {
	Users            Users
	Tokens           Tokens
	Logins           Logins
	Groups           Groups
	Blobs            Blobs
	Skills           Skills
	Versions         Versions
	Kinds            Kinds
	Refs             Refs
	Sessions         Sessions
	Events           Events
	Leases           Leases
	ApprovalRequests ApprovalRequests
	Grants           Grants
	Audit            Audit
	Usage            Usage
	Secrets          Secrets
	Settings         Settings
	Notifications    Notifications
	Ratings          Ratings
	Defaults         Defaults

	Attachments     Attachments
	Meter           Meter
	ToolDefinitions ToolDefinitions
	Drafts          Drafts
	SignIns         SignIns
	SentMessages    SentMessages
	Requests        Requests
	Storage         Storage
	Snapshots       Snapshots
	Durations       Durations
	Shares          Shares
	Invitations     Invitations
	Folders         Folders
	TrialAgents     TrialAgents

	ConversationWords ConversationWords
	Comments          Comments
	ChangeRequests    ChangeRequests
	ViewedFiles       ViewedFiles
	SourceChecks      SourceChecks
}

func tables(c conn) Tables {
	return Tables{
		Users: Users{c}, Tokens: Tokens{c}, Logins: Logins{c}, Groups: Groups{c},
		Blobs: Blobs{c}, Skills: Skills{c}, Versions: Versions{c},
		Kinds: Kinds{c}, Refs: Refs{c},
		Sessions: Sessions{c}, Events: Events{c}, Leases: Leases{c}, ApprovalRequests: ApprovalRequests{c},
		Grants: Grants{c}, Audit: Audit{c}, Usage: Usage{c}, Secrets: Secrets{c}, Settings: Settings{c},
		Notifications: Notifications{c}, Ratings: Ratings{c}, Defaults: Defaults{c},
		Attachments: Attachments{c},
		Meter:       Meter{c}, ToolDefinitions: ToolDefinitions{c}, Drafts: Drafts{c}, SignIns: SignIns{c}, SentMessages: SentMessages{c}, Requests: Requests{c},
		Storage: Storage{c}, Snapshots: Snapshots{c}, Durations: Durations{c}, Shares: Shares{c}, Invitations: Invitations{c}, Folders: Folders{c}, TrialAgents: TrialAgents{c},
		ConversationWords: ConversationWords{c},
		Comments:          Comments{c},
		ChangeRequests:    ChangeRequests{c},
		ViewedFiles:       ViewedFiles{c},
		SourceChecks:      SourceChecks{c},
	}
}

// Open opens a database and migrates its schema to the newest version that this
// program knows. The address is sqlite:PATH, a path, or a postgres:// URL. Open
// creates a missing SQLite file, readable only by its owner. Nodes that open a
// database at the same time wait for each other. Open fails with [ErrTooNew] if
// a newer program created the schema, and with [ErrCorrupt] if another program
// changed it. The caller must close the database.
func Open(ctx context.Context, address string, opts *Options) (*DB, error) {
	db, err := open(ctx, address, opts.orDefaults())
	if err != nil {
		return nil, err
	}
	if err := db.migrate(ctx, migrations); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s database: %w", db.dialect.name, err), db.Close())
	}
	return db, nil
}

// open opens a database without migrating it.
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
		return nil, fmt.Errorf("open database: unsupported scheme %.20q: want sqlite: or postgres://", scheme)
	default:
		db, err = openSQLite(address, opts)
	}
	if err != nil {
		return nil, err
	}
	db.wait = opts.Wait
	db.Tables = tables(conn{db: db})
	if err := db.connect(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s database: %w", db.dialect.name, err), db.Close())
	}
	return db, nil
}

// connect makes the first connection. It tries for up to db.wait, because SQLite
// does not wait if several processes switch a new file to write-ahead logging at
// the same time.
func (db *DB) connect(ctx context.Context) error {
	waiting, stop := context.WithTimeout(ctx, db.wait)
	defer stop()
	for try := 1; ; try++ {
		err := db.Ping(ctx)
		if !errors.Is(err, ErrBusy) || backOff(waiting, try) != nil {
			return err
		}
	}
}

// Ping checks the connection. It fails with [ErrUnavailable] if the database
// cannot be reached.
func (db *DB) Ping(ctx context.Context) error {
	return classifyError(ctx, db.reader.PingContext(ctx))
}

// CheckWrite checks that a node can write: it inserts and deletes a row in one
// transaction. It fails with [ErrBusy] while another transaction locks a table
// that conversations need, and with other errors of the database.
func (db *DB) CheckWrite(ctx context.Context, node string) error {
	err := db.retry(ctx, func() error {
		// Not serializable, so that it does not conflict with appended events.
		return conn{db: db}.runTx(ctx, sql.LevelDefault, func(c conn) error {
			if _, err := c.exec(ctx, "DELETE FROM events WHERE stream = ''"); err != nil { // there is none
				return err
			}
			name := "ready/" + node
			if _, err := c.exec(ctx, "INSERT INTO leases (name, node, fence, until, span) VALUES ($1, '', 1, 0, 0) ON CONFLICT (name) DO UPDATE SET fence = leases.fence + 1", name); err != nil {
				return err
			}
			_, err := c.exec(ctx, "DELETE FROM leases WHERE name = $1", name)
			return err
		})
	})
	if err != nil {
		return fmt.Errorf("check writes: %w", err)
	}
	return nil
}

// Kind returns the name of the database system: SQLite or PostgreSQL.
func (db *DB) Kind() string { return db.dialect.name }

// Close waits for running statements to finish and closes the database.
func (db *DB) Close() error {
	err := db.reader.Close()
	if db.writer != db.reader {
		err = errors.Join(err, db.writer.Close())
	}
	if err != nil {
		return fmt.Errorf("close database: %w", err)
	}
	return nil
}
