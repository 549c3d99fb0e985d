package usage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/internal/filelock"
)

// MaxBytes is the approximate maximum size of the log. The file is rotated at
// half this size, and the previously rotated file is deleted.
const MaxBytes = 8 << 20

// Log is a usage log that several processes can share. It is safe for
// concurrent use and keeps no file open. A nil *Log records nothing.
type Log struct {
	path string
	half int64 // size at which the file is rotated
	log  *slog.Logger
	once sync.Once // logs only the first failure

	delay   time.Duration // how long lines are collected; 0 writes each at once
	writing sync.Mutex    // held while collected lines are written; locked before mu
	mu      sync.Mutex    // guards the fields below
	lines   []byte        // collected lines
	timer   *time.Timer   // writes the lines; nil if there are none
	closed  bool
}

// NewLog returns a log that writes to path. The first use creates the file,
// which only the user can read. The first write error is logged to logger; nil
// discards it.
func NewLog(path string, logger *slog.Logger) *Log {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return &Log{path: path, half: MaxBytes / 2, log: logger}
}

// NewBufferedLog is like NewLog, but the log collects lines and writes them in
// the background, at the latest after delay. The caller must close it. A killed
// process loses the collected lines.
func NewBufferedLog(path string, delay time.Duration, logger *slog.Logger) *Log {
	l := NewLog(path, logger)
	l.delay = delay
	return l
}

// Close writes the collected lines and waits until they are written. Later uses
// are written at once.
func (l *Log) Close() {
	if l == nil {
		return
	}
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.flush()
}

// Note records a use in a few microseconds. It truncates long names. It does
// not report errors; NewLog's logger receives the first one.
func (l *Log) Note(u Use) {
	if l == nil {
		return
	}
	if u.Time.IsZero() {
		u.Time = time.Now()
	}
	u.Time = u.Time.UTC().Truncate(time.Millisecond)
	line, err := u.encode()
	switch {
	case err != nil:
		l.report(err)
	case l.delay == 0:
		l.write(line)
	default:
		for !l.collect(line) {
			l.flush()
		}
	}
}

// report logs the first error.
func (l *Log) report(err error) {
	l.once.Do(func() { l.log.Warn("could not record usage", "error", err) })
}

func (l *Log) write(lines []byte) {
	if err := l.append(lines); err != nil {
		l.report(err)
	}
}

// collect adds a line to the collected lines. It returns false if they must be
// written first: together they have at most maxLine bytes, so that appending them
// is atomic. After Close, collect writes the line at once.
func (l *Log) collect(line []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		l.write(line)
		return true
	case len(l.lines)+len(line) > maxLine:
		return false
	}
	l.lines = append(l.lines, line...)
	if l.timer == nil {
		l.timer = time.AfterFunc(l.delay, l.flush)
	}
	return true
}

// flush writes the collected lines, after those that are being written.
func (l *Log) flush() {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	lines := l.lines
	l.lines = nil
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	l.mu.Unlock()
	if len(lines) > 0 {
		l.write(lines)
	}
}

// append writes whole lines. It opens the file each time, so that no line is
// written to a deleted file. If the file was rotated in the meantime, reports
// still read the lines.
func (l *Log) append(b []byte) error {
	info, err := os.Lstat(l.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(filepath.Dir(l.path), 0o700); err != nil {
			return err
		}
	case err != nil:
		return err
	case !info.Mode().IsRegular(): // opening a pipe would block
		return fmt.Errorf("not a regular file: %s", l.path)
	case info.Size() >= l.half:
		if err := l.rotate(); err != nil && info.Size() >= 2*l.half {
			return err
		}
	}
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Close())
}

// rotate rotates the file unless another process is rotating it or has done so.
func (l *Log) rotate() error {
	lock, err := l.lock(filelock.TryLock)
	if errors.Is(err, filelock.ErrLocked) {
		return nil
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	info, err := os.Lstat(l.path)
	if err != nil || info.Size() < l.half {
		return err
	}
	return os.Rename(l.path, rotatedPath(l.path))
}

// lock opens the lock file for rotations and locks it with acquire. Closing the
// file releases the lock.
func (l *Log) lock(acquire func(*os.File) error) (*os.File, error) {
	f, err := os.OpenFile(l.path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := acquire(f); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Clear deletes all recorded uses. Uses recorded in the meantime go to a new
// file. Clear waits for another process's rotation until ctx is done.
func (l *Log) Clear(ctx context.Context) error {
	if err := l.clear(ctx); err != nil {
		return fmt.Errorf("clear usage log: %w", err)
	}
	return nil
}

func (l *Log) clear(ctx context.Context) error {
	if _, err := os.Lstat(filepath.Dir(l.path)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	lock, err := l.lock(func(f *os.File) error { return filelock.Lock(ctx, f) })
	if err != nil {
		return err
	}
	for _, p := range []string{l.path, rotatedPath(l.path)} {
		if e := os.Remove(p); !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return errors.Join(err, lock.Close(), os.Remove(lock.Name()))
}

// rotatedPath returns the path to which rotation moves the file at path.
func rotatedPath(path string) string { return path + ".old" }
