//go:build unix

package usage_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/limittest"
	"github.com/loadout-dev/loadout/internal/usage"
)

// counting returns a log whose failures are counted.
func counting(path string, half int64) (*usage.Log, *bytes.Buffer) {
	var out bytes.Buffer
	l := usage.NewLogWith(path, half, slog.New(slog.NewTextHandler(&out, nil)))
	return l, &out
}

// A use that cannot be recorded is reported, and a whole line is written or none.
func TestNoteWithinLimits(t *testing.T) {
	path := newPath(t)
	limittest.EachOpen(t, func() error {
		l, out := counting(path, 1<<20)
		l.Note(load("one", 1))
		if out.Len() > 0 {
			return fmt.Errorf("logged %s", out)
		}
		return nil
	}, func(error) {
		if b, err := os.ReadFile(path); err == nil && len(b) > 0 {
			t.Errorf("recorded in spite of an error: %q", b)
		}
	})
	before, err := os.ReadFile(path)
	if err != nil || bytes.Count(before, []byte("\n")) != 1 {
		t.Fatalf("recorded %q, %v", before, err)
	}
	if err := os.Truncate(path, limittest.MaxFileSize); err != nil {
		t.Fatal(err)
	}
	limittest.FullDisk(t, func() {
		l, out := counting(path, 1<<30)
		l.Note(load("two", 1))
		if out.Len() == 0 {
			t.Error("a full disk is not reported")
		}
	})
	for mode, want := range map[os.FileMode]string{os.ModeDir: "not a regular file", 0: ""} {
		path := newPath(t)
		if mode.IsDir() {
			if err := os.MkdirAll(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		l, out := counting(path, 1<<20)
		l.Note(load("one", 1))
		if (out.Len() > 0) != (want != "") || !strings.Contains(out.String(), want) {
			t.Errorf("%v: logged %q, want %q", mode, out, want)
		}
	}
}

// A log at exactly its limit is rotated. If that is not possible, it grows up to twice
// its limit, and nothing is lost.
func TestRotationFails(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	note := func(l *usage.Log) { u := load("one", 1); u.Time = at; l.Note(u) }
	line := func() int {
		path := newPath(t)
		l, _ := counting(path, 1<<20)
		note(l)
		fi, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return int(fi.Size())
	}()
	path := newPath(t)
	l, out := counting(path, int64(2*line))
	note(l)
	note(l)
	if _, err := os.Stat(path + ".old"); err == nil {
		t.Error("rotated below the limit")
	}
	note(l)
	if fi, err := os.Stat(path); err != nil || fi.Size() != int64(line) {
		t.Errorf("not rotated at the limit: %v, %v", fi, err)
	}
	// A directory in the way of the lock.
	if err := os.Remove(path + ".lock"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path+".lock", 0o700); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		note(l)
	}
	if out.Len() > 0 {
		t.Errorf("a failed rotation loses a use: %s", out)
	}
	if got := read(t, path); len(got.Skills) != 1 || got.Skills[0].Loads != 6 {
		t.Errorf("recorded %+v, want 6 loads", got.Skills)
	}
	note(l)
	if fi, err := os.Stat(path); err != nil || fi.Size() != int64(4*line) || !strings.Contains(out.String(), "could not record usage") {
		t.Errorf("size %v, %v, logged %q", fi.Size(), err, out)
	}
	if err := l.Clear(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "clear usage log: ") {
		t.Errorf("clearing: %v", err)
	}
}

func TestClearFails(t *testing.T) {
	path := newPath(t)
	l, _ := counting(path, 1<<20)
	l.Note(load("one", 1))
	if err := os.MkdirAll(path+".old/x", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := l.Clear(t.Context()); err == nil {
		t.Error("no error of a directory in the way")
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the other file is left")
	}
	if err := os.RemoveAll(path + ".old"); err != nil {
		t.Fatal(err)
	}
	limittest.EachOpen(t, func() error { return l.Clear(t.Context()) }, func(error) {})
}
