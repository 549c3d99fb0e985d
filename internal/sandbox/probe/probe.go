//go:build linux

// Package probe tests whether a backend isolates code. It starts a sandbox and
// tries forbidden actions from inside. All Linux backends use it.
package probe

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/loadout-dev/loadout/internal/sandbox/execute"
	"github.com/loadout-dev/loadout/internal/sandbox/stage"
	"github.com/loadout-dev/loadout/sandbox"
)

// timeout is the timeout of a probe.
const timeout = 10 * time.Second

// Run probes the backend with the executable exe, which must link package
// stage; "" means the current executable. required lists the kinds of leak that
// the tier of the backend must prevent: file, process, network, namespaces,
// mount, privileges, syscalls, survivors. Run returns an error if it finds any
// of them.
func Run(ctx context.Context, b sandbox.Backend, exe string, required []string) (*sandbox.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if exe == "" {
		var err error
		if exe, err = os.Executable(); err != nil {
			return nil, fmt.Errorf("probe sandbox %s: %w", b.Name(), err)
		}
	}
	c, err := newCanary()
	if err != nil {
		return nil, fmt.Errorf("probe sandbox %s: %w", b.Name(), err)
	}
	defer c.Close()
	spec := &sandbox.Spec{Mounts: []sandbox.Mount{{Host: exe, Path: exe}}}
	s, err := b.Start(ctx, spec)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	input, err := json.Marshal(c.input)
	if err != nil {
		return nil, err
	}
	res, err := execute.RunIn(ctx, s, spec, &sandbox.Cmd{Args: []string{exe, stage.ProbeName, string(input)}, Timeout: timeout}, nil)
	if err != nil {
		return nil, fmt.Errorf("probe sandbox %s: %w", b.Name(), err)
	}
	var p stage.ProbeResult
	if err := json.Unmarshal(res.Stdout, &p); err != nil {
		return nil, &sandbox.UnavailableError{Backend: b.Name(), Missing: "cannot run the probe",
			Err: fmt.Errorf("read result of the probe: %s, exit code %d: %s", res.Reason, res.ExitCode, firstLine(res.Stderr))}
	}
	s.Close()
	leaked := map[string]bool{"file": p.File, "process": p.Process, "network": p.Network || c.wasReached(), "namespaces": p.Namespaces, "mount": p.Mount,
		"privileges": p.Privileges, "syscalls": !p.Seccomp, "survivors": !p.LeftBehind || c.processSurvived()}
	return report(b, s.State(), leaked, required)
}

// leakTexts maps each kind of leak to its description.
var leakTexts = map[string]string{
	"file": "a host file is readable", "process": "host processes are visible", "network": "the host's network can be reached",
	"namespaces": "new user namespaces can be created", "mount": "file systems can be mounted", "privileges": "privileges are left",
	"syscalls": "no seccomp filter is active", "survivors": "a process outlived its sandbox",
}

func report(b sandbox.Backend, state sandbox.State, leaked map[string]bool, must []string) (*sandbox.Report, error) {
	r := &sandbox.Report{Backend: b.Name(), Tier: cmp.Or(state.Tier, b.Tier())}
	enforced := state.Enforced
	var names []string
	for name := range enforced {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		l := sandbox.Layer{Name: name, Enforced: enforced[name] != "", By: enforced[name]}
		if !l.Enforced {
			l.By, l.Fix = missingReason(name)
		}
		r.Layers = append(r.Layers, l)
	}
	var faults []string
	for _, name := range must {
		if leaked[name] {
			faults = append(faults, leakTexts[name])
		}
	}
	if len(faults) > 0 {
		return nil, &sandbox.UnavailableError{Backend: b.Name(), Missing: "isolation on this machine", Err: errors.New(strings.Join(faults, "; "))}
	}
	return r, nil
}

