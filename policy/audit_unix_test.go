//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package policy_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/filelock"
	"github.com/loadout-dev/loadout/policy"
)

// Whatever became of the file since the last record, the next is in the one at the
// path, once.
func TestARecordIsInTheFileThatIsThereNow(t *testing.T) {
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
		"appended to by another": {func(t *testing.T, p string) { try(t, policy.NewAudit(p).Append(t.Context(), record("other"))) },
			[]string{"one", "other", "two", "three"}},
	} {
		t.Run(name, func(t *testing.T) {
			a, path := audit(t)
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
			if got, _ := reasons(t, policy.NewAudit(path+".1"), 9); !cmp.Equal(got, []string{"one"}) {
				t.Errorf("the file that was moved away has %q, want what it had", got)
			}
		})
	}
}

// replaceLog puts a log with one record in place of that at path.
func replaceLog(t *testing.T, path, reason string) {
	try(t, policy.NewAudit(path+".new").Append(t.Context(), record(reason)))
	try(t, os.Rename(path+".new", path))
}

// A log that was opened already is looked at again before each record.
func TestALogThatBecomesUnsafeIsRefused(t *testing.T) {
	for name, spoil := range tampered {
		t.Run(name, func(t *testing.T) {
			a, path := audit(t)
			try(t, a.Append(t.Context(), record("one")))
			spoil(t, path)
			isUnsafe(t, "the log", a.Append(t.Context(), record("two")), path)
		})
		t.Run("directory: "+name, func(t *testing.T) {
			a, path := audit(t)
			try(t, a.Append(t.Context(), record("one")))
			spoil(t, filepath.Dir(path))
			isUnsafe(t, "its directory", a.Append(t.Context(), record("two")), filepath.Dir(path))
		})
	}
}

// Whoever holds the lock is waited for only as long as the caller wants, by those
// who wait for their turn behind another too.
func TestWaitingForTheLogEndsWithItsContext(t *testing.T) {
	a, path := audit(t)
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
