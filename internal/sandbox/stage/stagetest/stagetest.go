// Package stagetest builds a stage for tests. Test binaries can run as stages
// too, but with -race they need more memory than a sandbox allows its first
// process.
package stagetest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/loadout-dev/loadout/internal/testprogram"
)

// Variable is the environment variable that contains the path of a stage
// executable, for tests that run again as a user without access to the build
// cache.
const Variable = "LOADOUT_TEST_STAGE"

// Main runs the tests of m and exits. It first builds a stage that every user
// can execute and stores its path in *to. It is meant to be called from
// TestMain.
func Main(m *testing.M, to *string) {
	os.Exit(Run(m.Run, to))
}

// Run is like Main but returns the exit code instead of exiting.
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

// OpenDir returns a temporary directory that every user can access. The
// directory is removed when the test ends, even if its contents are read-only.
func OpenDir(t *testing.T) string {
	t.Helper()
	parent := ""
	if os.Geteuid() == 0 {
		parent = "/tmp" // other users may have no access to the directory of the tests
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

// Open makes a path below the temporary directory accessible to every user.
// Programs that run sandboxes as root must do the same.
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
