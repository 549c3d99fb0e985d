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

// openSQLite opens a file. One connection writes, so that those who write in this
// process wait for each other in turn and none is refused; others only read, and
// cannot write by mistake.
func openSQLite(path string, opts Options) (*DB, error) {
	if path == "" || strings.HasPrefix(path, ":") {
		return nil, errors.New("open the database: sqlite: needs the path of a file")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	if err := ownFile(path); err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	writer, err := openSQL(sqliteURL(path, opts.Wait, "_txlock=immediate"))
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	writer.SetMaxOpenConns(1)
	writer.SetMaxIdleConns(1)
	reader, err := openSQL(sqliteURL(path, opts.Wait, "_pragma=query_only(1)"))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the database: %w", err), writer.Close())
	}
	reader.SetMaxOpenConns(opts.Connections)
	reader.SetMaxIdleConns(opts.Connections)
	reader.SetConnMaxIdleTime(5 * time.Minute) // each has a cache of pages
	return &DB{dialect: sqliteDialect, writer: writer, reader: reader, path: path}, nil
}

// ownFile makes the file, for its owner alone: SQLite would make it readable by
// others. What SQLite puts beside it has the same mode.
func ownFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// sqliteURL is how the driver is told to open a file, and for how long to wait for
// other processes.
func sqliteURL(path string, wait time.Duration, more ...string) string {
	settings := append([]string{
		"_pragma=busy_timeout(" + strconv.FormatInt(wait.Milliseconds(), 10) + ")",
		"_pragma=journal_mode(WAL)",
		"_pragma=synchronous(NORMAL)",
		"_pragma=foreign_keys(1)",
	}, more...)
	return "file:" + escapePath(path) + "?" + strings.Join(settings, "&")
}

// escapePath writes an absolute path as in a URL.
func escapePath(path string) string {
	path = "/" + strings.TrimPrefix(filepath.ToSlash(path), "/") // also where paths begin with a drive
	return "//" + (&url.URL{Path: path}).EscapedPath()
}
