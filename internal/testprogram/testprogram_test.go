package testprogram_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/loadout-dev/loadout/internal/testprogram"
)

// Builds at the same time share one executable, and a copy of it runs.
func TestBuildsShareOneExecutable(t *testing.T) {
	echo := testprogram.Program{Package: "testdata/echo"}
	var builds sync.WaitGroup
	paths := make([]string, 4)
	for i := range paths {
		builds.Go(func() {
			var err error
			if paths[i], err = echo.Build(); err != nil {
				t.Error(err)
			}
		})
	}
	builds.Wait()
	first, err := os.Stat(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "echo")
	if runtime.GOOS == "windows" {
		to += ".exe"
	}
	if err := echo.Install(to); err != nil {
		t.Fatal(err)
	}
	if again, err := os.Stat(paths[0]); err != nil || paths[3] != paths[0] || !os.SameFile(first, again) {
		t.Errorf("linked again: %q, %v", paths, err)
	}
	cmd := exec.Command(to)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v: %s", err, out)
	}
}

func TestBuildReportsErrors(t *testing.T) {
	if path, err := (testprogram.Program{Package: "testdata/missing"}).Build(); err == nil {
		t.Errorf("built %s", path)
	}
}
