package native_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/sandbox/execute"
	"github.com/loadout-dev/loadout/internal/sandbox/native"
	"github.com/loadout-dev/loadout/internal/sandbox/sandboxtest"
	"github.com/loadout-dev/loadout/sandbox"
)

// newWorkspace returns a directory that code in a sandbox may change.
func newWorkspace(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "workspace")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	err = errors.Join(os.Mkdir(dir+"/d", 0o755), os.WriteFile(dir+"/a", []byte("a"), 0o644), os.WriteFile(dir+"/d/b", []byte("b"), 0o644))
	if os.Geteuid() == 0 {
		for _, p := range []string{"", "/d", "/a", "/d/b"} {
			err = errors.Join(err, os.Chown(dir+p, 65534, 65534))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestOverlay(t *testing.T) { testOverlay(t) }

func TestOverlayAsUser(t *testing.T) {
	if !sandboxtest.AsUser(t) {
		testOverlay(t)
	}
}

// testOverlay checks that code sees its own changes, and that the host's
// directory stays as it was.
func testOverlay(t *testing.T) {
	dir, runs := newWorkspace(t), filepath.Join(t.TempDir(), "run")
	spec := &sandbox.Spec{Mounts: []sandbox.Mount{{Host: dir, Path: "/workspace", Overlay: true}}}
	box, err := native.New(&native.Options{Stage: stagePath, Dir: runs}).Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	o := box.(execute.Overlayer)
	if err := o.OverlayError(); err != nil {
		t.Skipf("no overlay here: %v", err)
	}
	res, err := execute.RunIn(t.Context(), box, spec, &sandbox.Cmd{Dir: "/workspace", Args: []string{"/bin/sh", "-ec",
		`echo new > a; rm d/b; mkdir .claude; echo x > .claude/x; cat a; ls -A d .claude; ls -A / | grep -e lower -e data || true; grep -c workspace /proc/self/mountinfo`}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(res.Stdout), "new\n.claude:\nx\n\nd:\n1\n"; got != want || res.ExitCode != 0 {
		t.Errorf("exit code %d, output %q, want %q\n%s", res.ExitCode, got, want, res.Stderr)
	}
	upper, err := o.Changes()
	if err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(dir + "/a"); err != nil || string(data) != "a" {
		t.Errorf("on the host: %q, %v", data, err)
	}
	if _, err := os.Stat(dir + "/d/b"); err != nil {
		t.Error(err)
	}
	if data, err := os.ReadFile(upper + "/a"); err != nil || string(data) != "new\n" {
		t.Errorf("changes: %q, %v", data, err)
	}
	if _, err := box.Exec(t.Context(), &sandbox.Cmd{Args: []string{"true"}}); err == nil {
		t.Error("a command started after the end")
	}
	if err := box.Close(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(runs); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// If there can be no overlay, the mount is read-only.
func TestNoOverlay(t *testing.T) {
	dir, runs := newWorkspace(t), filepath.Join(t.TempDir(), "run")
	if err := os.WriteFile(runs, nil, 0o600); err != nil { // not a directory
		t.Fatal(err)
	}
	spec := &sandbox.Spec{Mounts: []sandbox.Mount{{Host: dir, Path: "/workspace", Overlay: true}}}
	box, err := native.New(&native.Options{Stage: stagePath, Dir: runs}).Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	if err := box.(execute.Overlayer).OverlayError(); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("error: %v", err)
	}
	if _, err := box.(execute.Overlayer).Changes(); err == nil {
		t.Error("there are changes")
	}
	res, err := execute.RunIn(t.Context(), box, spec, &sandbox.Cmd{Args: []string{"/bin/sh", "-c", "cat /workspace/a; echo new > /workspace/a"}}, nil)
	if err != nil || string(res.Stdout) != "a" || res.ExitCode == 0 {
		t.Errorf("%+v, %v", res, err)
	}
}

// A file system of which the kernel mounts no overlay makes the mount read-only
// too.
func TestOverlayRefusedByKernel(t *testing.T) {
	spec := &sandbox.Spec{Mounts: []sandbox.Mount{{Host: "/proc/self/fdinfo", Path: "/workspace", Overlay: true}}}
	box, err := native.New(&native.Options{Stage: stagePath, Dir: filepath.Join(t.TempDir(), "run")}).Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	if err := box.(execute.Overlayer).OverlayError(); err == nil {
		t.Skip("this kernel mounts overlays of /proc")
	}
	res, err := execute.RunIn(t.Context(), box, spec, &sandbox.Cmd{Args: []string{"/bin/sh", "-c", "test -d /workspace && ! touch /workspace/x && ! ls -A / | grep '^[.]'"}}, nil)
	if err != nil || res.ExitCode != 0 {
		t.Errorf("%+v, %v", res, err)
	}
}
