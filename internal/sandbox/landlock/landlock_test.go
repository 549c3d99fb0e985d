//go:build linux

package landlock

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/loadout-dev/loadout/internal/sandbox/execute"
	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/internal/sandbox/stage"
	"github.com/loadout-dev/loadout/internal/sandbox/stage/stagetest"
	"github.com/loadout-dev/loadout/sandbox"
)

var stageFile string

func TestMain(m *testing.M) { stagetest.Main(m, &stageFile) }

func backend(t *testing.T) *Backend {
	t.Helper()
	if stage.LandlockABI() < 6 {
		t.Skipf("kernel has Landlock ABI %d", stage.LandlockABI())
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

// boxes are the directories of sandboxes.
func boxes(t *testing.T, b *Backend) []string {
	t.Helper()
	all, err := filepath.Glob(b.opts.Cache + "/run/*")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestRun(t *testing.T) {
	b := backend(t)
	spec := &sandbox.Spec{
		Trees: []sandbox.Tree{
			skill(map[string]string{"SKILL.md": "hello", "scripts/run.sh": "#!/bin/sh\ncat $LOADOUT_SKILL/SKILL.md $LOADOUT_IN/a/data $1 $LOADOUT_SECRETS/KEY; echo out > $LOADOUT_OUT/x"}),
			{Path: mountpoint.In, FS: fstest.MapFS{"a/data": {Data: []byte(" given ")}}, Files: []sandbox.File{{Path: "a/data", Size: 7}}},
		},
		Secrets: []sandbox.Secret{sandbox.NewSecret("KEY", "v3ry s3cret")},
	}
	var got []string
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	res, err := execute.Run(ctx, b, spec, &sandbox.Cmd{Args: []string{"/skill/scripts/run.sh", "/work/in/a/data"}}, &execute.Options{
		Collect: func(f sandbox.File, r io.Reader) (bool, error) {
			got = append(got, f.Path)
			return true, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(res.Stdout), "hello given  given ") || bytes.Contains(res.Stdout, []byte("v3ry")) || res.Reason != sandbox.OK {
		t.Errorf("%s %d: %q %q", res.Reason, res.ExitCode, res.Stdout, res.Stderr)
	}
	if !slices.Equal(got, []string{"out/x"}) {
		t.Errorf("collected %q", got)
	}
	if left := boxes(t, b); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestConfined(t *testing.T) {
	home := stagetest.OpenDir(t)
	if err := os.WriteFile(home+"/secret", []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	res := run(t, backend(t), &sandbox.Spec{Trees: []sandbox.Tree{skill(map[string]string{"SKILL.md": "hello"})}},
		"/bin/sh", "-c", "id -u; for f in "+home+"/secret /etc/passwd /proc/self/status /proc/1/environ; do cat $f; done 2>/dev/null; for f in $LOADOUT_SKILL/x $LOADOUT_WORK/../x /tmp/x /dev/shm/x "+home+"/y; do (: > $f) 2>/dev/null && echo $f; done; chmod u+w $LOADOUT_SKILL/SKILL.md 2>/dev/null && cat $LOADOUT_SKILL/SKILL.md; : > $LOADOUT_WORK/x || echo work; : > $TMPDIR/x || echo tmp")
	lines := strings.Fields(string(res.Stdout))
	if os.Geteuid() != 0 && len(lines) == 2 && lines[1] == "hello" { // chmod of its own file, which still cannot be opened for writing
		lines = lines[:1]
	}
	if len(lines) != 1 || lines[0] == "0" {
		t.Errorf("got %q %s", res.Stdout, res.Stderr)
	}
}

// Code can end its stage, as both are of one user in one domain. It gains
// nothing: the guard is out of its reach and ends it.
func TestStageEnds(t *testing.T) {
	for _, signal := range []string{"KILL", "STOP"} {
		t.Run(signal, func(t *testing.T) {
			b := backend(t)
			s, err := b.Start(t.Context(), &sandbox.Spec{})
			if err != nil {
				t.Fatal(err)
			}
			p, err := s.Exec(t.Context(), &sandbox.Cmd{Args: []string{"/bin/sh", "-c", "read start; setsid sh -c 'sleep 1000 & echo $!; echo ready; kill -" + signal + " '$PPID'; wait' & wait"}, Timeout: -1})
			if err != nil {
				t.Fatal(err)
			}
			p.Stdin().Close() // it waited for this, so that its stage could report its start
			buf := make([]byte, 64)
			n, _ := p.Stdout().Read(buf)
			if n == 0 {
				t.Fatal("it did not start")
			}
			if signal == "KILL" {
				p.Wait() // lost with its stage
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			p.Wait()
			if _, err := io.Copy(io.Discard, p.Stdout()); err != nil { // ends when the last holder closes it
				t.Error(err)
			}
			if left := boxes(t, b); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

func TestDiskLimit(t *testing.T) {
	b := backend(t)
	spec := &sandbox.Spec{Limits: sandbox.Limits{Work: 8 << 20, Inodes: 200}}
	res := run(t, b, spec, "/bin/sh", "-c", "head -c 16777216 /dev/zero > big; while :; do :; done")
	if res.Reason != sandbox.FileSize || !strings.Contains(res.Detail, "limit 8 MiB") {
		t.Errorf("size: %s %s", res.Reason, res.Detail)
	}
	res = run(t, b, spec, "/bin/sh", "-c", "i=0; while [ $i -lt 300 ]; do : > f$i; i=$((i+1)); done; while :; do :; done")
	if res.Reason != sandbox.FileSize || !strings.Contains(res.Detail, "limit 200") {
		t.Errorf("files: %s %s", res.Reason, res.Detail)
	}
}

func TestRefuses(t *testing.T) {
	b := backend(t)
	for _, n := range []sandbox.Network{{Allow: []string{"example.com"}}, {Host: true}} {
		_, err := b.Start(t.Context(), &sandbox.Spec{Network: n})
		if e, ok := errors.AsType[*sandbox.UnsupportedError](err); !ok || e.Fix == "" {
			t.Errorf("network %+v: %v", n, err)
		}
	}
	_, err := b.Start(t.Context(), &sandbox.Spec{Mounts: []sandbox.Mount{{Host: "/usr/lib", Path: "/opt/lib"}}})
	if _, ok := errors.AsType[*sandbox.UnsupportedError](err); !ok {
		t.Errorf("mount elsewhere: %v", err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chmod(b.opts.Cache, 0o700); err != nil {
			t.Fatal(err)
		}
		_, err = b.Start(t.Context(), &sandbox.Spec{})
		if e, ok := errors.AsType[*sandbox.UnavailableError](err); !ok || !strings.Contains(e.Missing, "65534") {
			t.Errorf("out of reach: %v", err)
		}
	}
	if left := boxes(t, b); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// known are the attacks that are known not to be contained for sure: the number of
// files is looked at only now and then (E08), and without control groups nothing
// limits the share of the processors (E14).
var known = []string{"E08", "E14"}
