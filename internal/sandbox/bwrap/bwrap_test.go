//go:build linux

package bwrap

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/loadout-dev/loadout/internal/sandbox/execute"
	"github.com/loadout-dev/loadout/internal/sandbox/layout"
	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/internal/sandbox/prepare"
	"github.com/loadout-dev/loadout/internal/sandbox/stage/stagetest"
	"github.com/loadout-dev/loadout/sandbox"
)

var stageFile string

func TestMain(m *testing.M) { stagetest.Main(m, &stageFile) }

// backend is one with a cache that the user of a root's sandboxes can reach.
func backend(t *testing.T) *Backend {
	t.Helper()
	if _, err := exec.LookPath("bwrap"); err != nil {
		t.Skip("bwrap is not installed")
	}
	return New(&Options{Stage: stageFile, Cache: stagetest.OpenDir(t)})
}

func skill(files map[string]string) sandbox.Tree {
	m := fstest.MapFS{}
	t := sandbox.Tree{Path: mountpoint.Skill, FS: m}
	for p, data := range files {
		m[p] = &fstest.MapFile{Data: []byte(data), Mode: 0o644}
		sum := sha256.Sum256([]byte(data))
		t.Files = append(t.Files, sandbox.File{Path: p, Size: int64(len(data)), SHA256: hex.EncodeToString(sum[:]), Exec: strings.HasSuffix(p, ".sh")})
	}
	slices.SortFunc(t.Files, func(a, b sandbox.File) int { return strings.Compare(a.Path, b.Path) })
	return t
}

func run(t *testing.T, b *Backend, spec *sandbox.Spec, args ...string) *execute.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	res, err := execute.Run(ctx, b, spec, &sandbox.Cmd{Args: args}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestRun(t *testing.T) {
	b := backend(t)
	spec := &sandbox.Spec{
		Trees: []sandbox.Tree{
			skill(map[string]string{"SKILL.md": "hello", "scripts/run.sh": "#!/bin/sh\ncat $LOADOUT_SKILL/SKILL.md /work/in/data $LOADOUT_SECRETS/KEY; echo out > /work/out/x"}),
			{Path: mountpoint.In, FS: fstest.MapFS{"data": {Data: []byte(" given ")}}, Files: []sandbox.File{{Path: "data", Size: 7}}},
		},
		Secrets: []sandbox.Secret{sandbox.NewSecret("KEY", "v3ry s3cret")},
	}
	var got []string
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	res, err := execute.Run(ctx, b, spec, &sandbox.Cmd{Args: []string{"/skill/scripts/run.sh"}}, &execute.Options{
		Collect: func(f sandbox.File, r io.Reader) (bool, error) {
			got = append(got, f.Path)
			return true, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(res.Stdout), "hello given ") || bytes.Contains(res.Stdout, []byte("v3ry")) || res.Reason != sandbox.OK {
		t.Errorf("%s %d: %q %q", res.Reason, res.ExitCode, res.Stdout, res.Stderr)
	}
	if !slices.Equal(got, []string{"out/x"}) {
		t.Errorf("collected %q", got)
	}
}

// Code never runs as the kernel's user 0 and has none of its privileges.
func TestRunsAreNeverRoot(t *testing.T) {
	res := run(t, backend(t), &sandbox.Spec{}, "/bin/sh", "-c", "cat /proc/self/uid_map; grep -E 'Cap|NoNewPrivs|Seccomp:' /proc/self/status; [ -w /proc/sys/kernel/core_pattern ] && echo writable; cat /proc/1/environ | tr '\\0' ' '; ls /proc/self/fd")
	out := string(res.Stdout)
	fields := strings.Fields(out)
	if len(fields) < 3 || fields[0] != "1000" || fields[1] == "0" {
		t.Errorf("users: %s", out)
	}
	for _, want := range []string{"CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in %s%s", want, out, res.Stderr)
		}
	}
	if strings.Contains(out, "writable") {
		t.Error("core_pattern is writable")
	}
}

func TestRefusesRootOutOfReach(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("for root")
	}
	dir := stagetest.OpenDir(t)
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	b := backend(t)
	b.opts.Cache = dir
	_, err := b.Start(t.Context(), &sandbox.Spec{})
	e, ok := errors.AsType[*sandbox.UnavailableError](err)
	if !ok || !strings.Contains(e.Missing, "65534") || e.Fix == "" || !strings.Contains(err.Error(), "not accessible to other users") {
		t.Errorf("%v", err)
	}
}

func TestReadOnly(t *testing.T) {
	b := backend(t)
	spec := &sandbox.Spec{Trees: []sandbox.Tree{skill(map[string]string{"SKILL.md": "hello"})}, Secrets: []sandbox.Secret{sandbox.NewSecret("KEY", "value")}}
	res := run(t, b, spec, "/bin/sh", "-c", "for f in /x /etc/x /dev/x /skill/x /run/secrets/x /run/loadout/x /usr/x /proc/x; do (: > $f) 2>/dev/null && echo $f; done; chmod u+w /skill/SKILL.md && echo chmod; for d in /work /tmp /dev/shm /work/out; do : > $d/x || echo $d; done")
	if len(res.Stdout) > 0 {
		t.Errorf("wrong: %s", res.Stdout)
	}
}

