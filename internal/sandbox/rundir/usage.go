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

// The disk usage is checked as soon as the limits could be exceeded at these
// rates, but within these intervals.
const (
	bytesPerSecond = 4 << 30
	filesPerSecond = 200_000
	shortest       = 2 * time.Millisecond
	longest        = 50 * time.Millisecond
)

// errFull stops a count that exceeds the limits.
var errFull = errors.New("full")

// CheckLimits returns which limit the writable directories exceed, or "", and
// when to check again. If counting fails, it reports that as exceeded, so that
// code cannot hide files. It does not see open files that were removed.
func (b *Dir) CheckLimits(l sandbox.Limits) (why string, again time.Duration) {
	again = longest
	for _, d := range []struct {
		path string
		size int64
	}{{mountpoint.Work, l.Work}, {mountpoint.Tmp, l.Tmp}} {
		size, n, err := countFiles(b.HostPath(d.path), d.size, l.Inodes)
		switch {
		case size > d.size:
			return fmt.Sprintf("more than %d MiB written to %s", d.size>>20, d.path), shortest
		case n > l.Inodes:
			return fmt.Sprintf("more than %d files in %s", l.Inodes, d.path), shortest
		case err != nil:
			return fmt.Sprintf("cannot count the files in %s: %v", d.path, err), shortest
		}
		again = min(again, time.Duration(d.size-size)*time.Second/bytesPerSecond, time.Duration(l.Inodes-n)*time.Second/filesPerSecond)
	}
	return "", max(again, shortest)
}

// countFiles returns the disk usage below dir. It stops when a limit is exceeded.
func countFiles(dir string, maxSize int64, maxFiles int) (size int64, n int, err error) {
	err = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		var fi fs.FileInfo
		if err == nil {
			fi, err = e.Info()
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed meanwhile
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

// Watch checks the limits while busy returns true, until ended is closed. It
// calls full with the reason each time a limit is exceeded.
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
		wait = max(again, 4*time.Since(start)) // use at most a fifth of a CPU
	}
}
