//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package audit_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/audit"
	"github.com/loadout-dev/loadout/internal/filelock"
	"github.com/loadout-dev/loadout/internal/privatefile/privatefiletest"
)

// Whatever became of the file since the last record, the next is in the one at the
// path, once.
func TestAppendUsesCurrentFile(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(t *testing.T, path string)
		want   []string // in the file at the path
	}{
		"untouched":             {func(*testing.T, string) {}, []string{"one", "two", "three"}},
		"removed":               {func(t *testing.T, p string) { try(t, os.Remove(p)) }, []string{"two", "three"}},
		"moved away":            {func(t *testing.T, p string) { try(t, os.Rename(p, p+".1")) }, []string{"two", "three"}},
		"emptied":               {func(t *testing.T, p string) { try(t, os.Truncate(p, 0)) }, []string{"two", "three"}},
		"its directory removed": {func(t *testing.T, p string) { try(t, os.RemoveAll(filepath.Dir(p))) }, []string{"two", "three"}},
		"another in its place":  {func(t *testing.T, p string) { replaceLog(t, p, "other") }, []string{"other", "two", "three"}},
		"appended to by another": {func(t *testing.T, p string) { try(t, audit.New(p).Append(t.Context(), record("other"))) },
			[]string{"one", "other", "two", "three"}},
	} {
		t.Run(name, func(t *testing.T) {
			a, path := newLog(t)
			try(t, a.Append(t.Context(), record("one")))
			tt.change(t, path)
			try(t, a.Append(t.Context(), record("two")))
			try(t, a.Append(t.Context(), record("three")))
			if got, problems := reasons(t, a, 9); !cmp.Equal(got, tt.want) || problems > 0 {
				t.Errorf("the log has %q and %d problems, want %q", got, problems, tt.want)
			}
			if name != "moved away" {
				return
			}
			if got, _ := reasons(t, audit.New(path+".1"), 9); !cmp.Equal(got, []string{"one"}) {
				t.Errorf("the file that was moved away has %q, want what it had", got)
			}
		})
	}
}

// An incomplete line that another process left is not continued, whoever wrote
// the line before it.
func TestTornLineOfAnotherProcess(t *testing.T) {
	a, path := newLog(t)
	for i := range 3 {
		try(t, a.Append(t.Context(), record("whole")))
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		try(t, err)
		_, err = f.WriteString(`{"time":`)
		try(t, err)
		try(t, f.Close())
		try(t, a.Append(t.Context(), record("after")))
		if got, problems := reasons(t, a, 9); len(got) != 2*(i+1) || problems != i+1 {
			t.Errorf("round %d: %q and %d problems, want two records and one problem for each round", i, got, problems)
		}
	}
}

// replaceLog puts a log with one record in place of that at path.
func replaceLog(t *testing.T, path, reason string) {
	try(t, audit.New(path+".new").Append(t.Context(), record(reason)))
	try(t, os.Rename(path+".new", path))
}

// A log that was opened already is looked at again before each record.
func TestLogThatBecomesUnsafeIsRefused(t *testing.T) {
	for name, spoil := range privatefiletest.Tamper {
		t.Run(name, func(t *testing.T) {
			a, path := newLog(t)
			try(t, a.Append(t.Context(), record("one")))
			spoil(t, path)
			privatefiletest.WantUnsafe(t, "the log", a.Append(t.Context(), record("two")), path)
		})
		t.Run("directory: "+name, func(t *testing.T) {
			a, path := newLog(t)
			try(t, a.Append(t.Context(), record("one")))
			spoil(t, filepath.Dir(path))
			privatefiletest.WantUnsafe(t, "its directory", a.Append(t.Context(), record("two")), filepath.Dir(path))
		})
	}
}

// Whoever holds the lock is waited for only as long as the caller wants, by those
// who wait for their turn behind another too.
func TestWaitingForTheLogEndsWithItsContext(t *testing.T) {
	a, path := newLog(t)
	try(t, a.Append(t.Context(), record("one")))
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	try(t, err)
	try(t, filelock.Lock(t.Context(), f))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 2)
	for range 2 {
		go func() { done <- a.Append(ctx, record("late")) }()
	}
	cancel()
	for range 2 {
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("waiting ended with %v, want the end of the context", err)
		}
	}
	try(t, f.Close())
	try(t, a.Append(t.Context(), record("two")))
	if got, problems := reasons(t, a, 9); !cmp.Equal(got, []string{"one", "two"}) || problems > 0 {
		t.Errorf("the log has %q and %d problems, want two records", got, problems)
	}
}

func TestUnsafeLogIsRefused(t *testing.T) {
	for name, spoil := range privatefiletest.Tamper {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "audit.jsonl")
			a := audit.New(path)
			try(t, a.Append(t.Context(), record("one")))
			spoil(t, path)
			privatefiletest.WantUnsafe(t, "append", a.Append(t.Context(), record("two")), path)
			_, _, err := a.Read(t.Context(), 1)
			privatefiletest.WantUnsafe(t, "read", err, path)
		})
	}
}

func TestOnlyTheUserCanReadTheLog(t *testing.T) {
	a, path := newLog(t)
	try(t, a.Append(t.Context(), record("one")))
	info, err := os.Stat(path)
	try(t, err)
	if got := info.Mode().Perm(); got != 0o600 {
		t.Errorf("mode %o, want 600", got)
	}
}
