//go:build unix

package approval_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/internal/limittest"
)

// With too many open files, or a damaged file, a request does not count as missing.
func TestFileStoreFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "asks")
	s := approval.NewFileStore(dir)
	known := func(err error) {
		t.Helper()
		if errors.Is(err, approval.ErrNotFound) {
			t.Errorf("an error counts as a missing request: %v", err)
		}
	}
	all := []func() error{
		func() error { _, _, err := s.Get(t.Context(), "s1.q"); return err },
		func() error { _, err := s.Pending(t.Context(), "s1"); return err },
		func() error {
			_, err := s.Resolve(t.Context(), "s1.q", approval.Answer{Outcome: approval.Accepted, By: ada})
			return err
		},
		func() error { return s.Delete(t.Context(), "s1.q") },
	}
	limittest.EachOpen(t, func() error { return s.Put(t.Context(), question("s1.q")) }, known)
	for _, f := range all {
		limittest.EachOpen(t, f, known)
	}
	if err := s.Delete(t.Context(), "s1.q"); err != nil {
		t.Errorf("deleted twice: %v", err)
	}
	for id, want := range map[string]error{"s1.none": approval.ErrNotFound, "none": approval.ErrNotFound, "../x.q": approval.ErrNotFound, ".q": approval.ErrNotFound} {
		if _, _, err := s.Get(t.Context(), id); !errors.Is(err, want) {
			t.Errorf("%s: %v", id, err)
		}
	}
	if _, err := s.Pending(t.Context(), "../x"); err == nil {
		t.Error("an invalid session has requests")
	}
	if err := os.WriteFile(filepath.Join(dir, "s1.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, f := range append(all, func() error { return s.Put(t.Context(), question("s1.q")) }) {
		if err := f(); err == nil || errors.Is(err, approval.ErrNotFound) {
			t.Errorf("operation %d on a damaged file: %v", i, err)
		}
	}
}
