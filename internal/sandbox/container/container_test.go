//go:build linux

package container

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
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/loadout-dev/loadout/internal/sandbox/container/containertest"
	"github.com/loadout-dev/loadout/internal/sandbox/execute"
	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/internal/sandbox/stage/stagetest"
	"github.com/loadout-dev/loadout/sandbox"
)

func backend(t *testing.T) (*Backend, *containertest.Engine) {
	e := containertest.New(t)
	return New(&Options{Engine: e.Path, Image: "test:1", Cache: stagetest.OpenDir(t)}), e
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

func TestRun(t *testing.T) {
	b, engine := backend(t)
	spec := &sandbox.Spec{
		Trees: []sandbox.Tree{
			skill(map[string]string{"SKILL.md": "hello", "scripts/run.sh": "#!/bin/sh\ncat /skill/SKILL.md /work/in/a/data /run/secrets/KEY; echo \"$TOKEN\" >&2; echo out > /work/out/x; ln -s /etc/passwd /work/out/link; exit 3"}),
			{Path: mountpoint.In, FS: fstest.MapFS{"a/data": {Data: []byte(" given ")}}, Files: []sandbox.File{{Path: "a/data", Size: 7}}},
		},
		Secrets: []sandbox.Secret{sandbox.NewSecret("KEY", "v3ry s3cret")},
		Env:     map[string]string{"TOKEN": "t0ken"},
	}
	got := map[string]string{}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	res, err := execute.Run(ctx, b, spec, &sandbox.Cmd{Args: []string{"/skill/scripts/run.sh"}}, &execute.Options{
		Collect: func(f sandbox.File, r io.Reader) (bool, error) {
			data, err := io.ReadAll(r)
			got[f.Path] = string(data)
			return true, err
		}})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(res.Stdout), "hello given ") || bytes.Contains(res.Stdout, []byte("v3ry")) || res.ExitCode != 3 || res.Reason != sandbox.Exited || string(res.Stderr) != "t0ken\n" {
		t.Errorf("%s %d: %q %q", res.Reason, res.ExitCode, res.Stdout, res.Stderr)
	}
	if len(got) != 1 || got["out/x"] != "out\n" {
		t.Errorf("collected %q", got)
	}
	if left := engine.Containers(t); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	for _, call := range engine.Calls(t, "") {
		if line := strings.Join(call, " "); strings.Contains(line, "v3ry") || strings.Contains(line, "t0ken") {
			t.Errorf("a secret is an argument: %s", line)
		}
	}
}

func TestTimeoutKeepsFiles(t *testing.T) {
	b, engine := backend(t)
	got := 0
	res, err := execute.Run(t.Context(), b, &sandbox.Spec{}, &sandbox.Cmd{Args: []string{"sh", "-c", "echo x > /work/out/x; setsid sleep 1000 & sleep 1000"}, Timeout: 5 * time.Second},
		&execute.Options{Collect: func(sandbox.File, io.Reader) (bool, error) { got++; return true, nil }})
	if err != nil {
		t.Fatal(err)
	}
	if res.Reason != sandbox.Timeout || !res.Killed || got != 1 {
		t.Errorf("%+v, %d files", res, got)
	}
	if len(engine.Calls(t, "kill")) > 0 {
		t.Error("the container was killed, and what is in its memory with it")
	}
}

