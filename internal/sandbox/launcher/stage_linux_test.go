package launcher_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/loadout-dev/loadout/internal/sandbox/launcher"
	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/internal/sandbox/prepare"
	"github.com/loadout-dev/loadout/internal/sandbox/stage"
	"github.com/loadout-dev/loadout/internal/sandbox/stage/stagetest"
	"github.com/loadout-dev/loadout/sandbox"
)

var stageFile string

func TestMain(m *testing.M) { stagetest.Main(m, &stageFile) }

// config returns the configuration of a stage in the namespaces of the host,
// whose layout is below dir.
func config(dir string) *launcher.Config {
	hostPath := func(p string) string { return dir + p }
	return &launcher.Config{
		Backend:  "test",
		Command:  &exec.Cmd{Path: stageFile, Args: []string{stage.Name, stage.Guard}, Dir: "/", Env: launcher.Environment(), SysProcAttr: &syscall.SysProcAttr{Setsid: true}},
		Setup:    stage.Setup{Reap: true},
		HostPath: hostPath,
		Graceful: true,
		Restrictions: stage.Restrictions{
			Memory: 1 << 30, CPU: 60, Socket: launcher.SocketSize(), NetShared: true, Work: hostPath(mountpoint.Work), Skip: "in", Threads: launcher.IdleThreads,
			Rlimits: launcher.Rlimits(prepare.DefaultLimits(), false),
		},
	}
}

