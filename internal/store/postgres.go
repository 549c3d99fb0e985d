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

// openPostgres opens a PostgreSQL database. The URL may hold settings of the
// driver and the server, for example search_path, or
// default_query_exec_mode=exec for a pooler that gives each transaction another
// connection.
func openPostgres(address string, opts Options) (*DB, error) {
	config, err := pgx.ParseConfig(address)
	if err != nil {
		return nil, errors.New("open database: malformed postgres:// URL") // the cause would repeat the URL
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = 5 * time.Second
	}
	for name, value := range map[string]string{
		"application_name": "loadout",
		"random_page_cost": "1.1", // the default assumes spinning disks and prefers full scans
	} {
		if config.RuntimeParams[name] == "" {
			config.RuntimeParams[name] = value
		}
	}
	pool := stdlib.OpenDB(*config, stdlib.OptionResetSession(checkConnection))
	pool.SetMaxOpenConns(opts.Connections)
	pool.SetMaxIdleConns(opts.Connections)
	pool.SetConnMaxIdleTime(5 * time.Minute)
	return &DB{dialect: postgresDialect, writer: pool, reader: pool}, nil
}

// checkConnection detects a connection that the server has closed before a statement is
// sent over it, so that a restarted server is used at once. The check of the driver runs
// only after a second of idleness and takes a millisecond.
func checkConnection(_ context.Context, conn *pgx.Conn) error {
	if !isIdle(conn.PgConn().Conn()) {
		return driver.ErrBadConn
	}
	return nil
}

// isIdle reports whether a connection is open and has no unread input. Between
// answers, a server sends only its goodbye.
func isIdle(conn net.Conn) bool {
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
	// Control instead of Read, which waits for other readers: after a slow
	// write the driver may have a pending Read.
	err = raw.Control(func(fd uintptr) { silent = hasNoInput(fd) })
	return err == nil && silent
}
