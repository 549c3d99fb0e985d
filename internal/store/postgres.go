package store

import (
	"context"
	"crypto/tls"
	"database/sql/driver"
	"errors"
	"net"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// Timeouts of connections to PostgreSQL. They limit how long a node that hangs,
// or that lost its network, holds up the others. The database URL can override
// the timeouts of the server.
const (
	// lockTimeout is how long a statement waits for a lock before its transaction
	// starts over; see [Options.Wait].
	lockTimeout = 2 * time.Second
	// idleTimeout is how long a transaction may wait for its next statement
	// before the server rolls it back and releases its locks.
	idleTimeout = 3 * time.Second
	// tcpTimeout is how long sent data may remain unacknowledged.
	tcpTimeout = 10 * time.Second
)

// keepAlive detects a broken connection within about 10 s.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 4 * time.Second, Interval: 2 * time.Second, Count: 3}

// dialer opens connections to the server.
var dialer = &net.Dialer{KeepAliveConfig: keepAlive, Control: func(_, _ string, c syscall.RawConn) error {
	var failure error
	err := c.Control(func(fd uintptr) { failure = setUserTimeout(fd, tcpTimeout) })
	return errors.Join(err, failure)
}}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

func seconds(d time.Duration) string { return strconv.Itoa(int(d.Seconds())) }

// openPostgres opens a PostgreSQL database. The URL may contain driver and
// server settings, for example search_path. If a pooler may run each
// transaction on a different connection, the URL must contain
// default_query_exec_mode=exec.
func openPostgres(address string, opts Options) (*DB, error) {
	config, err := pgx.ParseConfig(address)
	if err != nil {
		return nil, errors.New("open database: malformed postgres:// URL") // the cause would repeat the URL
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = 5 * time.Second
	}
	config.DialFunc = dialer.DialContext
	for name, value := range map[string]string{
		"application_name": "loadout",
		"random_page_cost": "1.1", // the default assumes spinning disks and prefers full scans

		"lock_timeout":                        milliseconds(lockTimeout),
		"idle_in_transaction_session_timeout": milliseconds(idleTimeout),
		"tcp_keepalives_idle":                 seconds(keepAlive.Idle),
		"tcp_keepalives_interval":             seconds(keepAlive.Interval),
		"tcp_keepalives_count":                strconv.Itoa(keepAlive.Count),
		"tcp_user_timeout":                    milliseconds(tcpTimeout),
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