// start starts a stage in a new directory and returns the directory too.
func start(t *testing.T, spec *sandbox.Spec, change func(*launcher.Config)) (*launcher.Sandbox, string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(dir+mountpoint.Work+"/in", 0o755); err != nil {
		t.Fatal(err)
	}
	cfg := config(dir)
	if change != nil {
		change(cfg)
	}
	s, err := launcher.Start(t.Context(), spec, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, dir
}

// output runs a shell script and returns what it printed and how it exited.
func output(t *testing.T, s *launcher.Sandbox, cmd *sandbox.Cmd) (stdout, stderr string, exit sandbox.Exit) {
	t.Helper()
	p, err := s.Exec(t.Context(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	p.Stdin().Close()
	errText := make(chan []byte)
	go func() {
		b, _ := io.ReadAll(p.Stderr())
		errText <- b
	}()
	b, err := io.ReadAll(p.Stdout())
	if err != nil {
		t.Error(err)
	}
	return string(b), string(<-errText), p.Wait()
}

func shell(script string) *sandbox.Cmd { return &sandbox.Cmd{Args: []string{"/bin/sh", "-c", script}} }

func TestCommands(t *testing.T) {
	s, dir := start(t, &sandbox.Spec{}, nil)
	for name, tt := range map[string]struct {
		cmd            *sandbox.Cmd
		stdout, stderr string
		code           int
		signal         string
		reason         sandbox.Reason
	}{
		"success":           {shell("echo out; echo err >&2"), "out\n", "err\n", 0, "", sandbox.OK},
		"failure":           {shell("exit 3"), "", "", 3, "", sandbox.Exited},
		"signal":            {shell("kill -TERM $$"), "", "", 143, "SIGTERM", sandbox.Exited},
		"file size":         {shell("kill -XFSZ $$"), "", "", 128 + int(syscall.SIGXFSZ), "SIGXFSZ", sandbox.FileSize},
		"system call":       {shell("kill -SYS $$"), "", "", 128 + int(syscall.SIGSYS), "SIGSYS", sandbox.Denied},
		"default directory": {shell("pwd"), dir + mountpoint.Work + "\n", "", 0, "", sandbox.OK},
		"another directory": {&sandbox.Cmd{Args: []string{"/bin/pwd"}, Dir: mountpoint.In}, dir + mountpoint.In + "\n", "", 0, "", sandbox.OK},
	} {
		stdout, stderr, e := output(t, s, tt.cmd)
		if stdout != tt.stdout || stderr != tt.stderr || e.Code != tt.code || e.Signal != tt.signal || e.Reason != tt.reason {
			t.Errorf("%s: printed %q and %q, exited with %+v", name, stdout, stderr, e)
		}
	}
	if s.Busy() {
		t.Error("the sandbox is busy after all commands have exited")
	}
}

func TestCommandsThatCannotStart(t *testing.T) {
	s, _ := start(t, &sandbox.Spec{}, nil)
	for _, args := range [][]string{nil, {""}} {
		if _, err := s.Exec(t.Context(), &sandbox.Cmd{Args: args}); err == nil || !strings.Contains(err.Error(), "empty command") {
			t.Errorf("arguments %q: %v", args, err)
		}
	}
	_, err := s.Exec(t.Context(), &sandbox.Cmd{Args: []string{"/no/such/program"}})
	if e, ok := errors.AsType[*sandbox.StartError](err); !ok || e.Program != "/no/such/program" || !errors.Is(err, syscall.ENOENT) {
		t.Errorf("missing program: %v", err)
	}
	if s.Busy() {
		t.Error("the sandbox is busy with a command that did not start")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if p, err := s.Exec(ctx, shell("sleep 1000")); err == nil {
		p.Kill() // the answer was faster
	} else if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	s.Close()
	if _, err := s.Exec(t.Context(), shell("true")); !errors.Is(err, sandbox.ErrEnded) {
		t.Errorf("after Close: %v", err)
	}
	if err := s.Collect(t.Context(), nil); !errors.Is(err, sandbox.ErrEnded) {
		t.Errorf("Collect after Close: %v", err)
	}
}

func TestInputIsStreamed(t *testing.T) {
	s, _ := start(t, &sandbox.Spec{}, nil)
	p, err := s.Exec(t.Context(), &sandbox.Cmd{Args: []string{"cat"}})
	if err != nil {
		t.Fatal(err)
	}
	if !s.Busy() {
		t.Error("the sandbox is not busy while a command runs")
	}
	b := make([]byte, 5)
	for _, word := range []string{"first", "other"} {
		if _, err := io.WriteString(p.Stdin(), word); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(p.Stdout(), b); err != nil || string(b) != word {
			t.Errorf("read %q, %v", b, err)
		}
	}
	p.Stdin().Close()
	if e := p.Wait(); e.Reason != sandbox.OK {
		t.Errorf("exited with %+v", e)
	}
}

// Kill and Stop end commands, and the sandbox runs others afterwards.
func TestKillAndStop(t *testing.T) {
	s, _ := start(t, &sandbox.Spec{}, nil)
	sleeping := func() sandbox.Process {
		t.Helper()
		p, err := s.Exec(t.Context(), shell("echo up; sleep 1000"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(p.Stdout(), make([]byte, 3)); err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := sleeping()
	p.Kill()
	p.Kill()
	if e := p.Wait(); e.Signal != "SIGKILL" || e.Reason != sandbox.Exited {
		t.Errorf("killed command exited with %+v", e)
	}
	p.Kill() // does nothing
	p = sleeping()
	other := sleeping()
	s.Stop(sandbox.FileSize, "disk full")
	s.Stop(sandbox.OOM, "later")
	for _, p := range []sandbox.Process{p, other} {
		if e := p.Wait(); e.Reason != sandbox.FileSize || e.Detail != "disk full" {
			t.Errorf("stopped command exited with %+v", e)
		}
	}
	if stdout, _, e := output(t, s, shell("echo again")); stdout != "again\n" || e.Reason != sandbox.OK {
		t.Errorf("a later command printed %q and exited with %+v", stdout, e)
	}
	select {
	case <-s.Ended():
		t.Error("the stage has ended")
	default:
	}
}

// The output of a command ends with it, although its children continue to run.
func TestChildrenDoNotHoldOutput(t *testing.T) {
	s, _ := start(t, &sandbox.Spec{}, nil)
	busy, err := s.Exec(t.Context(), shell("sleep 1000"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Exec(t.Context(), shell("sleep 1000 & echo started"))
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(p.Stdout()); string(b) != "started\n" || err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read %q, %v", b, err)
	}
	if e := p.Wait(); e.Reason != sandbox.OK {
		t.Errorf("exited with %+v", e)
	}
	busy.Kill()
	busy.Wait()
}

// Commands of a sandbox that ends report the reason of the backend, if it has one.
func TestSandboxEnds(t *testing.T) {
	for name, tt := range map[string]struct {
		reason func() (sandbox.Reason, string)
		want   sandbox.Exit
	}{
		"unknown":       {nil, sandbox.Exit{Code: 137, Signal: "SIGKILL", Reason: sandbox.Exited}},
		"none":          {func() (sandbox.Reason, string) { return "", "" }, sandbox.Exit{Code: 137, Signal: "SIGKILL", Reason: sandbox.Exited}},
		"out of memory": {func() (sandbox.Reason, string) { return sandbox.OOM, "too much" }, sandbox.Exit{Code: 137, Signal: "SIGKILL", Reason: sandbox.OOM, Detail: "too much"}},
	} {
		t.Run(name, func(t *testing.T) {
			closed := 0
			s, _ := start(t, &sandbox.Spec{}, func(c *launcher.Config) { c.EndReason, c.OnClose = tt.reason, func() { closed++ } })
			p, err := s.Exec(t.Context(), shell("sleep 1000"))
			if err != nil {
				t.Fatal(err)
			}
			s.End()
			if got := p.Wait(); got != tt.want {
				t.Errorf("exited with %+v, want %+v", got, tt.want)
			}
			if closed != 0 {
				t.Error("End called OnClose")
			}
			s.Close()
			s.Close()
			if closed != 1 {
				t.Errorf("OnClose was called %d times", closed)
			}
		})
	}
}

func TestCollect(t *testing.T) {
	s, dir := start(t, &sandbox.Spec{}, nil)
	if _, _, e := output(t, s, shell("mkdir d; printf one >d/a.txt; printf run >b; chmod +x b; : >empty; printf x >in/skipped; ln -s b link")); e.Reason != sandbox.OK {
		t.Fatalf("exited with %+v", e)
	}
	type file struct {
		text string
		exec bool
	}
	got := map[string]file{}
	if err := s.Collect(t.Context(), func(f sandbox.File, r io.Reader) error {
		b, err := io.ReadAll(r)
		if int64(len(b)) != f.Size {
			t.Errorf("%s has %d bytes, want %d", f.Path, len(b), f.Size)
		}
		got[f.Path] = file{string(b), f.Exec}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if len(got) != 3 || got["d/a.txt"] != (file{"one", false}) || got["b"] != (file{"run", true}) || got["empty"] != (file{}) {
		t.Errorf("collected %+v", got)
	}
	n := 0
	if err := s.Collect(t.Context(), func(sandbox.File, io.Reader) error { n++; return nil }); err != nil || n != 3 {
		t.Errorf("without reading: %d files, %v", n, err)
	}
	want := errors.New("enough")
	if err := s.Collect(t.Context(), func(sandbox.File, io.Reader) error { return want }); !errors.Is(err, want) {
		t.Errorf("visit failed: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := s.Collect(ctx, func(sandbox.File, io.Reader) error { cancel(); return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if err := os.RemoveAll(dir + mountpoint.Work); err != nil {
		t.Fatal(err)
	}
	if err := s.Collect(t.Context(), func(sandbox.File, io.Reader) error { return nil }); err == nil {
		t.Error("a missing directory was collected")
	}
}

func file(path, data string) sandbox.File {
	sum := sha256.Sum256([]byte(data))
	return sandbox.File{Path: path, Size: int64(len(data)), SHA256: hex.EncodeToString(sum[:])}
}

// Files reach the sandbox as the manifest lists them, or it does not start.
func TestTreesAreVerified(t *testing.T) {
	const text = "#!/bin/sh\necho hi"
	large := strings.Repeat("0123456789abcdef", 40_000) // several messages
	fsys := fstest.MapFS{
		"a/run.sh": {Data: []byte(text)}, "large": {Data: []byte(large)}, "empty": {}, "dir": {Mode: os.ModeDir | 0o755},
	}
	script := file("a/run.sh", text)
	script.Exec = true
	upper := file("large", large)
	upper.SHA256 = strings.ToUpper(upper.SHA256)
	unknown := script
	unknown.SHA256, unknown.Exec = "", false
	t.Run("unchanged", func(t *testing.T) {
		s, dir := start(t, &sandbox.Spec{}, func(c *launcher.Config) {
			c.Trees = []sandbox.Tree{{Path: mountpoint.Skill, FS: fsys, Files: []sandbox.File{script, upper, file("empty", "")}}, {Path: mountpoint.Skill + "2", FS: fsys, Files: []sandbox.File{unknown}}}
		})
		for p, want := range map[string]string{"/a/run.sh": text, "/large": large, "/empty": "", "2/a/run.sh": text} {
			if b, err := os.ReadFile(dir + mountpoint.Skill + p); err != nil || !bytes.Equal(b, []byte(want)) {
				t.Errorf("%s has %d bytes, %v", p, len(b), err)
			}
		}
		if stdout, _, e := output(t, s, &sandbox.Cmd{Args: []string{dir + mountpoint.Skill + "/a/run.sh"}}); stdout != "hi\n" || e.Reason != sandbox.OK {
			t.Errorf("the script printed %q and exited with %+v", stdout, e)
		}
		for p, want := range map[string]os.FileMode{"/a/run.sh": 0o755, "/large": 0o644} {
			if fi, err := os.Stat(dir + mountpoint.Skill + p); err != nil || fi.Mode().Perm() != want {
				t.Errorf("%s: %v, %v, want mode %v", p, fi.Mode(), err, want)
			}
		}
	})
	shorter, longer := file("a/run.sh", text[:4]), file("a/run.sh", text+", and more")
	for name, f := range map[string]sandbox.File{
		"other data": file("a/run.sh", strings.Replace(text, "hi", "ho", 1)), "grown": shorter, "shrunk": longer, "missing": file("b", ""), "a directory": file("dir", ""),
		"grown from nothing": file("a/run.sh", ""),
	} {
		dir := t.TempDir()
		closed := 0
		cfg := config(dir)
		cfg.OnClose = func() { closed++ }
		cfg.Trees = []sandbox.Tree{{Path: mountpoint.Skill, FS: fsys, Files: []sandbox.File{f}}}
		_, err := launcher.Start(t.Context(), &sandbox.Spec{}, cfg)
		if e, ok := errors.AsType[*sandbox.ChangedError](err); !ok || e.Path != f.Path || e.Tree != mountpoint.Skill || (e.Err != nil) != (name == "missing" || name == "a directory") {
			t.Errorf("%s: %v", name, err)
		}
		if closed != 1 {
			t.Errorf("%s: OnClose was called %d times", name, closed)
		}
	}
}

// A step of the setup that fails is named, with the reason.
func TestSetupFails(t *testing.T) {
	want := errors.New("no program")
	for name, tt := range map[string]struct {
		change  func(*launcher.Config)
		missing string
		err     error
	}{
		"a file that exists": {func(c *launcher.Config) {
			fsys := fstest.MapFS{"f": {}}
			c.Trees = []sandbox.Tree{{Path: mountpoint.Skill, FS: fsys, Files: []sandbox.File{{Path: "f"}, {Path: "f"}}}}
		}, "cannot write", syscall.EEXIST},
		"a filter that cannot be made": {func(c *launcher.Config) { c.Filter = func() ([]byte, error) { return nil, want } }, "seccomp", want},
	} {
		cfg := config(t.TempDir())
		tt.change(cfg)
		_, err := launcher.Start(t.Context(), &sandbox.Spec{}, cfg)
		if e, ok := errors.AsType[*sandbox.UnavailableError](err); !ok || e.Backend != "test" || !strings.HasPrefix(e.Missing, tt.missing) || !errors.Is(err, tt.err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A command that is bound to a thread runs until the sandbox is closed.
func TestBoundStage(t *testing.T) {
	s, _ := start(t, &sandbox.Spec{}, func(c *launcher.Config) {
		c.Bound = true
		c.Command.SysProcAttr.Pdeathsig = syscall.SIGKILL
	})
	if stdout, _, _ := output(t, s, shell("echo alive")); stdout != "alive\n" {
		t.Errorf("printed %q", stdout)
	}
}

// A stage without a guard is killed with its commands.
func TestCloseKillsCommands(t *testing.T) {
	s, dir := start(t, &sandbox.Spec{}, nil)
	p, err := s.Exec(t.Context(), shell("echo $$ >pid; mv pid ready; echo; sleep 1000"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Stdout().Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir+mountpoint.Work, "ready"))
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	p.Wait()
	if _, err := os.Stat("/proc/" + strings.TrimSpace(string(b)) + "/cwd"); err == nil {
		t.Error("the command runs after Close")
	}
	if n, err := p.Stdout().Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("read %d bytes, %v", n, err)
	}
}

func TestLimits(t *testing.T) {
	l := sandbox.Limits{CPU: 1500 * time.Millisecond, Memory: 1 << 20, FileSize: 3, OpenFiles: 4, Processes: 5}
	byResource := func(all []stage.Rlimit) map[int]stage.Rlimit {
		out := map[int]stage.Rlimit{}
		for _, r := range all {
			out[r.Resource] = r
		}
		return out
	}
	const nproc = 6
	got := byResource(launcher.Rlimits(l, true))
	if r := got[syscall.RLIMIT_CPU]; r.Soft != 2 || r.Hard != 3 {
		t.Errorf("CPU time limit %+v, want 2 to 3 s", r)
	}
	if r := got[nproc]; r.Hard != 5+launcher.SpareThreads || r.Soft != r.Hard {
		t.Errorf("process limit %+v", r)
	}
	if _, ok := byResource(launcher.Rlimits(l, false))[nproc]; ok {
		t.Error("a process limit where none is wanted")
	}
	size, inodes := launcher.TreeSize(&sandbox.Tree{Files: []sandbox.File{{Path: "a", Size: 0}, {Path: "a/b/c", Size: 4097}}})
	if wantSize, wantInodes := int64(1<<20+4096+3*4096), 64+2+2+2; size != wantSize || inodes != wantInodes {
		t.Errorf("a tree takes %d bytes and %d inodes, want %d and %d", size, inodes, wantSize, wantInodes)
	}
	if launcher.SocketSize() < 64<<10 {
		t.Errorf("a socket can hold %d bytes", launcher.SocketSize())
	}
}