// One of several commands is ended alone.
func TestKillOne(t *testing.T) {
	b, _ := backend(t)
	s, err := b.Start(t.Context(), &sandbox.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var ps []sandbox.Process
	for range 2 {
		p, err := s.Exec(t.Context(), &sandbox.Cmd{Args: []string{"sh", "-c", "echo ready; cat"}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(p.Stdout(), make([]byte, 6)); err != nil {
			t.Fatal(err)
		}
		ps = append(ps, p)
	}
	ps[0].Kill()
	if e := ps[0].Wait(); e.Signal != "SIGKILL" {
		t.Errorf("%+v", e)
	}
	ps[1].Stdin().Close()
	if e := ps[1].Wait(); e.Reason != sandbox.OK {
		t.Errorf("the other: %+v", e)
	}
	if _, err := s.Exec(t.Context(), &sandbox.Cmd{Args: []string{"no-such-program"}}); err == nil {
		t.Error("it started what is missing")
	} else if _, ok := errors.AsType[*sandbox.StartError](err); !ok {
		t.Errorf("%v", err)
	}
}

func TestCreation(t *testing.T) {
	b := New(&Options{Image: "test:1", Runtime: "runsc"})
	args := b.createArguments(&engine{kind: "docker"}, "loadout-x", &sandbox.Spec{Limits: sandbox.Limits{Memory: 100 << 20, Processes: 10, Cores: 1.5}}, []bind{{host: `/a,b"c`, path: "/skill"}, {"/home/me", "/workspace", true}})
	line := strings.Join(args, " ")
	for _, want := range []string{
		"create --name loadout-x", "--network none", "--read-only", "--cap-drop ALL", "--security-opt no-new-privileges", "--pids-limit 18", "--memory 222298112 --memory-swap 222298112", "--cpus 1.5",
		"--user 65532:65532", "--init", "--pull never", "--tmpfs /work:rw,exec,nosuid,nodev,mode=1777,size=67108864,nr_inodes=16384", "--ulimit nofile=256:256", "--runtime runsc",
		`--mount type=bind,"source=/a,b""c",target=/skill,readonly`, "--mount type=bind,source=/home/me,target=/workspace --entrypoint", "--entrypoint sleep test:1 2147483647",
	} {
		if !strings.Contains(line, want) {
			t.Errorf("no %s in\n%s", want, line)
		}
	}
	if strings.Contains(line, "privileged") || b.Tier() != sandbox.Virtual {
		t.Errorf("tier %v, %s", b.Tier(), line)
	}
}

func TestRefuses(t *testing.T) {
	b, _ := backend(t)
	_, err := b.Start(t.Context(), &sandbox.Spec{Network: sandbox.Network{Allow: []string{"example.com"}}})
	if e, ok := errors.AsType[*sandbox.UnsupportedError](err); !ok || e.Fix == "" {
		t.Errorf("network by proxy: %v", err)
	}
	for _, pull := range []bool{false, true} {
		b.opts.Image, b.opts.Pull = "missing:1", pull
		_, err = b.Start(t.Context(), &sandbox.Spec{})
		if e, ok := errors.AsType[*sandbox.UnavailableError](err); !ok || e.Missing != "the image missing:1" || !strings.Contains(e.Fix, "docker pull missing:1") {
			t.Errorf("no image: %v", err)
		}
	}
	_, err = New(&Options{Engine: "no-such-engine"}).Start(t.Context(), &sandbox.Spec{})
	if e, ok := errors.AsType[*sandbox.UnavailableError](err); !ok || e.Missing != "the program no-such-engine" {
		t.Errorf("no client: %v", err)
	}
}

// The real client without an engine behind it says so.
func TestNoEngine(t *testing.T) {
	if _, err := exec.LookPath("docker"); err != nil {
		t.Skip("docker is not installed")
	}
	t.Setenv("DOCKER_HOST", "unix://"+filepath.Join(t.TempDir(), "none.sock"))
	_, err := New(&Options{Engine: "docker"}).Probe(t.Context())
	e, ok := errors.AsType[*sandbox.UnavailableError](err)
	if !ok || e.Missing != "a responding engine for docker" || !strings.Contains(e.Fix, "systemctl start docker") || !strings.Contains(e.Error(), "none.sock") {
		t.Errorf("%v", err)
	}
}

// A changed file is never run, though the container was not made yet.
func TestChanged(t *testing.T) {
	b, engine := backend(t)
	tree := skill(map[string]string{"SKILL.md": "hello"})
	tree.FS.(fstest.MapFS)["SKILL.md"].Data = []byte("jello")
	for _, trees := range [][]sandbox.Tree{{tree}, {{Path: mountpoint.In, FS: tree.FS, Files: tree.Files}}} {
		_, err := b.Start(t.Context(), &sandbox.Spec{Trees: trees})
		if _, ok := errors.AsType[*sandbox.ChangedError](err); !ok {
			t.Errorf("%s: %v", trees[0].Path, err)
		}
	}
	if left := engine.Containers(t); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestSweep(t *testing.T) {
	b, engine := backend(t)
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	ours := "loadout-" + hostID() + "-" + strconv.Itoa(os.Getpid()) + "-a"
	left := "loadout-" + hostID() + "-" + strconv.Itoa(dead.Process.Pid) + "-a"
	other := "loadout-00000000-" + strconv.Itoa(dead.Process.Pid) + "-a"
	for _, name := range []string{ours, left, other} {
		if err := os.WriteFile(filepath.Join(engine.Dir, name+".json"), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := b.Start(t.Context(), &sandbox.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if have := engine.Containers(t); slices.Contains(have, left) || !slices.Contains(have, ours) || !slices.Contains(have, other) {
		t.Errorf("there are %q", have)
	}
}
