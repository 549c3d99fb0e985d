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

// openPostgres opens a PostgreSQL database. The URL may contain driver and
// server settings, for example search_path. A pooler that gives each
// transaction another connection needs default_query_exec_mode=exec.
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

// checkConnection returns an error if the server has closed a pooled
// connection. The pool then opens another one, so that statements succeed right
// after a server restart. The driver's own check takes a millisecond and only
// covers connections that were idle for a second.
func checkConnection(_ context.Context, conn *pgx.Conn) error {
	if !isIdle(conn.PgConn().Conn()) {
		return driver.ErrBadConn
	}
	return nil
}

// isIdle reports whether a connection is open and has no unread input. Between
// responses, a server sends data only when it shuts down.
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
	// Use Control instead of Read, which waits for other readers. After a slow
	// write, the driver may have a pending Read.
	err = raw.Control(func(fd uintptr) { silent = hasNoInput(fd) })
	return err == nil && silent
}