func TestMissing(t *testing.T) {
	for _, name := range []string{"no-such-bwrap", "/nonexistent/bwrap"} {
		_, err := New(&Options{Program: name}).Start(t.Context(), &sandbox.Spec{})
		if e, ok := errors.AsType[*sandbox.UnavailableError](err); !ok || e.Missing != "the program bwrap" || e.Fix != "install bubblewrap: apt-get install bubblewrap" {
			t.Errorf("%s: %v", name, err)
		}
	}
	old := filepath.Join(stagetest.OpenDir(t), "bwrap")
	if err := os.WriteFile(old, []byte("#!/bin/sh\necho bubblewrap 0.4.1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := New(&Options{Program: old}).Start(t.Context(), &sandbox.Spec{})
	if e, ok := errors.AsType[*sandbox.UnavailableError](err); !ok || !strings.Contains(e.Missing, "0.4.1") {
		t.Errorf("an old one: %v", err)
	}
}

// The error contains the message of bubblewrap.
func TestBwrapFailure(t *testing.T) {
	_, err := backend(t).Start(t.Context(), &sandbox.Spec{Mounts: []sandbox.Mount{{Host: "/nonexistent/dir", Path: mountpoint.Workspace}}})
	if e, ok := errors.AsType[*sandbox.UnavailableError](err); !ok || !strings.Contains(e.Error(), "/nonexistent/dir") {
		t.Errorf("%v", err)
	}
}

func TestArguments(t *testing.T) {
	spec := &sandbox.Spec{Secrets: []sandbox.Secret{sandbox.NewSecret("KEY", "value")}}
	setup := layout.View(spec, prepare.DefaultLimits())
	args, texts := arguments(&program{"bwrap", 0, 8}, &setup, spec, "/stage")
	line := strings.Join(args, " ")
	for _, want := range []string{
		"--unshare-user --unshare-all --disable-userns --uid 1000 --gid 1000", "--cap-drop ALL", "--new-session", "--as-pid-1", "--clearenv",
		"--perms 0755 --size 67108864 --tmpfs /work", "--perms 1777 --size 33554432 --tmpfs /tmp", "--proc /proc", "--dev-bind /dev/null /dev/null",
		"--ro-bind /stage /run/loadout/loadout-stage", "--remount-ro /run/secrets", "--remount-ro /", "--perms 0400 --file",
	} {
		if !strings.Contains(line, want) {
			t.Errorf("no %q in %s", want, line)
		}
	}
	for _, never := range []string{"--die-with-parent", "--share-net", "--dev /dev", "value", "--bind ", " --ro-bind / "} {
		if strings.Contains(line, never) {
			t.Errorf("%q in %s", never, line)
		}
	}
	if !slices.Contains(texts, "value") || !slices.Equal(args[len(args)-6:], []string{"--info-fd", strconv.Itoa(firstFile + len(texts)), "--chdir", "/", "--", stagePath}) {
		t.Errorf("%d texts; at the end %q", len(texts), args[len(args)-6:])
	}
	if args, _ = arguments(&program{"bwrap", 0, 7}, &setup, spec, "/stage"); slices.Contains(args, "--disable-userns") {
		t.Error("0.7 does not know --disable-userns")
	}
	spec.Network.Host = true
	if args, _ = arguments(&program{"bwrap", 0, 8}, &setup, spec, "/stage"); !slices.Contains(args, "--share-net") {
		t.Error("the host's network is missing")
	}
}

func TestProxy(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "from outside") }))
	defer server.Close()
	host, port, _ := net.SplitHostPort(strings.TrimPrefix(server.URL, "http://"))
	spec := &sandbox.Spec{Network: sandbox.Network{Allow: []string{host + ":" + port}, Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}}
	const get = `import urllib.request,os
os.environ.pop("no_proxy",None);os.environ.pop("NO_PROXY",None)
print(urllib.request.urlopen("%s").read().decode())`
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		t.Skip("no Python")
	}
	res := run(t, backend(t), spec, "/usr/bin/python3", "-c", strings.Replace(get, "%s", server.URL, 1))
	if got := string(res.Stdout); got != "from outside\n" {
		t.Errorf("%q %s", got, res.Stderr)
	}
}

func TestKillEndsAllProcesses(t *testing.T) {
	s, err := backend(t).Start(t.Context(), &sandbox.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Exec(t.Context(), &sandbox.Cmd{Args: []string{"/bin/sh", "-c", "sleep 1000 & echo ready; wait"}})
	if err != nil {
		t.Fatal(err)
	}
	ready := make([]byte, 6)
	if _, err := io.ReadFull(p.Stdout(), ready); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if e := p.Wait(); e.Signal != "SIGKILL" {
		t.Errorf("%+v", e)
	}
	if _, err := io.ReadAll(p.Stdout()); err != nil { // ends when the last holder closes it
		t.Error(err)
	}
}
