//go:build unix

package box

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"
	"time"

	"github.com/loadout-dev/loadout/sandbox"
)

// What is on disk is looked at as soon as it could be too much at these rates,
// but not more often and not less often than at these intervals.
const (
	bytesPerSecond = 4 << 30
	filesPerSecond = 200_000
	shortest       = 2 * time.Millisecond
	longest        = 50 * time.Millisecond
)

// errFull ends a count that is beyond what counts.
var errFull = errors.New("full")

// Full says in what way the directories that code writes to hold more than they
// may, "" if they do not, and when to look again. What cannot be counted counts
// as too much, so that nothing is hidden; what is open but removed is not seen.
func (b *Box) Full(l sandbox.Limits) (why string, again time.Duration) {
	again = longest
	for _, d := range []struct {
		path string
		size int64
	}{{sandbox.WorkDir, l.Work}, {sandbox.TmpDir, l.Tmp}} {
		size, n, err := count(b.At(d.path), d.size, l.Inodes)
		switch {
		case size > d.size:
			return fmt.Sprintf("it wrote more than %d MiB to %s", d.size>>20, d.path), shortest
		case n > l.Inodes:
			return fmt.Sprintf("it made more than %d files in %s", l.Inodes, d.path), shortest
		case err != nil:
			return fmt.Sprintf("what it wrote to %s cannot be counted: %v", d.path, err), shortest
		}
		again = min(again, time.Duration(d.size-size)*time.Second/bytesPerSecond, time.Duration(l.Inodes-n)*time.Second/filesPerSecond)
	}
	return "", max(again, shortest)
}

// count counts what is on disk below dir, until there is too much.
func count(dir string, most int64, mostFiles int) (size int64, n int, err error) {
	err = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		var fi fs.FileInfo
		if err == nil {
			fi, err = e.Info()
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it was removed meanwhile
		}
		if err != nil {
			return err
		}
		if st, ok := fi.Sys().(*syscall.Stat_t); ok {
			size += int64(st.Blocks) * 512
		}
		if n++; size > most || n > mostFiles {
			return errFull
		}
		return nil
	})
	return size, n, err
}

// Watch calls full, with the reason, as often as there is too much while busy
// says that something runs, until ended is closed.
func (b *Box) Watch(l sandbox.Limits, ended <-chan struct{}, busy func() bool, full func(string)) {
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
		began := time.Now()
		why, again := b.Full(l)
		if why != "" {
			full(why)
		}
		wait = max(again, 4*time.Since(began)) // so that looking takes a fifth of a processor at most
	}
}
