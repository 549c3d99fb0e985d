package stage

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// process is a stage that this test binary runs as, controlled by the test like
// by a backend.
type process struct {
	*testing.T
	conn
	cmd *exec.Cmd
	id  int // of the last command
}

func startProcess(t *testing.T, attr *syscall.SysProcAttr, args ...string) (*process, error) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	peer := os.NewFile(uintptr(fds[1]), "stage")
	defer peer.Close()
	p := &process{T: t, conn: conn{fds[0]}, cmd: &exec.Cmd{
		Path: "/proc/self/exe", Args: append([]string{Name}, args...), Dir: "/", Env: []string{"GORACE=atexit_sleep_ms=0"}, Stderr: t.Output(),
		ExtraFiles: []*os.File{peer}, SysProcAttr: attr,
	}}
	t.Cleanup(func() { syscall.Close(p.fd) })
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		p.cmd.Wait()
	})
	return p, nil
}

func newProcess(t *testing.T, args ...string) *process {
	t.Helper()
	attr := &syscall.SysProcAttr{}
	if os.Geteuid() == 0 { // even a faulty stage must not change the mounts of this machine
		attr.Unshareflags = syscall.CLONE_NEWNS
	}
	p, err := startProcess(t, attr, args...)
	if errors.Is(err, syscall.EPERM) { // root without privileges cannot mount either
		p, err = startProcess(t, nil, args...)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// sendData sends bytes that are no JSON.
func (p *process) sendData(kind uint32, data []byte) {
	p.Helper()
	for b := append(FrameBytes(kind, len(data)), data...); len(b) > 0; {
		n, err := syscall.Write(p.fd, b)
		if err != nil {
			p.Fatal(err)
		}
		b = b[n:]
	}
}

func (p *process) request(kind uint32, body any, fds ...int) {
	p.Helper()
	if err := p.send(kind, body, fds...); err != nil {
		p.Fatal(err)
	}
}

// expect reads the next message into body.
func (p *process) expect(want uint32, body any) (fds []int) {
	p.Helper()
	kind, size, fds, err := p.readHeader()
	if err == nil {
		err = p.readBody(size, body)
	}
	if err != nil || kind != want {
		p.Fatalf("message of kind %d, want %d: %v", kind, want, err)
	}
	return fds
}

// restrict sends r and returns the descriptors that the stage passes out.
func (p *process) restrict(r Restrictions) []int {
	p.Helper()
	p.request(KindRestrict, r)
	var ready Ready
	fds := p.expect(KindReady, &ready)
	if ready.Error != "" {
		p.Fatalf("not ready: %+v", ready)
	}
	return fds
}

// start starts a shell command and returns its output.
func (p *process) start(dir, script string) *os.File {
	p.Helper()
	r := p.command(dir, script)
	p.expectStart()
	return r
}

// command requests a shell command. The stage can report its exit before its
// start.
func (p *process) command(dir, script string) (output *os.File) {
	p.Helper()
	null, err := os.Open(os.DevNull)
	if err != nil {
		p.Fatal(err)
	}
	defer null.Close()
	r, w, err := os.Pipe()
	if err != nil {
		p.Fatal(err)
	}
	defer w.Close()
	p.Cleanup(func() { r.Close() })
	p.id++
	p.request(KindExec, Exec{ID: p.id, Path: "sh", Args: []string{"sh", "-c", script}, Env: []string{"A=from the environment", "PATH=/nowhere:/usr/bin:/bin"}, Dir: dir},
		int(null.Fd()), int(w.Fd()), int(w.Fd()))
	return r
}

func (p *process) expectStart() {
	p.Helper()
	var s Started
	if p.expect(KindStarted, &s); s.ID != p.id || s.PID == 0 || s.Error != "" {
		p.Fatalf("started %+v", s)
	}
}

// run runs a shell command to its end, and that of all processes that write to
// its output.
func (p *process) run(dir, script string) (output string, e Exited) {
	p.Helper()
	r := p.command(dir, script)
	kind, size, _, err := p.readHeader()
	if err != nil {
		p.Fatal(err)
	}
	switch kind {
	case KindStarted:
		var s Started
		if err := p.readBody(size, &s); err != nil || s.ID != p.id || s.PID == 0 || s.Error != "" {
			p.Fatalf("started %+v: %v", s, err)
		}
		p.expect(KindExited, &e)
	case KindExited:
		if err := p.readBody(size, &e); err != nil {
			p.Fatal(err)
		}
		p.expectStart()
	default:
		p.Fatalf("message of kind %d", kind)
	}
	b, err := io.ReadAll(r)
	if err != nil || e.ID != p.id {
		p.Fatalf("exited %+v: %v", e, err)
	}
	return string(b), e
}

// allowAll is a seccomp program that allows all calls.
var allowAll = []byte{0x06, 0, 0, 0, 0, 0, 0xff, 0x7f}

func TestCommands(t *testing.T) {
	work := t.TempDir()
	p := newProcess(t)
	p.request(KindSetup, Setup{Reap: true})
	p.request(KindFile, File{Path: work + "/in/given/data", Size: 10, Mode: 0o640})
	p.sendData(KindData, []byte("0123"))
	p.sendData(KindData, []byte("456789"))
	p.sendData(KindFilter, allowAll)
	p.restrict(Restrictions{Rlimits: []Rlimit{{syscall.RLIMIT_NOFILE, 77, 88}, {syscall.RLIMIT_CORE, 0, 0}}, Seccomp: true, Nice: 3, Threads: 4, Work: work, Skip: "in"})

	got, e := p.run(work, `echo $A; pwd; cat in/given/data; echo; ulimit -n; ulimit -Hn; ulimit -c; nice; umask; sed -n 's/^\(Seccomp\|NoNewPrivs\):\t//p' /proc/self/status; exit 3`)
	if want := "from the environment\n" + work + "\n0123456789\n77\n88\n0\n3\n0022\n1\n2\n"; got != want || e.Code != 3 || e.Signal != 0 || e.MaxRSS == 0 {
		t.Errorf("exited %+v with %q, want %q", e, got, want)
	}
	if fi, err := os.Stat(work + "/in/given/data"); err != nil || fi.Mode().Perm() != 0o640 {
		t.Errorf("the file: %v, %v", fi, err)
	}
	if _, e := p.run(work, "kill -TERM $$"); e.Signal != int(syscall.SIGTERM) || e.Code != 128+int(syscall.SIGTERM) || e.Spent {
		t.Errorf("after a signal, exited %+v", e)
	}
	p.run(work, "sleep 600 & setsid sleep 600 &") // ends only if both are killed

	first := p.start(work, "setsid sleep 600 & echo started; wait")
	second := p.start(work, "echo started; sleep 600")
	for _, r := range []*os.File{first, second} {
		if line, err := bufio.NewReader(r).ReadString('\n'); err != nil {
			t.Fatalf("read %q: %v", line, err)
		}
	}
	for _, id := range []int{99, p.id - 1, p.id} { // no command has ID 99
		p.request(KindKill, Kill{id})
		if id == 99 {
			continue
		}
		var e Exited
		p.expect(KindExited, &e)
		if e.ID != id || e.Signal != int(syscall.SIGKILL) || e.OOM || e.Full {
			t.Errorf("killed %d, exited %+v", id, e)
		}
	}
	for _, r := range []*os.File{first, second} {
		if _, err := io.Copy(io.Discard, r); err != nil {
			t.Error(err)
		}
	}

	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, path := range []string{"no-such-program", work + "/no-such-program"} {
		p.request(KindExec, Exec{ID: 50, Path: path, Args: []string{"x"}, Env: []string{"PATH=/usr/bin:" + work}, Dir: work}, int(null.Fd()), int(null.Fd()), int(null.Fd()))
		var s Started
		if p.expect(KindStarted, &s); s.ID != 50 || s.Errno != int(syscall.ENOENT) || s.Error == "" {
			t.Errorf("%s: started %+v", path, s)
		}
	}

	syscall.Shutdown(p.fd, syscall.SHUT_RDWR)
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("after a hang-up: %v", err)
	}
}

func TestCollect(t *testing.T) {
	work := t.TempDir()
	p := newProcess(t)
	p.restrict(Restrictions{Work: work, Skip: "in"})
	if out, e := p.run(work, `mkdir -p in out/a && echo input > in/x && printf hello > out/a/text && echo '#!/bin/sh' > out/run && chmod +x out/run && : > out/empty &&
		ln -s ../in/x out/symlink && mkfifo out/fifo && : > "$(printf 'out/\377')"`); e.Code != 0 {
		t.Fatalf("exited %+v: %s", e, out)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p.request(KindCollect, Collect{ID: 7}, int(w.Fd()))
	w.Close()
	var got []string
	for b := bufio.NewReader(r); ; {
		line, err := b.ReadBytes('\n')
		var e Entry
		if err == nil {
			err = json.Unmarshal(line, &e)
		}
		if err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		if e.End {
			break
		}
		data := make([]byte, e.Size)
		if _, err := io.ReadFull(b, data); err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %t %q", e.Path, e.Exec, data))
	}
	if want := []string{`out/a/text false "hello"`, `out/empty false ""`, `out/run true "#!/bin/sh\n"`}; !slices.Equal(got, want) {
		t.Errorf("collected %q, want %q", got, want)
	}
	var c Collected
	if p.expect(KindCollected, &c); c.ID != 7 || c.Error != "" {
		t.Errorf("collected %+v", c)
	}
}

func TestLandlock(t *testing.T) {
	abi := LandlockABI()
	if abi < 4 {
		t.Skipf("kernel has Landlock ABI %d", abi)
	}
	dir := t.TempDir()
	for _, d := range []string{"read", "write", "none"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, d, "x"), []byte(d+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	l := &Landlock{Least: abi, TCP: true, Read: []string{dir + "/missing", "/usr", "/bin", "/lib", "/lib64", dir + "/read"}, Write: []string{dir + "/write"}, Files: []string{os.DevNull}}
	p := newProcess(t)
	p.restrict(Restrictions{Landlock: l})
	got, e := p.run("/", "cd "+dir+`; exec 2>/dev/null; for d in read write none; do cat $d/x; done; for d in read write none; do (: >> $d/x) && (echo > $d/y) && mkdir $d/z && echo can write $d; done; mknod write/c c 1 3 || echo no device; true`)
	if want := "read\nwrite\ncan write write\nno device\n"; got != want || e.Code != 0 {
		t.Errorf("got %q, want %q: %+v", got, want, e)
	}
}

// TestUnusable checks that a stage reports which step of its setup failed.
func TestUnusable(t *testing.T) {
	dir := t.TempDir()
	existing := filepath.Join(dir, "existing")
	if err := os.WriteFile(existing, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	restrict := func(r Restrictions) func(*process) { return func(p *process) { p.request(KindRestrict, r) } }
	for _, tt := range []struct {
		name  string
		send  func(*process)
		step  string
		errno syscall.Errno
	}{
		{"unknown message", func(p *process) { p.request(99, "x") }, "read instructions", syscall.EPROTO},
		{"setup is no JSON", func(p *process) { p.sendData(KindSetup, []byte("{")) }, "read instructions", 0},
		{"file is no JSON", func(p *process) { p.sendData(KindFile, []byte("{")) }, "read instructions", 0},
		{"restrictions are no JSON", func(p *process) { p.sendData(KindRestrict, []byte("{")) }, "read instructions", 0},
		{"file exists", func(p *process) { p.request(KindFile, File{Path: existing, Size: 1, Mode: 0o600}) }, "write " + existing, syscall.EEXIST},
		{"file is too long", func(p *process) {
			p.request(KindFile, File{Path: dir + "/long", Size: 3, Mode: 0o600})
			p.sendData(KindData, []byte("1234"))
		}, "write " + dir + "/long", syscall.EPROTO},
		{"another message in a file", func(p *process) {
			p.request(KindFile, File{Path: dir + "/other", Size: 3, Mode: 0o600})
			p.sendData(KindFilter, []byte("123"))
		}, "write " + dir + "/other", syscall.EPROTO},
		{"resource limit", restrict(Restrictions{Rlimits: []Rlimit{{999, 1, 1}}}), "set resource limit 999", syscall.EINVAL},
		{"no filter", restrict(Restrictions{Seccomp: true}), "seccomp", syscall.EINVAL},
		{"filter of half an instruction", func(p *process) {
			p.sendData(KindFilter, append(slices.Clone(allowAll), 1, 2, 3, 4))
			p.request(KindRestrict, Restrictions{Seccomp: true})
		}, "seccomp", syscall.EINVAL},
		{"future kernel", restrict(Restrictions{Landlock: &Landlock{Least: 1000}}), "Landlock", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newProcess(t)
			tt.send(p)
			var r Ready
			p.expect(KindReady, &r)
			if r.Step != tt.step || r.Errno != int(tt.errno) || !strings.HasPrefix(r.Error, tt.step+": ") {
				t.Errorf("got %+v, want step %q, error %d", r, tt.step, tt.errno)
			}
			if kind, _, _, err := p.readHeader(); err == nil {
				t.Errorf("the stage continues and sends a message of kind %d", kind)
			}
			if err := p.cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Under a guard, code that kills or stops its stage does not survive it.
func TestGuard(t *testing.T) {
	for _, signal := range []string{"KILL", "STOP"} {
		t.Run(signal, func(t *testing.T) {
			p := newProcess(t, Guard)
			p.request(KindSetup, Setup{Reap: true})
			p.restrict(Restrictions{})
			fifo := filepath.Join(t.TempDir(), "started")
			if err := syscall.Mkfifo(fifo, 0o600); err != nil {
				t.Fatal(err)
			}
			r := p.start("/", "read started < "+fifo+"; setsid sleep 600 & kill -"+signal+" $PPID; sleep 600")
			w, err := os.OpenFile(fifo, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			w.Close()
			if signal == "STOP" {
				syscall.Shutdown(p.fd, syscall.SHUT_RDWR)
			}
			if out, err := io.ReadAll(r); err != nil {
				t.Errorf("output %q: %v", out, err)
			}
			if err := p.cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestMemoryWatch(t *testing.T) {
	p := newProcess(t)
	p.request(KindSetup, Setup{Reap: true})
	p.restrict(Restrictions{Memory: 64 << 20, Socket: 1 << 18, NetShared: true})
	if out, e := p.run("/", "echo small"); e.OOM || e.Code != 0 || out != "small\n" {
		t.Errorf("a small command printed %q, exited %+v", out, e)
	}
	if _, e := p.run("/", "head -c 600000000 /dev/zero | tail | wc -c"); !e.OOM || e.Full || e.Signal != int(syscall.SIGKILL) {
		t.Errorf("a large command exited %+v", e)
	}
}

func TestStageIsNoCommand(t *testing.T) {
	cmd := exec.Cmd{Path: "/proc/self/exe", Args: []string{Name}}
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), "not a command") {
		t.Errorf("got %q, %v", out, err)
	}
}

func TestExited(t *testing.T) {
	exited := func(code int) syscall.WaitStatus { return syscall.WaitStatus(code << 8) }
	signaled := func(s syscall.Signal) syscall.WaitStatus { return syscall.WaitStatus(s) }
	for _, tt := range []struct {
		name    string
		limit   int64 // in seconds
		cpu     int64 // in milliseconds
		status  syscall.WaitStatus
		command command
		want    Exited
	}{
		{"success", 2, 300, exited(0), command{}, Exited{}},
		{"code", 2, 2000, exited(7), command{}, Exited{Code: 7}},
		{"CPU limit", 2, 2001, signaled(syscall.SIGXCPU), command{}, Exited{Code: 128 + 24, Signal: 24, Spent: true}},
		{"CPU limit, measured differently", 2, 1000, signaled(syscall.SIGXCPU), command{}, Exited{Code: 128 + 24, Signal: 24, Spent: true}},
		{"signal of a CPU limit without one", 0, 2000, signaled(syscall.SIGXCPU), command{}, Exited{Code: 128 + 24, Signal: 24}},
		{"hard CPU limit", 2, 1950, signaled(syscall.SIGKILL), command{}, Exited{Code: 137, Signal: 9, Spent: true}},
		{"killed earlier", 2, 1800, signaled(syscall.SIGKILL), command{}, Exited{Code: 137, Signal: 9}},
		{"killed without a CPU limit", 0, 2000, signaled(syscall.SIGKILL), command{}, Exited{Code: 137, Signal: 9}},
		{"ended by its own signal", 2, 2000, signaled(syscall.SIGTERM), command{}, Exited{Code: 143, Signal: 15}},
		{"out of memory", 2, 100, signaled(syscall.SIGKILL), command{oom: true}, Exited{Code: 137, Signal: 9, OOM: true}},
		{"out of inodes", 2, 100, signaled(syscall.SIGKILL), command{full: true}, Exited{Code: 137, Signal: 9, Full: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer syscall.Close(fds[0])
			defer syscall.Close(fds[1])
			tt.command.id = 5
			s := &stage{conn: conn{fds[0]}, seal: Restrictions{CPU: tt.limit}, running: map[int]*command{1234: &tt.command, 1235: {id: 6}}}
			user := tt.cpu * 1e6 / 4
			use := &syscall.Rusage{Utime: syscall.NsecToTimeval(user), Stime: syscall.NsecToTimeval(tt.cpu*1e6 - user), Maxrss: 3}
			s.handleExit(4321, exited(0), use) // an orphan, which is not reported
			s.handleExit(1234, tt.status, use)
			p := &process{T: t, conn: conn{fds[1]}}
			var got Exited
			p.expect(KindExited, &got)
			tt.want.ID, tt.want.CPU, tt.want.MaxRSS = 5, tt.cpu*1e6, 3<<10
			if got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
			if _, left := s.running[1234]; left || len(s.running) != 1 {
				t.Errorf("still running: %v", s.running)
			}
		})
	}
}
