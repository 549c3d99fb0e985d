package hub

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestIdentity(t *testing.T) {
	claim := func(dir string) (identity, string) {
		t.Helper()
		unlock, lock, err := lockDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer unlock()
		if lock == "" {
			t.Skip("this system does not identify files")
		}
		now, before, unsaved, err := claimIdentity(dir, lock)
		if err != nil || unsaved != nil {
			t.Fatal(err, unsaved)
		}
		return now, before
	}
	dir := t.TempDir()
	first, before := claim(dir)
	if first.Node == "" || first.Process == "" || before != "" {
		t.Errorf("first start: %+v after %q", first, before)
	}
	second, before := claim(dir)
	if before != first.Process || second.Node != first.Node || second.Process == first.Process {
		t.Errorf("second start: %+v after %q, first was %+v", second, before, first)
	}

	// The process of the original may still run.
	copied := t.TempDir()
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if now, before := claim(copied); before != "" || now.Node == first.Node {
		t.Errorf("copy of the directory: %+v after %q", now, before)
	}

	// Without locks, it may run too.
	if _, before, _, err := claimIdentity(dir, ""); err != nil || before != "" {
		t.Errorf("without locks: %q, %v", before, err)
	}

	path := filepath.Join(dir, identityFile)
	for content, want := range map[string]string{`{"version":`: "", `{"version": 2}`: "newer version"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, before, _, err := claimIdentity(dir, "1/2")
		if before != "" || (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v", content, before, err)
		}
	}
}
