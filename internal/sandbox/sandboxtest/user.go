//go:build linux

package sandboxtest

import (
	"bytes"
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// rerunVariable is the environment variable that marks a process in which a
// test runs again.
const rerunVariable = "LOADOUT_TEST_AGAIN"

// userNumber returns an unprivileged UID for tests run by root. The UID is
// unused on normal systems and differs between packages, because some limits
// apply per user and packages are tested concurrently.
func userNumber() int {
	h := fnv.New32a()
	h.Write([]byte(filepath.Base(os.Args[0])))
	return 60600 + int(h.Sum32()%500)
}

// AsUser runs the calling test again as an unprivileged user if it runs as
// root. It reports whether it did so; the caller must then return. The results
// of subtests become subtests of t. The test gets its own terminal; see
// [InTerminal].
func AsUser(t *testing.T) bool {
	t.Helper()
	if os.Getuid() != 0 {
		return false
	}
	uid := userNumber()
	runAgain(t, uid, uid)
	return true
}

// InTerminal runs the calling test again in a terminal if it has none, and
// reports whether it did so. Without a terminal, attacks on the terminal are
// skipped.
func InTerminal(t *testing.T) bool {
	t.Helper()
	if os.Getenv(rerunVariable) != "" || needTTY(nil) == "" {
		return false
	}
	runAgain(t, os.Getuid(), os.Getgid())
	return true
}

func runAgain(t *testing.T, uid, gid int) {
	t.Helper()
	dir := t.TempDir()
	for d := filepath.Dir(dir); strings.HasPrefix(d, os.TempDir()+"/"); d = filepath.Dir(d) {
		requireNoError(t, os.Chmod(d, 0o711)) // package testing creates them for its own user only
	}
	requireNoError(t, os.Mkdir(dir+"/tmp", 0o700))
	requireNoError(t, copyFile("/proc/self/exe", dir+"/test", 0o755))
	requireNoError(t, os.WriteFile(dir+"/payload", payloadBytes(t), 0o755))
	env := append(os.Environ(), rerunVariable+"=1", payloadVariable+"="+dir+"/payload", "TMPDIR="+dir+"/tmp", "HOME="+dir+"/tmp")
	for _, p := range []string{dir, dir + "/tmp", dir + "/test", dir + "/payload"} {
		requireNoError(t, os.Chown(p, uid, gid))
	}
	if os.Getuid() == 0 && uid != 0 { // the test needs a directory owned by that user
		requireNoError(t, os.Chmod(dir, 0o700))
		requireNoError(t, os.WriteFile(dir+"/setuid", payloadBytes(t), 0o755))
		requireNoError(t, os.Chmod(dir+"/setuid", 0o755|os.ModeSetuid))
		env = append(env, setuidVariable+"="+dir+"/setuid")
	}
	ctx, cancel := context.WithCancel(context.Background())
	if d, ok := t.Deadline(); ok {
		ctx, cancel = context.WithDeadline(context.Background(), d.Add(-2*time.Second))
	}
	defer cancel()
	cmd := exec.CommandContext(ctx, dir+"/test", "-test.run=^"+regexp.QuoteMeta(t.Name())+"$", "-test.v", "-test.count=1")
	if deeper := subtests(); deeper != "" {
		cmd.Args[1] += "/" + deeper
	}
	cmd.Env, cmd.WaitDelay = env, time.Second
	slave := newTerminal(t)
	cmd.ExtraFiles = []*os.File{slave}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 3}
	if uid != os.Getuid() {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	slave.Close()
	forward(t, out.String(), err)
}

// subtests returns the part of the -run flag that selects subtests.
func subtests() string {
	for _, a := range os.Args {
		if run, ok := strings.CutPrefix(a, "-test.run="); ok {
			_, deeper, _ := strings.Cut(run, "/")
			return deeper
		}
	}
	return ""
}

var resultLine = regexp.MustCompile(`^\s*--- (PASS|FAIL|SKIP): (\S+) \(`)

// forward reports the results in a test's output as subtests of t.
func forward(t *testing.T, out string, err error) {
	t.Helper()
	results := map[string]string{}
	var order []string
	for line := range strings.Lines(out) {
		if m := resultLine.FindStringSubmatch(line); m != nil && strings.HasPrefix(m[2], t.Name()+"/") {
			name := strings.TrimPrefix(m[2], t.Name()+"/")
			order = append(order, name)
			results[name] = m[1]
		}
	}
	for _, name := range order {
		t.Run(name, func(t *testing.T) {
			switch results[name] {
			case "FAIL":
				t.Error("failed as the other user, see the output of the whole test")
			case "SKIP":
				t.Skip("skipped as the other user, see the output of the whole test")
			}
		})
	}
	t.Log("\n" + out)
	switch {
	case err != nil:
		t.Errorf("as the other user: %v", err)
	case !strings.Contains(out, "--- PASS: "+t.Name()+" ") && strings.Contains(out, "--- SKIP: "+t.Name()+" "):
		t.Skip("skipped as the other user")
	case !strings.Contains(out, "--- PASS: "+t.Name()+" "):
		t.Error("test did not run as the other user")
	}
}

func copyFile(from, to string, mode os.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if e := out.Close(); err == nil {
		err = e
	}
	return err
}

// newTerminal creates a terminal whose output is discarded.
func newTerminal(t *testing.T) *os.File {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	requireNoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetUint32(fd, unix.TIOCGPTN)
	requireNoError(t, err)
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	requireNoError(t, err)
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		for buf := make([]byte, 4096); ; {
			if n, err := unix.Read(fd, buf); n <= 0 && err != unix.EINTR {
				return
			}
		}
	}()
	t.Cleanup(func() {
		<-drained
		unix.Close(fd)
	})
	return slave
}
