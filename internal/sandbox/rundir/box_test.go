//go:build unix

package rundir

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/internal/sandbox/prepare"
	"github.com/loadout-dev/loadout/sandbox"
)

// deep makes directories in one another, as deep as no path can be.
func deep(t *testing.T, dir string, levels int) {
	t.Helper()
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	for range levels {
		if err != nil {
			t.Fatal(err)
		}
		if err = unix.Mkdirat(fd, "d", 0o755); err != nil {
			t.Fatal(err)
		}
		var next int
		next, err = unix.Openat(fd, "d", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		unix.Close(fd)
		fd = next
	}
	unix.Close(fd)
}

func TestRemove(t *testing.T) {
	outside := t.TempDir()
	kept := filepath.Join(outside, "kept")
	if err := os.WriteFile(kept, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "box")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(dir+"/a/b/closed", 0o755))
	must(os.WriteFile(dir+"/a/b/closed/file", nil, 0o400))
	must(os.Symlink(outside, dir+"/a/out"))
	must(os.Symlink(outside, dir+"/out"))
	must(os.Symlink("/nonexistent", dir+"/a/dangling"))
	must(unix.Mkfifo(dir+"/a/pipe", 0o600))
	must(os.Chmod(dir+"/a/b/closed", 0))
	must(os.Chmod(dir+"/a/b", 0o500))
	deep(t, dir, 5000)
	deep(t, dir+"/a", 5000)
	must(Remove(dir))
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("what a link led to: %v", err)
	}
	must(Remove(dir)) // nothing is there
	must(os.Symlink(outside, dir))
	if err := Remove(dir); err == nil {
		t.Error("a link was followed")
	}
}

// again marks a test binary that is to make a box and wait to be killed.
const again = "LOADOUT_TEST_BOX"

func TestMain(m *testing.M) {
	if dir := os.Getenv(again); dir != "" {
		b, err := New(Options{Parent: dir + "/run", Cache: dir}, &sandbox.Spec{})
		if err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		fmt.Println(b.Root)
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A new start removes the directories of killed programs, and none of running ones.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	start := func() (*exec.Cmd, string) {
		cmd := exec.CommandContext(context.Background(), os.Args[0])
		cmd.Env = append(os.Environ(), again+"="+dir)
		if _, err := cmd.StdinPipe(); err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return cmd, strings.TrimSpace(line)
	}
	_, alive := start()
	killed, left := start()
	killed.Process.Kill()
	killed.Wait()
	deep(t, left+mountpoint.Work, 5000)
	b, err := New(Options{Parent: dir + "/run", Cache: dir}, &sandbox.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	for p, want := range map[string]bool{alive: true, alive + ".lock": true, left: false, left + ".lock": false, b.Root: true} {
		if _, err := os.Lstat(p); (err == nil) != want {
			t.Errorf("%s: %v", p, err)
		}
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(b.Root); err == nil {
		t.Error("it is still there")
	}
}

func TestRefusesForeignDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o777)); err != nil {
		t.Fatal(err)
	}
	_, err := New(Options{Backend: "x", Parent: dir, Cache: t.TempDir()}, &sandbox.Spec{})
	if _, ok := errors.AsType[*sandbox.UnavailableError](err); !ok {
		t.Errorf("%v", err)
	}
}

func TestFull(t *testing.T) {
	b, err := New(Options{Parent: filepath.Join(t.TempDir(), "run"), Cache: t.TempDir()}, &sandbox.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	l := prepare.DefaultLimits()
	if why, _ := b.CheckLimits(l); why != "" {
		t.Errorf("empty: %s", why)
	}
	deep(t, b.HostPath(mountpoint.Tmp), 3000)
	if why, _ := b.CheckLimits(l); !strings.Contains(why, "cannot count the files") {
		t.Errorf("too deep to count: %q", why)
	}
}
