package execution

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadout-dev/loadout/internal/packages"
	"github.com/loadout-dev/loadout/internal/script"
	"github.com/loadout-dev/loadout/sandbox"
)

func TestInstallFailuresExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f InstallFailures
		failed := errors.New("no network")
		f.record("a", failed)
		f.record("b", failed)
		f.record("b", nil)
		time.Sleep(retryInstall - time.Second)
		if a, b := f.recent("a"), f.recent("b"); a != failed || b != nil {
			t.Errorf("before: %v, %v", a, b)
		}
		time.Sleep(time.Second)
		if err := f.recent("a"); err != nil {
			t.Errorf("after: %v", err)
		}
	})
}

func TestUsesPython(t *testing.T) {
	for text, want := range map[string]bool{
		"python3": true, "/usr/bin/python3.11 x": true, "./plot.py": true, "cd a && python -m x": true, "pypy3": true, "pytest": true, "uv run x": true, "ipython": true,
		"echo happy": false, "cp a b # copy": false, "cat pyproject.toml": false, "make": false, "sh run.sh": false,
	} {
		v := &commandView{command: &Command{Args: []string{"sh", "-c", text}}}
		if got := v.usesPython(); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}

// Notes for the model do not contain paths of the host.
func TestNotesHaveNoHostPaths(t *testing.T) {
	v := &commandView{runner: New(Options{})}
	tried := []script.Unusable{{Path: "/home/ann/bin/python3", Reason: "version 3.1 is too old"}}
	for _, err := range []error{
		&script.MissingError{Interpreter: "python3 (>=9)", Tried: tried}, &packages.MissingToolError{Tool: "pip", Tried: tried},
		fmt.Errorf("lock packages: %w", &fs.PathError{Op: "open", Path: "/home/ann/.cache", Err: fs.ErrPermission}),
		fmt.Errorf("store packages: %w", errors.Join(&os.LinkError{Op: "rename", Old: "/home/ann/.cache/a", New: "/home/ann/.cache/b", Err: fs.ErrExist}, nil)),
	} {
		if got := v.withoutHostPaths(err).Error(); strings.Contains(got, "/home") || got == "" {
			t.Error(got)
		}
	}
}

// stuckBackend starts no sandbox before its context is done.
type stuckBackend struct {
	sandbox.Backend
	started int // with a context that was not done
}

func (b *stuckBackend) Start(ctx context.Context, _ *sandbox.Spec) (sandbox.Sandbox, error) {
	if ctx.Err() == nil {
		b.started++
	}
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// An installation of a skill's packages that takes too long leaves time to install the
// configured ones.
func TestEachInstallationHasItsOwnTimeout(t *testing.T) {
	backend, dir := &stuckBackend{}, t.TempDir()
	host := script.HostOf(os.Getenv)
	if _, err := script.ResolvePython(nil, host); err != nil {
		t.Skip(err)
	}
	of, err := script.DeclaredPython("requirements.txt", []string{"slow"})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		v := &commandView{ctx: t.Context(), command: &Command{Args: []string{"python3"}}, needs: []skillNeeds{{"s", of}},
			runner: New(Options{Host: host, CommandPackages: []string{"quick"}, Packages: &packages.Options{Backend: backend, Dir: dir, Host: host}})}
		start := time.Now()
		v.addPackages()
		if took := time.Since(start); backend.started != 2 || took != 2*maxInstallTime {
			t.Errorf("%d installations in %v, notes %q", backend.started, took, v.notes)
		}
	})
}
