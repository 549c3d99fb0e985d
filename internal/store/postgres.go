package store

import (
	"context"
	"crypto/tls"
	"database/sql/driver"
	"errors"
	"net"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// openPostgres opens a PostgreSQL database. Settings of the driver and the server
// may be in the URL, as search_path, or default_query_exec_mode=exec behind a pooler
// that gives each transaction another connection.
func openPostgres(address string, opts Options) (*DB, error) {
	config, err := pgx.ParseConfig(address)
	if err != nil {
		return nil, errors.New("open the database: the postgres:// URL cannot be read") // what is wrong would repeat it
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = 5 * time.Second
	}
	for name, value := range map[string]string{
		"application_name": "loadout",
		"random_page_cost": "1.1", // by default it is that of turning disks, and tables are read whole
	} {
		if config.RuntimeParams[name] == "" {
			config.RuntimeParams[name] = value
		}
	}
	pool := stdlib.OpenDB(*config, stdlib.OptionResetSession(alive))
	pool.SetMaxOpenConns(opts.Connections)
	pool.SetMaxIdleConns(opts.Connections)
	pool.SetConnMaxIdleTime(5 * time.Minute)
	return &DB{dialect: postgresDialect, writer: pool, reader: pool}, nil
}

// alive gives up a connection that the server has closed before anything is sent on
// it, so that a server which was restarted is used at once. The driver itself asks only
// after a second, and its own check takes a millisecond.
func alive(_ context.Context, conn *pgx.Conn) error {
	if !quiet(conn.PgConn().Conn()) {
		return driver.ErrBadConn
	}
	return nil
}

// quiet reports whether a connection is open and nothing has come in: between answers
// a server says nothing but goodbye.
func quiet(conn net.Conn) bool {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	c, ok := conn.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	silent := false
	// Not Read, which waits for other readers: the driver may have left one that waits
	// for the next answer, since a write of it was slow.
	err = raw.Control(func(fd uintptr) { silent = nothingToRead(fd) })
	return err == nil && silent
}
