//go:build unix

package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"
	"time"

	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/sandbox"
)

// Disk usage is checked again when code could exceed a limit at these write
// rates, but no sooner than shortest and no later than longest.
const (
	bytesPerSecond = 4 << 30
	filesPerSecond = 200_000
	shortest       = 2 * time.Millisecond
	longest        = 50 * time.Millisecond
)

// errFull is returned to stop counting once a limit is exceeded.
var errFull = errors.New("disk limit exceeded")

// CheckLimits checks the size of the writable directories. It returns the
// reason if they exceed a limit, or "" if they do not, and the time until the
// next check. Files that cannot be counted are treated as exceeding the limit,
// so that code cannot hide files. Unlinked files that are still open are not
// counted.
func (b *Dir) CheckLimits(l sandbox.Limits) (why string, again time.Duration) {
	again = longest
	for _, d := range []struct {
		path string
		size int64
	}{{mountpoint.Work, l.Work}, {mountpoint.Tmp, l.Tmp}} {
		size, n, err := countFiles(b.HostPath(d.path), d.size, l.Inodes)
		switch {
		case size > d.size:
			return fmt.Sprintf("too much data in %s (limit %d MiB)", d.path, d.size>>20), shortest
		case n > l.Inodes:
			return fmt.Sprintf("too many files in %s (limit %d)", d.path, l.Inodes), shortest
		case err != nil:
			return fmt.Sprintf("cannot count the files in %s: %v", d.path, err), shortest
		}
		again = min(again, timeToFill(d.size-size, bytesPerSecond), timeToFill(int64(l.Inodes-n), filesPerSecond))
	}
	return "", max(again, shortest)
}

// timeToFill returns how long it takes to write n more bytes or files at the
// given rate, but at most one second.
func timeToFill(n, perSecond int64) time.Duration {
	return time.Duration(min(n, perSecond)) * time.Second / time.Duration(perSecond)
}

// countFiles returns the disk usage and the number of files below dir. It stops
// once a limit is exceeded.
func countFiles(dir string, maxSize int64, maxFiles int) (size int64, n int, err error) {
	err = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		var fi fs.FileInfo
		if err == nil {
			fi, err = e.Info()
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the file was removed meanwhile
		}
		if err != nil {
			return err
		}
		if st, ok := fi.Sys().(*syscall.Stat_t); ok {
			size += int64(st.Blocks) * 512
		}
		if n++; size > maxSize || n > maxFiles {
			return errFull
		}
		return nil
	})
	return size, n, err
}

// Watch checks the limits until ended is closed, but only while busy returns
// true. Whenever a limit is exceeded, it calls full with the reason.
func (b *Dir) Watch(l sandbox.Limits, ended <-chan struct{}, busy func() bool, full func(string)) {
	wait := shortest
	for {
		t := time.NewTimer(wait)
		select {
		case <-ended:
			t.Stop()
			return
		case <-t.C:
		}
		if wait = longest / 5; !busy() {
			continue
		}
		start := time.Now()
		why, again := b.CheckLimits(l)
		if why != "" {
			full(why)
		}
		wait = max(again, 4*time.Since(start)) // uses at most a fifth of a CPU
	}
}
