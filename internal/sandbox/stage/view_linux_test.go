package stage

import (
	"bufio"
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// newView starts a stage in new namespaces, where it may mount.
func newView(t *testing.T) *process {
	t.Helper()
	const inside = 1000
	p, err := startProcess(t, &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS | syscall.CLONE_NEWNET,
		Setsid:      true,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: inside, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: inside, HostID: os.Getegid(), Size: 1}},
		AmbientCaps: []uintptr{1, 5, 6, 7, 8, 12, 19, 21}, // as in the backend native
	})
	for _, refused := range []error{syscall.EPERM, syscall.EINVAL, syscall.ENOSYS, syscall.ENOSPC, syscall.EUSERS} {
		if errors.Is(err, refused) {
			t.Skipf("cannot create namespaces: %v", err)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// rootSetup returns a view with the programs of this machine.
func rootSetup() Setup {
	s := Setup{Root: true, Tmpfs: []Tmpfs{{Path: "/dev", Size: 64 << 10, Mode: 0o755}}, Binds: []Bind{{Host: os.DevNull, Path: os.DevNull, Writable: true, File: true}}}
	for _, dir := range []string{"/usr", "/bin", "/lib", "/lib64"} {
		if target, err := os.Readlink(dir); err == nil {
			s.Links = append(s.Links, Link{dir, target})
		} else {
			s.Binds = append(s.Binds, Bind{Host: dir, Path: dir, Optional: true})
		}
	}
	return s
}

func TestView(t *testing.T) {
	dir := t.TempDir()
	for name, data := range map[string]string{"ro/x": "read-only\n", "rw/x": "writable\n", "noexec/run": "#!/bin/sh\necho executed\n", "file": "a file\n", "secret": "secret\n"} {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(data), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s := rootSetup()
	s.Proc, s.Hostname, s.Loopback, s.Listen = true, "inside", true, 4321
	s.Tmpfs = append(s.Tmpfs, Tmpfs{Path: "/tmp", Size: 1 << 20, Inodes: 64, Mode: 0o1777})
	s.Binds = append(s.Binds, Bind{Host: dir + "/ro", Path: "/ro"}, Bind{Host: dir + "/rw", Path: "/data/rw", Writable: true}, Bind{Host: dir + "/noexec", Path: "/noexec", Writable: true, NoExec: true},
		Bind{Host: dir + "/file", Path: "/etc/file", File: true}, Bind{Host: dir + "/missing", Path: "/missing", Optional: true})
	s.Dirs, s.Links = []string{"/empty/dir"}, append(s.Links, Link{"/links/file", "/etc/file"})
	s.Files = []Text{{Path: "/etc/text", Data: "a text\n", Mode: 0o604}}
	p := newView(t)
	p.request(KindSetup, s)
	p.request(KindFile, File{Path: "/work/sent", Size: 5, Mode: 0o600})
	p.sendData(KindData, []byte("sent\n"))
	fds := p.restrict(Restrictions{Caps: true, ReadOnly: []string{"/"}, Counted: []string{"/tmp"}, Inodes: 50, Memory: 1 << 30, Socket: 1 << 18})

	for _, tt := range []struct{ what, script, want string }{
		{"the host name", "uname -n", "inside"},
		{"its user", "id -u", "1000"},
		{"a text", "cat /etc/text; stat -c %a /etc/text", "a text\n604"},
		{"a file sent", "cat /work/sent", "sent"},
		{"a mounted file, through a symlink", "cat /links/file", "a file"},
		{"an empty directory", "ls -A /empty/dir; echo listed", "listed"},
		{"a read-only mount", "cat /ro/x; (: > /ro/y) || echo refused", "read-only\nrefused"},
		{"a writable mount", "cat /data/rw/x; echo written > /data/rw/y", "writable"},
		{"a mount without execution", "/noexec/run || echo refused; sh /noexec/run", "refused\nexecuted"},
		{"a missing optional mount", "ls /missing || echo none", "none"},
		{"the host's root directory", "[ \"$(ls -A /..)\" = \"$(ls -A /)\" ] && echo detached; while read a b c d point rest; do [ $point = / ] && echo mount; done < /proc/self/mountinfo", "detached\nmount"},
		{"the directory of the host", "ls " + dir + " || echo none", "none"},
		{"the root directory", "(: > /x) || echo refused; (: > /etc/text) || echo refused", "refused\nrefused"},
		{"a file system in memory", "stat -f -c '%T %c' /tmp; stat -c %a /tmp; cat /usr/bin/* > /tmp/y || echo full; rm /tmp/y", "tmpfs 64\n1777\nfull"},
		{"processes", "ls -d /proc/[0-9]* | wc -l | sed 's/^[1-9]$/few/'", "few"},
		{"files of the machine", "head -c 1 /proc/kcore | wc -c; for f in sysrq-trigger sys/kernel/hostname; do (echo x > /proc/$f) || echo refused; done", "0\nrefused\nrefused"},
		{"capabilities", `sed -n 's/^Cap\(Inh\|Prm\|Eff\|Bnd\|Amb\):\t//p' /proc/self/status | sort -u`, strings.Repeat("0", 16)},
	} {
		if got, e := p.run("/", "exec 2>/dev/null; "+tt.script); strings.TrimSpace(got) != tt.want || e.Full || e.OOM {
			t.Errorf("%s: got %q, want %q: %+v", tt.what, got, tt.want, e)
		}
	}
	if b, err := os.ReadFile(dir + "/rw/y"); string(b) != "written\n" {
		t.Errorf("written: %q, %v", b, err)
	}
	if _, err := os.Stat(dir + "/ro/y"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("written to a read-only mount: %v", err)
	}
	if len(fds) != 1 {
		t.Fatalf("passed out %v", fds)
	}
	f := os.NewFile(uintptr(fds[0]), "listener")
	defer f.Close()
	l, err := net.FileListener(f)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if l.Addr().String() != "127.0.0.1:"+strconv.Itoa(int(s.Listen)) {
		t.Errorf("listens at %s", l.Addr())
	}
	if _, err := exec.LookPath("bash"); err == nil { // it can connect
		if out, e := p.run("/", "exec bash -c 'echo hello > /dev/tcp/127.0.0.1/4321'"); e.Code != 0 {
			t.Fatalf("connect: %+v: %s", e, out)
		}
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if line, err := bufio.NewReader(c).ReadString('\n'); line != "hello\n" {
			t.Errorf("received %q, %v", line, err)
		}
	}

	if _, e := p.run("/tmp", "i=0; while [ $i -lt 60 ]; do : > $i; i=$((i+1)); done; sleep 600"); !e.Full || e.OOM {
		t.Errorf("with too many files, exited %+v", e)
	}
}

func TestOverlay(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"host", "data/upper", "data/work"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(dir+"/host/x", []byte("of the host\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := rootSetup()
	s.Overlay = &Overlay{Host: dir + "/host", Path: "/shown/over", Data: dir + "/data"}
	p := newView(t)
	p.request(KindSetup, s)
	p.request(KindRestrict, Restrictions{})
	var ready Ready
	p.expect(KindReady, &ready)
	if ready.Error != "" {
		t.Fatalf("not ready: %+v", ready)
	}
	got, _ := p.run("/shown/over", "exec 2>/dev/null; cat x; (echo changed > x) || echo refused; ls -A /")
	for _, name := range []string{lowerPoint, dataPoint} {
		if strings.Contains(got, name[1:]) {
			t.Errorf("the directories of the overlay can be seen: %q", got)
		}
	}
	if b, err := os.ReadFile(dir + "/host/x"); string(b) != "of the host\n" {
		t.Errorf("the host's file is %q, %v", b, err)
	}
	if !strings.HasPrefix(got, "of the host\n") || strings.Contains(got, "refused") != (ready.Overlay != "") {
		t.Errorf("got %q, overlay %q", got, ready.Overlay)
	}
	if b, err := os.ReadFile(dir + "/data/upper/x"); ready.Overlay == "" && string(b) != "changed\n" {
		t.Errorf("the changed file is %q, %v", b, err)
	}
}

// A view that cannot be created is an error with the failed step.
func TestUnusableView(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for step, change := range map[string]func(*Setup){
		"mount " + dir + "/missing":    func(s *Setup) { s.Binds = append(s.Binds, Bind{Host: dir + "/missing", Path: "/x"}) },
		"mount /x":                     func(s *Setup) { s.Binds = append(s.Binds, Bind{Host: file, Path: "/x"}) }, // a file at a directory
		"make /dev/null/x":             func(s *Setup) { s.Dirs = []string{"/dev/null/x"} },
		"make /tmp":                    func(s *Setup) { s.Tmpfs = append(s.Tmpfs, Tmpfs{Path: "/tmp", Size: -1}) },
		"link /dev/null/x":             func(s *Setup) { s.Links = append(s.Links, Link{"/dev/null/x", "/"}) },
		"write /dev/null":              func(s *Setup) { s.Files = []Text{{Path: "/dev/null"}} },
		"mount " + dir + "/no-overlay": func(s *Setup) { s.Overlay = &Overlay{Host: dir + "/no-overlay", Path: "/x", Data: dir} },
		"mount " + dir + "/no-data":    func(s *Setup) { s.Overlay = &Overlay{Host: dir, Path: "/x", Data: dir + "/no-data"} },
		"make a mount point for /x/y/z": func(s *Setup) {
			s.Binds = append(s.Binds, Bind{Host: file, Path: "/x", File: true}, Bind{Host: dir, Path: "/x/y/z"})
		},
		"make /dev/null/x read-only": func(*Setup) {},
		"become user 77":             func(s *Setup) { s.UID = 77 }, // has no ID in the namespace
		"set the host name":          func(s *Setup) { s.Hostname = strings.Repeat("x", 65) },
	} {
		t.Run(strings.ReplaceAll(step, "/", "|"), func(t *testing.T) {
			s := rootSetup()
			change(&s)
			p := newView(t)
			p.request(KindSetup, s)
			p.send(KindRestrict, Restrictions{ReadOnly: []string{"/dev/null/x"}}) // fails if the stage has already ended
			var r Ready
			if p.expect(KindReady, &r); r.Step != step || r.Errno == 0 {
				t.Errorf("got %+v, want step %q", r, step)
			}
		})
	}
}
