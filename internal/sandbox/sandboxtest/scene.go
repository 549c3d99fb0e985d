//go:build linux

package sandboxtest

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// scene is the environment of an attack: a home directory with secrets, and a
// victim process that represents the hub.
type scene struct {
	dir     string // parent of all directories of the scene
	home    string
	tmp     string // TMPDIR of the test, where backends store files
	bin     string // payload for the host to run
	key     string // ~/.ssh/id_rsa
	rc      string // ~/.bashrc
	config  string // hub.yaml
	other   string // SKILL.md of another skill
	setuid  string // working setuid copy of the payload, or ""
	secrets map[string]string
	victim  *victim
}

// addresses holds the addresses on which the victim listens.
type addresses struct {
	PID                            int
	TCP, TCP6, LAN, Abstract, Unix string
	UDP, Addr, Key, NoKey          string
	Len, FD                        int
}

type victim struct {
	addresses
	mark  string
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
}

func randomWord() string { return strings.ToLower(rand.Text()[:16]) }

// newScene creates a scene. It is removed when the test ends.
func newScene(t *testing.T) *scene {
	t.Helper()
	dir := t.TempDir()
	s := &scene{dir: dir, home: filepath.Join(dir, "home"), tmp: filepath.Join(dir, "tmp"), bin: filepath.Join(dir, "payload"), secrets: map[string]string{}}
	s.key, s.rc, s.config, s.other = s.home+"/.ssh/id_rsa", s.home+"/.bashrc", s.home+"/.config/hub.yaml", s.home+"/skills/other/SKILL.md"
	for _, d := range []string{s.tmp, s.home + "/.ssh", s.home + "/.config", s.home + "/skills/other"} {
		requireNoError(t, os.MkdirAll(d, 0o755))
	}
	requireNoError(t, os.WriteFile(s.bin, payloadBytes(t), 0o755))
	for name, path := range map[string]string{"key": s.key, "config": s.config, "other": s.other, "rc": s.rc, "fd": s.home + "/held"} {
		s.secrets[name] = "secret" + name + randomWord()
		requireNoError(t, os.WriteFile(path, []byte("# "+s.secrets[name]+"\n"), 0o600))
	}
	for _, name := range []string{"env", "hubenv", "memory"} {
		s.secrets[name] = "secret" + name + randomWord()
	}
	t.Setenv("TMPDIR", s.tmp)
	t.Setenv("LOADOUT_TEST_ENV", s.secrets["env"])
	s.leakFD(t)
	s.victim = s.startVictim(t)
	s.setuid = s.findSetuid(t)
	return s
}

func requireNoError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// leakFD opens a secret file without close-on-exec, as a careless parent
// process might do.
func (s *scene) leakFD(t *testing.T) {
	fd, err := unix.Open(s.home+"/held", unix.O_RDONLY, 0)
	requireNoError(t, err)
	t.Cleanup(func() { unix.Close(fd) })
}

func (s *scene) startVictim(t *testing.T) *victim {
	v := &victim{mark: "victim-" + randomWord()}
	v.cmd = exec.Command(s.bin, "victim", v.mark, s.home, lanAddress(), s.config)
	v.cmd.Env = []string{"LOADOUT_TEST_HUB_ENV=" + s.secrets["hubenv"], "LOADOUT_TEST_HUB_MEMORY=" + s.secrets["memory"]}
	v.cmd.Stderr = os.Stderr
	v.cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	var err error
	v.in, err = v.cmd.StdinPipe()
	requireNoError(t, err)
	out, err := v.cmd.StdoutPipe()
	requireNoError(t, err)
	requireNoError(t, v.cmd.Start())
	t.Cleanup(func() {
		v.in.Close()
		kill := time.AfterFunc(3*time.Second, func() { v.cmd.Process.Kill() })
		v.cmd.Wait()
		kill.Stop()
	})
	v.lines = bufio.NewScanner(out)
	if !v.lines.Scan() {
		t.Fatal("victim did not start")
	}
	requireNoError(t, json.Unmarshal(v.lines.Bytes(), &v.addresses))
	return v
}

// readCounters returns the victim's current counters.
func (v *victim) readCounters(t *testing.T) map[string]int {
	t.Helper()
	if _, err := fmt.Fprintln(v.in, "counts"); err != nil {
		t.Fatalf("victim ended: %v", err)
	}
	if !v.lines.Scan() {
		t.Fatal("victim ended")
	}
	c := map[string]int{}
	requireNoError(t, json.Unmarshal(v.lines.Bytes(), &c))
	return c
}

// counterGrew reports whether a counter has increased. It waits for data in
// transit, and waits longer if the attacker reported that it sent something.
func (v *victim) counterGrew(t *testing.T, before map[string]int, sent bool, name string) bool {
	t.Helper()
	wait := 100 * time.Millisecond
	if sent {
		wait = time.Second
	}
	return poll(wait, func() bool { return v.readCounters(t)[name] > before[name] })
}

// lanAddress returns a non-loopback address of this host.
func lanAddress() string {
	all, _ := net.InterfaceAddrs()
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() && !n.IP.IsLinkLocalUnicast() {
			return n.IP.String()
		}
	}
	return ""
}

// setuidVariable is the environment variable that contains the path of a setuid
// copy of the payload. Root creates the copy for tests that run as another
// user.
const setuidVariable = "LOADOUT_TEST_SETUID"

// findSetuid returns the path of a working setuid program.
func (s *scene) findSetuid(t *testing.T) string {
	p := os.Getenv(setuidVariable)
	if os.Getuid() == 0 {
		p = filepath.Join(s.dir, "setuid")
		requireNoError(t, os.WriteFile(p, payloadBytes(t), 0o755))
		requireNoError(t, os.Chmod(p, 0o4755|os.ModeSetuid))
		return p
	}
	if p == "" {
		return ""
	}
	if out, err := exec.Command(p).Output(); err != nil || strings.TrimSpace(string(out)) != "euid 0" {
		return ""
	}
	return p
}

// feature runs part of an attack outside any sandbox. It returns the reason why
// that part does not work on this system, or "" if it works.
func (s *scene) feature(name string) string {
	cmd := exec.Command(s.bin, "feature", "feature", name)
	cmd.Env = []string{}
	out, err := cmd.Output()
	last := lastLine(out)
	switch {
	case strings.HasPrefix(last, "BREACH"):
		return ""
	case err != nil:
		return fmt.Sprintf("the kernel refuses %s: %v", name, err)
	}
	return fmt.Sprintf("the kernel refuses %s: %s", name, strings.TrimPrefix(last, "BLOCKED "))
}

func lastLine(b []byte) string {
	s := strings.TrimRight(string(b), "\n")
	return s[strings.LastIndexByte(s, '\n')+1:]
}

// contents returns the contents of files, for detecting changes.
func (s *scene) contents(t *testing.T, paths ...string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, p := range paths {
		b, err := os.ReadFile(p)
		requireNoError(t, err)
		all[p] = string(b)
	}
	return all
}

func (s *scene) changed(t *testing.T, before map[string]string) bool {
	t.Helper()
	paths := []string{}
	for p := range before {
		paths = append(paths, p)
	}
	return !maps.Equal(before, s.contents(t, paths...))
}
