//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package policy_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/privatefile/privatefiletest"
	"github.com/loadout-dev/loadout/policy"
)

func TestFilesArePrivate(t *testing.T) {
	_, dir, file := kept(t)
	for path, want := range map[string]os.FileMode{dir: 0o700, file: 0o600, filepath.Join(dir, ".lock"): 0o600} {
		info, err := os.Stat(path)
		try(t, err)
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", path, got, want)
		}
	}
}

func TestUnsafeDirectoryIsRefused(t *testing.T) {
	for name, spoil := range privatefiletest.Tamper {
		t.Run(name, func(t *testing.T) {
			s, dir, _ := kept(t)
			spoil(t, dir)
			_, err := s.Find(t.Context(), robot, digestOf("a"), "")
			privatefiletest.WantUnsafe(t, "find", err, dir)
			_, _, err = s.List(t.Context())
			privatefiletest.WantUnsafe(t, "list", err, dir)
			_, err = s.Revoke(t.Context(), "pdf")
			privatefiletest.WantUnsafe(t, "revoke", err, dir)
			if _, err = s.Put(t.Context(), newGrant(digestOf("b"))); err == nil {
				t.Error("a grant was stored")
			}
		})
	}
}

func TestUnsafeFileGrantsNothing(t *testing.T) {
	for name, spoil := range privatefiletest.Tamper {
		t.Run(name, func(t *testing.T) {
			s, _, file := kept(t)
			other, err := s.Put(t.Context(), newGrant(digestOf("b")))
			try(t, err)
			spoil(t, file)
			_, err = s.Find(t.Context(), robot, digestOf("a"), "")
			privatefiletest.WantUnsafe(t, "find", err, file)
			if _, err := s.Find(t.Context(), robot, other.Subject, ""); err != nil {
				t.Errorf("the other grant: %v", err)
			}
			grants, problems, err := s.List(t.Context())
			if err != nil || len(grants) != 1 || len(problems) != 1 || problems[0].Where != file {
				t.Errorf("listed %v, %v, %v; want the other, and one problem of %s", grants, problems, err, file)
			}
		})
	}
}

func TestUnsafeLockIsRefused(t *testing.T) {
	s, dir, _ := kept(t)
	lock := filepath.Join(dir, ".lock")
	privatefiletest.Tamper["symbolic link"](t, lock)
	_, err := s.Put(t.Context(), newGrant(digestOf("b")))
	privatefiletest.WantUnsafe(t, "put", err, lock)
}

func TestOversizedFileIsRefused(t *testing.T) {
	s, _, file := kept(t)
	try(t, os.WriteFile(file, []byte(strings.Repeat(" ", policy.MaxGrantBytes+1)), 0o600))
	_, err := s.Find(t.Context(), robot, digestOf("a"), "")
	privatefiletest.WantUnsafe(t, "find", err, file)
}

func TestUnreadableStoreIsNotEmpty(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root can read everything")
	}
	s, dir, _ := kept(t)
	try(t, os.Chmod(dir, 0))
	t.Cleanup(func() { os.Chmod(dir, 0o700) })
	if _, err := s.Find(t.Context(), robot, digestOf("a"), ""); err == nil || errors.Is(err, policy.ErrNotGranted) {
		t.Errorf("find: %v, want an error that says why", err)
	}
	if _, _, err := s.List(t.Context()); err == nil {
		t.Error("the directory was listed")
	}
}
