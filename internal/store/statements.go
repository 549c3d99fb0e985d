package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"strings"
	"sync"

	"modernc.org/sqlite"
)

// maxStatements is the maximum number of prepared statements cached per SQLite
// connection. The hub uses about 300, and list queries add more.
const maxStatements = 512

// openSQL is like [sql.Open] for SQLite, but its connections prepare each
// statement only once. Preparing a short statement takes SQLite as long as
// executing it, and the driver has no cache.
func openSQL(url string) (*sql.DB, error) {
	if err := registerPosition(); err != nil {
		return nil, err
	}
	plain, err := sql.Open("sqlite", url)
	if err != nil {
		return nil, err
	}
	defer plain.Close() // has no connections
	return sql.OpenDB(cachingConnector{plain.Driver(), url}), nil
}

// registerPosition adds the function loadout_position to new connections. It returns
// what SQLite's instr returns for two texts, but takes less time for long ones.
var registerPosition = sync.OnceValue(func() error {
	return sqlite.RegisterDeterministicScalarFunction("loadout_position", 2, func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
		text, ok := args[0].(string)
		part, both := args[1].(string)
		if !ok || !both {
			return nil, nil
		}
		return int64(strings.Index(text, part) + 1), nil
	})
})

// cachingConnector opens connections that cache prepared statements.
type cachingConnector struct {
	driver driver.Driver
	url    string
}

func (c cachingConnector) Driver() driver.Driver { return c.driver }

func (c cachingConnector) Connect(context.Context) (driver.Conn, error) {
	opened, err := c.driver.Open(c.url)
	if err != nil {
		return nil, err
	}
	return &cachingConn{sqliteConn: opened.(sqliteConn), statements: map[string]*cachedStatement{}}, nil
}

// sqliteConn is the set of interfaces that the SQLite driver's connections
// implement.
type sqliteConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// cachingConn is a connection that caches prepared statements. Like every
// driver connection, it must be used by only one goroutine at a time.
type cachingConn struct {
	sqliteConn
	statements map[string]*cachedStatement
}

// cachedStatement is a prepared statement. It is busy while it has open rows.
type cachedStatement struct {
	driver.Stmt
	busy bool
}

func (c *cachingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	s, err := c.prepare(ctx, query)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return c.sqliteConn.ExecContext(ctx, query, args)
	}
	return s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
}

func (c *cachingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	s, err := c.prepare(ctx, query)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return c.sqliteConn.QueryContext(ctx, query, args)
	}
	rows, err := s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
	if err != nil {
		return nil, err
	}
	s.busy = true
	return &cachedRows{rows, s}, nil
}

// prepare returns the cached prepared statement for query, or nil if that
// statement still has open rows.
func (c *cachingConn) prepare(ctx context.Context, query string) (*cachedStatement, error) {
	if s := c.statements[query]; s != nil {
		if s.busy {
			return nil, nil
		}
		return s, nil
	}
	read, err := c.sqliteConn.PrepareContext(ctx, fixedPlan(query))
	if err != nil {
		return nil, err
	}
	if len(c.statements) >= maxStatements {
		c.closeIdle()
	}
	s := &cachedStatement{Stmt: read}
	c.statements[query] = s
	return s, nil
}

// fixedPlan rewrites the limits in a query that consist only of a parameter.
// SQLite would prepare such a statement again at each execution, because its
// query planner uses the value of the parameter.
func fixedPlan(query string) string { return strings.ReplaceAll(query, "LIMIT $", "LIMIT 0+$") }

// closeIdle closes the statements that have no open rows.
func (c *cachingConn) closeIdle() {
	for query, s := range c.statements {
		if !s.busy {
			s.Stmt.Close()
			delete(c.statements, query)
		}
	}
}

func (c *cachingConn) Close() error {
	for _, s := range c.statements {
		s.Stmt.Close()
	}
	return c.sqliteConn.Close()
}

// cachedRows are the rows of a cached statement. Close releases the statement.
type cachedRows struct {
	driver.Rows
	statement *cachedStatement
}

func (r *cachedRows) Close() error {
	r.statement.busy = false
	return r.Rows.Close()
}
