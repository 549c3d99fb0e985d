// Package stagetest builds a stage for tests. Test binaries are stages too, but
// with -race they need more memory than a sandbox allows its first process.
package stagetest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/loadout-dev/loadout/internal/testprogram"
)

// Variable names a stage that was built before, for tests that run again as a
// user who may not have a compiler's caches.
const Variable = "LOADOUT_TEST_STAGE"

// Main runs the tests with a stage in *to, and is called by TestMain. The
// directory it is in can be reached by every user.
func Main(m *testing.M, to *string) {
	os.Exit(Run(m.Run, to))
}

// Run is Main for tests that do more around theirs: it returns the exit code.
func Run(tests func() int, to *string) int {
	if *to = os.Getenv(Variable); *to != "" {
		return tests()
	}
	dir, err := os.MkdirTemp("", "stagetest-")
	if err == nil {
		defer os.RemoveAll(dir)
		*to = filepath.Join(dir, "stage")
		err = build(dir, *to)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "build a stage:", err)
		return 1
	}
	os.Setenv(Variable, *to)
	return tests()
}

func build(dir, to string) error {
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	return testprogram.Program{Package: "internal/sandbox/stage/stagetest/stage"}.Install(to)
}

// OpenDir is a directory that every user can reach, and that is removed with
// what is protected in it.
func OpenDir(t *testing.T) string {
	t.Helper()
	parent := ""
	if os.Geteuid() == 0 {
		parent = "/tmp" // the tests' own may be closed
	}
	dir, err := os.MkdirTemp(parent, "stagetest-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
			if d != nil && d.IsDir() {
				os.Chmod(p, 0o755)
			}
			return nil
		})
		os.RemoveAll(dir)
	})
	return dir
}

// Open lets every user get to a path below the directory for temporary files,
// as those who run sandboxes for root must arrange.
func Open(t *testing.T, path string) {
	t.Helper()
	for p := path; len(p) > len(os.TempDir()) && p != "/tmp"; p = filepath.Dir(p) {
		fi, err := os.Stat(p)
		if err == nil && fi.IsDir() {
			err = os.Chmod(p, fi.Mode().Perm()|0o011)
		}
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
}