// missingReason returns the usual reason why a limit is not enforced, and how to
// enforce it.
func missingReason(name string) (by, fix string) {
	switch name {
	case "cores":
		return "no CPU control group can be created", "start it with a delegated group: systemd-run --user --scope -p Delegate=yes loadout …"
	case "memory":
		return "no memory control group can be created, and code can use memory that the watch does not count", "start it with a delegated group: systemd-run --user --scope -p Delegate=yes loadout …"
	case "inodes":
		return "this backend cannot limit the number of files", "use the backend native"
	}
	return "nothing", ""
}

// canary holds what a probe tries to access from inside the sandbox.
type canary struct {
	input stage.ProbeInput
	dir   string
	l     net.Listener
	conns chan struct{}
}

// canaryPrefix begins the names of the directories of canaries.
const canaryPrefix = ".loadout-probe-"

// newCanaryDir creates a directory for a canary. It is in the user's home
// directory, like the files to protect. If that is not writable, it is in another
// directory outside the sandbox.
func newCanaryDir() (string, error) {
	var errs []error
	for _, parent := range []string{cmp.Or(os.Getenv("HOME"), os.TempDir()), "/var/tmp", os.TempDir()} {
		dir, err := os.MkdirTemp(parent, canaryPrefix)
		if err == nil {
			removeOldCanaries(parent)
			return dir, nil
		}
		errs = append(errs, err)
	}
	return "", errors.Join(errs...)
}

// canaryAge is the age from which a canary belongs to a probe that was killed. It
// is much longer than the timeout of a probe.
const canaryAge = time.Hour

// removeOldCanaries removes this user's canaries of killed probes from a directory.
// Errors are ignored: a canary contains no data.
func removeOldCanaries(parent string) {
	root, err := os.OpenRoot(parent)
	if err != nil {
		return
	}
	defer root.Close()
	dir, err := root.Open(".")
	if err != nil {
		return
	}
	defer dir.Close()
	entries, _ := dir.ReadDir(maxSweptEntries)
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), canaryPrefix) {
			continue
		}
		info, err := e.Info()
		if err != nil || time.Since(info.ModTime()) <= canaryAge {
			continue
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) == os.Geteuid() { // so that no other user can replace it
			root.Remove(e.Name() + "/canary")
			root.Remove(e.Name())
		}
	}
}

// maxSweptEntries is the maximum number of directory entries in which old canaries
// are searched.
const maxSweptEntries = 10_000

func newCanary() (*canary, error) {
	dir, err := newCanaryDir()
	if err != nil {
		return nil, err
	}
	c := &canary{dir: dir, conns: make(chan struct{})}
	c.input = stage.ProbeInput{Canary: filepath.Join(dir, "canary"), PID: os.Getpid(), Started: stage.StartTime(), Marker: "loadout-canary-" + rand.Text()}
	if err := os.WriteFile(c.input.Canary, []byte("canary"), 0o644); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	if c.l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	c.input.Port = c.l.Addr().(*net.TCPAddr).Port
	go func() {
		if conn, err := c.l.Accept(); err == nil {
			conn.Close()
			c.l.Close()
			close(c.conns)
		}
	}()
	return c, nil
}

// wasReached reports whether the canary received a connection.
func (c *canary) wasReached() bool {
	select {
	case <-c.conns:
		return true
	default:
		return false
	}
}

// processSurvived reports whether the process that the probe left behind is still
// running.
func (c *canary) processSurvived() bool {
	proc, err := os.Open("/proc")
	if err != nil {
		return false
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1)
	for _, name := range names {
		if name[0] < '0' || name[0] > '9' {
			continue
		}
		// In other processes the marker is only a part of an argument.
		if b, err := os.ReadFile("/proc/" + name + "/cmdline"); err == nil && strings.HasSuffix(string(b), "\x00"+c.input.Marker+"\x00") {
			return true
		}
	}
	return false
}

func (c *canary) Close() {
	c.l.Close()
	os.RemoveAll(c.dir)
}

func firstLine(b []byte) string {
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return "no output"
}
