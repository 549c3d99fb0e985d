package packages_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/loadout-dev/loadout/internal/packages"
	"github.com/loadout-dev/loadout/internal/sandbox/execute"
	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/internal/sandbox/native"
	"github.com/loadout-dev/loadout/internal/sandbox/stage/stagetest"
	"github.com/loadout-dev/loadout/internal/script"
	"github.com/loadout-dev/loadout/sandbox"
)

var stage string

// helper is the variable that makes the test binary install packages for a test.
const helper = "LOADOUT_TEST_INSTALL"

func TestMain(m *testing.M) {
	if dir := os.Getenv(helper); dir != "" {
		stage = os.Getenv(stagetest.Variable)
		os.Exit(help(dir, os.Getenv(helper+"_INDEX")))
	}
	stagetest.Main(m, &stage)
}

// help installs greeting and prints the digest.
func help(dir, index string) int {
	host := testHost()
	plan, err := script.Resolve(greeter, "run.py", script.HostOf(os.Getenv))
	if err == nil {
		var b *packages.Builder
		if b, err = packages.New(packages.Options{Backend: native.New(&native.Options{Stage: stage}), Dir: dir, Host: host, PythonIndex: index, Private: loopback}); err == nil {
			var p *packages.Packages
			if p, err = b.Ensure(context.Background(), plan.Needs, greeter, plan, nil); err == nil {
				fmt.Println(p.Digest)
				return 0
			}
		}
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// greeter is a skill whose script needs a package.
var greeter = fstest.MapFS{"run.py": {Data: []byte(`# /// script
# dependencies = ["greeting>=1"]
# ///
import greeting
print(greeting.text())
`)}}

// testHost returns this machine without uv, so that pip is used. Scripts can
// use all interpreters of the machine.
func testHost() script.Host {
	h := script.HostOf(os.Getenv)
	h.Home = ""
	h.Path = strings.Join(without(filepath.SplitList(h.Path), "uv"), string(filepath.ListSeparator))
	return h
}

func without(dirs []string, program string) []string {
	var out []string
	for _, d := range dirs {
		if _, err := os.Stat(filepath.Join(d, program)); err != nil {
			out = append(out, d)
		}
	}
	return out
}

// backend returns the native backend, or ends the test.
func backend(t *testing.T) sandbox.Backend {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("packages are installed in the native sandbox here, which needs Linux")
	}
	b := native.New(&native.Options{Stage: stage})
	s, err := b.Start(t.Context(), &sandbox.Spec{})
	if err != nil {
		t.Skipf("no sandbox to install in: %v", err)
	}
	s.Close()
	return b
}

// scene is a builder with its own cache.
type scene struct {
	*packages.Builder
	backend sandbox.Backend
	opts    packages.Options
}

func newScene(t *testing.T, change func(*packages.Options)) *scene {
	t.Helper()
	s := &scene{backend: backend(t)}
	s.opts = packages.Options{Backend: s.backend, Dir: filepath.Join(t.TempDir(), "packages"), Host: testHost(), Private: loopback}
	change(&s.opts)
	s.Builder = mustNew(t, s.opts)
	t.Cleanup(func() { writable(s.opts.Dir) })
	return s
}

func mustNew(t *testing.T, o packages.Options) *packages.Builder {
	t.Helper()
	b, err := packages.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// writable makes a directory removable.
func writable(dir string) {
	filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			os.Chmod(p, 0o700)
		}
		return nil
	})
}

func resolve(t *testing.T, skill fs.FS, p string) *script.Plan {
	t.Helper()
	plan, err := script.Resolve(skill, p, script.HostOf(os.Getenv))
	if err != nil {
		t.Skipf("no interpreter: %v", err)
	}
	if plan.Needs == nil {
		t.Fatalf("%s needs nothing", p)
	}
	return plan
}

func needPip(t *testing.T, plan *script.Plan) {
	t.Helper()
	if out, err := exec.Command(plan.Argv[0], "-I", "-m", "pip", "--version").CombinedOutput(); err != nil {
		t.Skipf("no pip: %s", out)
	}
}

func needNPM(t *testing.T) {
	t.Helper()
	if _, _, ok := testHost().Tool("npm"); !ok {
		t.Skip("no npm")
	}
}

// ensure installs packages, or ends the test.
func (s *scene) ensure(t *testing.T, skill fs.FS, plan *script.Plan) *packages.Packages {
	t.Helper()
	p, err := s.Ensure(t.Context(), plan.Needs, skill, plan, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// run runs the script without a network and returns its output.
func (s *scene) run(t *testing.T, skill fstest.MapFS, plan *script.Plan, p *packages.Packages) string {
	t.Helper()
	tree := sandbox.Tree{Path: mountpoint.Skill, FS: skill}
	for name, f := range skill {
		tree.Files = append(tree.Files, sandbox.File{Path: name, Size: int64(len(f.Data)), SHA256: sum(f.Data)})
	}
	sortFiles(tree.Files)
	spec := &sandbox.Spec{Trees: append([]sandbox.Tree{tree}, p.Trees...), Mounts: p.Mounts, Env: p.Env}
	spec.Limits.Memory = 2 << 30 // Node reserves much
	for _, prefix := range plan.Prefixes {
		spec.Mounts = append(spec.Mounts, sandbox.Mount{Host: prefix, Path: prefix})
	}
	var stderr bytes.Buffer
	res, err := execute.Run(t.Context(), s.backend, spec, &sandbox.Cmd{Args: plan.Command(mountpoint.Skill + "/" + plan.Script)}, &execute.Options{Stderr: &stderr})
	if err != nil {
		t.Fatal(err)
	}
	if res.Reason != sandbox.OK {
		t.Fatalf("the script ended with %s %s\n%s", res.Reason, res.Detail, stderr.String())
	}
	return string(res.Stdout)
}

// cache lists the entries and drafts of the cache.
func (s *scene) cache(t *testing.T) []string {
	t.Helper()
	dirs, err := os.ReadDir(s.opts.Dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var out []string
	for _, d := range dirs {
		if !strings.HasPrefix(d.Name(), "lock-") {
			out = append(out, d.Name())
		}
	}
	return out
}
