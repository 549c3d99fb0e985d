package filelock_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/loadout-dev/loadout/internal/filelock"
)

func open(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestLockIsHeldUntilClose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	a, b := open(t, path), open(t, path)
	err := filelock.TryLock(a)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := filelock.TryLock(b); !errors.Is(err, filelock.ErrLocked) {
		t.Errorf("the second opening got %v, want %v", err, filelock.ErrLocked)
	}
	got := make(chan error)
	go func() { got <- filelock.Lock(t.Context(), b) }()
	a.Close()
	if err := <-got; err != nil {
		t.Errorf("after the first was closed, waiting ended with %v", err)
	}
}

func TestWaitingEndsWithItsContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	a, b := open(t, path), open(t, path)
	if err := filelock.TryLock(a); err != nil {
		t.Skip(err)
	}
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if err := filelock.Lock(ctx, b); !errors.Is(err, why) {
		t.Errorf("got %v, want the cause of the end of the context", err)
	}
}

func TestReleasedLockIsFree(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	a, b := open(t, path), open(t, path)
	if err := filelock.TryLock(a); errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	if err := filelock.Unlock(a); err != nil {
		t.Fatal(err)
	}
	if err := filelock.TryLock(b); err != nil {
		t.Errorf("after it was given back, another got %v", err)
	}
	if err := filelock.TryLock(a); !errors.Is(err, filelock.ErrLocked) {
		t.Errorf("the first got %v again, want %v", err, filelock.ErrLocked)
	}
}

// A lock that the system refuses is never taken for a held one.
func TestClosedFileHasNoLock(t *testing.T) {
	f := open(t, filepath.Join(t.TempDir(), "f"))
	f.Close()
	if err := filelock.TryLock(f); err == nil || errors.Is(err, filelock.ErrLocked) {
		t.Errorf("TryLock: %v", err)
	}
	if err := filelock.Lock(t.Context(), f); err == nil {
		t.Error("Lock: no error")
	}
	if err := filelock.Unlock(f); err == nil {
		t.Error("Unlock: no error")
	}
}
