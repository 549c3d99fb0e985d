package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
)

// maxStatements bounds what a connection to SQLite keeps of statements that it has read.
// The hub has about three hundred; a list makes some of its own.
const maxStatements = 512

// openSQL is [sql.Open] of SQLite, with connections that read each statement once: SQLite
// takes as long to read a short one as to carry it out, and its driver has no cache.
func openSQL(url string) (*sql.DB, error) {
	plain, err := sql.Open("sqlite", url)
	if err != nil {
		return nil, err
	}
	defer plain.Close() // it has connected to nothing
	return sql.OpenDB(connector{plain.Driver(), url}), nil
}

type connector struct {
	driver driver.Driver
	url    string
}

func (c connector) Driver() driver.Driver { return c.driver }

func (c connector) Connect(context.Context) (driver.Conn, error) {
	opened, err := c.driver.Open(c.url)
	if err != nil {
		return nil, err
	}
	return &connection{sqliteConn: opened.(sqliteConn), known: map[string]*statement{}}, nil
}

// sqliteConn is what the driver of SQLite can do.
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

// connection keeps the statements that it has read. Like every connection of a driver it
// is for one goroutine at a time.
type connection struct {
	sqliteConn
	known map[string]*statement
}

// statement is one that was read. It has one result at a time.
type statement struct {
	driver.Stmt
	busy bool
}

func (c *connection) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	s, err := c.statement(ctx, query)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return c.sqliteConn.ExecContext(ctx, query, args)
	}
	return s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
}

func (c *connection) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	s, err := c.statement(ctx, query)
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
	return &result{rows, s}, nil
}

// statement is what is kept of a query, nil where it has a result that is still read.
func (c *connection) statement(ctx context.Context, query string) (*statement, error) {
	if s := c.known[query]; s != nil {
		if s.busy {
			return nil, nil
		}
		return s, nil
	}
	read, err := c.sqliteConn.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	if len(c.known) >= maxStatements {
		c.forget()
	}
	s := &statement{Stmt: read}
	c.known[query] = s
	return s, nil
}

// forget drops the statements that have no result.
func (c *connection) forget() {
	for query, s := range c.known {
		if !s.busy {
			s.Stmt.Close()
			delete(c.known, query)
		}
	}
}

func (c *connection) Close() error {
	for _, s := range c.known {
		s.Stmt.Close()
	}
	return c.sqliteConn.Close()
}

// result gives its statement back when it is closed.
type result struct {
	driver.Rows
	of *statement
}

func (r *result) Close() error {
	r.of.busy = false
	return r.Rows.Close()
}
