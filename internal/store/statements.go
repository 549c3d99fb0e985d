package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
)

// maxStatements limits the prepared statements of one SQLite connection. The
// hub has about three hundred, and lists add some of their own.
const maxStatements = 512

// openSQL is like [sql.Open] for SQLite, with connections that prepare each
// statement once. Preparing a short statement takes SQLite as long as executing
// it, and its driver has no cache.
func openSQL(url string) (*sql.DB, error) {
	plain, err := sql.Open("sqlite", url)
	if err != nil {
		return nil, err
	}
	defer plain.Close() // has no connections
	return sql.OpenDB(cachingConnector{plain.Driver(), url}), nil
}

// cachingConnector opens connections that cache their prepared statements.
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

// sqliteConn lists the interfaces that a connection of the SQLite driver
// implements.
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

// cachingConn is a connection that caches its prepared statements. Like every
// driver connection, it serves one goroutine at a time.
type cachingConn struct {
	sqliteConn
	statements map[string]*cachedStatement
}

// cachedStatement is a prepared statement. It is busy while a result is open.
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

// prepare returns the cached statement of a query, or nil if the statement has
// an open result.
func (c *cachingConn) prepare(ctx context.Context, query string) (*cachedStatement, error) {
	if s := c.statements[query]; s != nil {
		if s.busy {
			return nil, nil
		}
		return s, nil
	}
	read, err := c.sqliteConn.PrepareContext(ctx, query)
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

// closeIdle closes the statements without an open result.
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

// cachedRows is the result of a cached statement. Close releases the statement.
type cachedRows struct {
	driver.Rows
	statement *cachedStatement
}

func (r *cachedRows) Close() error {
	r.statement.busy = false
	return r.Rows.Close()
}
