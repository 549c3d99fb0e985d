package usage_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadout-dev/loadout/internal/usage"
)

// size returns the size of a file, or 0 if there is none.
func size(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if err != nil {
		return 0
	}
	return info.Size()
}

func TestBufferedLogWritesAfterDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := newPath(t)
		l := usage.NewBufferedLog(path, time.Second, nil)
		defer l.Close()
		for _, name := range []string{"first", "later"} {
			before := size(t, path)
			l.Note(load(name, 1))
			time.Sleep(time.Second - 1)
			synctest.Wait()
			if got := size(t, path); got != before {
				t.Errorf("%s: %d bytes before the delay, want %d", name, got, before)
			}
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			if got := size(t, path); got == before {
				t.Errorf("%s: nothing written after the delay", name)
			}
		}
	})
}

func TestCloseWritesBufferedUses(t *testing.T) {
	path := newPath(t)
	l := usage.NewBufferedLog(path, time.Hour, nil)
	l.Note(load("first", 1))
	l.Note(load("second", 1))
	if n := size(t, path); n > 0 {
		t.Errorf("%d bytes before the log is closed, want 0", n)
	}
	l.Close()
	l.Note(load("third", 1)) // a call may end after that
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(string(text)) {
		_, rest, _ := strings.Cut(line, `"skill":"`)
		name, _, _ := strings.Cut(rest, `"`)
		names = append(names, name)
	}
	if got := strings.Join(names, " "); got != "first second third" {
		t.Errorf("the log has %q, want all uses in order", got)
	}
	l.Close()
	var none *usage.Log
	none.Close() // does not panic
}

// A full buffer is written by the caller, so that nothing is lost and the memory
// is bounded.
func TestFullBufferIsWritten(t *testing.T) {
	path := newPath(t)
	l := usage.NewBufferedLog(path, time.Hour, nil)
	const each, callers = 200, 4
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for i := range each {
				l.Note(load("a", i))
			}
		})
	}
	all.Wait()
	before := size(t, path)
	l.Close()
	after := size(t, path)
	if before == 0 || after-before > 4096 {
		t.Errorf("%d of %d bytes were written before the log was closed, want all but at most 4096", before, after)
	}
	if r := read(t, path); r.Damaged > 0 || r.Interfaces[0].Loads != each*callers {
		t.Errorf("%d loads, %d damaged lines, want %d loads", r.Interfaces[0].Loads, r.Damaged, each*callers)
	}
}

func TestBufferedWriteFailureIsReportedOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "usage.jsonl")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	l := usage.NewBufferedLog(path, time.Hour, slog.New(slog.NewTextHandler(&out, nil)))
	for i := range 100 {
		l.Note(load("a", i))
	}
	l.Close()
	if n := strings.Count(out.String(), "could not record usage"); n != 1 {
		t.Errorf("got %d times: %s", n, out.String())
	}
}
