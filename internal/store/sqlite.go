package store

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// openSQLite opens a database file. It uses a single connection for writing, so
// that writers in this process take turns instead of failing. The other
// connections are read-only.
func openSQLite(path string, opts Options) (*DB, error) {
	if path == "" || strings.HasPrefix(path, ":") {
		return nil, errors.New("open database: the sqlite URL has no file path")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	if err := createPrivateFile(path); err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	writer, err := openSQL(sqliteURL(path, opts.Wait, "_txlock=immediate"))
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	writer.SetMaxOpenConns(1)
	writer.SetMaxIdleConns(1)
	reader, err := openSQL(sqliteURL(path, opts.Wait, "_pragma=query_only(1)"))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open database: %w", err), writer.Close())
	}
	reader.SetMaxOpenConns(opts.Connections)
	reader.SetMaxIdleConns(opts.Connections)
	reader.SetConnMaxIdleTime(5 * time.Minute) // each connection has a page cache
	return &DB{dialect: sqliteDialect, writer: writer, reader: reader, queue: new(writerQueue), path: path}, nil
}

// createPrivateFile creates a file that only its owner can read, unless the
// file exists. If SQLite created the file, others could read it. SQLite also
// uses the file's mode for its journal files.
func createPrivateFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// sqliteURL returns the URL with which the driver opens a file. A statement
// waits up to timeout for other processes.
func sqliteURL(path string, timeout time.Duration, pragmas ...string) string {
	settings := append([]string{
		"_pragma=busy_timeout(" + strconv.FormatInt(timeout.Milliseconds(), 10) + ")",
		"_pragma=journal_mode(WAL)",
		"_pragma=synchronous(NORMAL)",
		"_pragma=foreign_keys(1)",
	}, pragmas...)
	return "file:" + escapePath(path) + "?" + strings.Join(settings, "&")
}

// escapePath escapes an absolute path for a URL.
func escapePath(path string) string {
	path = "/" + strings.TrimPrefix(filepath.ToSlash(path), "/") // Windows paths start with a drive
	return "//" + (&url.URL{Path: path}).EscapedPath()
}
