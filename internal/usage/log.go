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

// MaxBytes is about how much is kept: when half of it is full, it is set aside, and
// what was set aside before is forgotten.
const MaxBytes = 8 << 20

// Log is a log to which any number of processes append at once. It is safe for
// concurrent use, keeps nothing open, and need not be closed. A nil one counts
// nothing.
type Log struct {
	path string
	half int64 // size at which the file is set aside
	log  *slog.Logger
	once sync.Once // tells of the first failure
}

// NewLog returns the log in the file at path, which the first use makes, readable
// by the user only. logger is told once where it cannot be written; nil discards.
func NewLog(path string, logger *slog.Logger) *Log {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return &Log{path: path, half: MaxBytes / 2, log: logger}
}

// Note appends a use, of which long names are cut. It takes some microseconds and
// never fails.
func (l *Log) Note(u Use) {
	if l == nil {
		return
	}
	if u.Time.IsZero() {
		u.Time = time.Now()
	}
	u.Time = u.Time.UTC().Truncate(time.Millisecond)
	b, err := u.encode()
	if err == nil {
		err = l.append(b)
	}
	if err != nil {
		l.once.Do(func() { l.log.Warn("usage is not counted", "error", err) })
	}
}

// append opens the file for each line: so a line is never written to one that was
// forgotten meanwhile. One that was just set aside is read too.
func (l *Log) append(b []byte) error {
	info, err := os.Lstat(l.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(filepath.Dir(l.path), 0o700); err != nil {
			return err
		}
	case err != nil:
		return err
	case !info.Mode().IsRegular(): // a pipe would wait for its reader
		return fmt.Errorf("%s is no regular file", l.path)
	case info.Size() >= l.half:
		if err := l.setAside(); err != nil && info.Size() >= 2*l.half {
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

// setAside begins another file, unless another process does or did.
func (l *Log) setAside() error {
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
	return os.Rename(l.path, aside(l.path))
}

// lock keeps others from setting aside until it is closed.
func (l *Log) lock(take func(*os.File) error) (*os.File, error) {
	f, err := os.OpenFile(l.path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := take(f); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Clear forgets everything that was counted. Uses that are noted meanwhile begin
// another file. It waits, until ctx ends, for a process that sets the file aside.
func (l *Log) Clear(ctx context.Context) error {
	if err := l.clear(ctx); err != nil {
		return fmt.Errorf("clear the log of usage: %w", err)
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
	for _, p := range []string{l.path, aside(l.path)} {
		if e := os.Remove(p); !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return errors.Join(err, lock.Close(), os.Remove(lock.Name()))
}

// aside is where the older half is.
func aside(path string) string { return path + ".old" }
