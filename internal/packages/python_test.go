package packages_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/loadout-dev/loadout/internal/packages"
	"github.com/loadout-dev/loadout/internal/sandbox/stage/stagetest"
	"github.com/loadout-dev/loadout/internal/script"
	"github.com/loadout-dev/loadout/sandbox"
)

func pythonScene(t *testing.T, index string) (*scene, *script.Plan) {
	t.Helper()
	s := newScene(t, func(o *packages.Options) { o.PythonIndex = index })
	plan := resolve(t, greeter, "run.py")
	needPip(t, plan)
	return s, plan
}

func TestPythonPackagesAreInstalledOnceAndUsableOffline(t *testing.T) {
	f := newFake(t)
	f.wheel("greeting", "1.0", greeting("hello"))
	s, plan := pythonScene(t, f.index())
	if _, err := s.Lookup(plan.Needs, greeter, plan); err == nil {
		t.Fatal("packages were found before they were installed")
	}
	var said []string
	p, err := s.Ensure(t.Context(), plan.Needs, greeter, plan, func(line string) { said = append(said, line) })
	if err != nil {
		t.Fatal(err)
	}
	if len(said) == 0 || !strings.Contains(said[0], "greeting") {
		t.Errorf("a user got %q", said)
	}
	if got := s.run(t, greeter, plan, p); got != "hello\n" {
		t.Errorf("the script printed %q", got)
	}
	compiled, _ := filepath.Glob(filepath.Join(p.Mounts[0].Host, "greeting", "__pycache__", "*.pyc"))
	if len(compiled) != 1 {
		t.Errorf("compiled: %q", compiled)
	}
	for _, name := range []string{"greeting", "greeting/__init__.py"} {
		if info, err := os.Stat(filepath.Join(p.Mounts[0].Host, name)); err != nil || info.Mode().Perm()&0o222 != 0 {
			t.Errorf("%s: %v %v, want it read-only", name, info.Mode(), err)
		}
	}
	before := f.requests()
	if q := s.ensure(t, greeter, plan); q.Digest != p.Digest {
		t.Errorf("digest %s, then %s", p.Digest, q.Digest)
	}
	offline := s.opts
	offline.Offline, offline.Backend = true, nil
	if _, err := mustNew(t, offline).Ensure(t.Context(), plan.Needs, greeter, plan, nil); err != nil {
		t.Errorf("without network: %v", err)
	}
	if _, err := s.Lookup(plan.Needs, greeter, plan); err != nil {
		t.Error(err)
	}
	if n := f.requests() - before; n != 0 {
		t.Errorf("%d requests for existing files", n)
	}
}

func TestUvIsUsedWhereInstalled(t *testing.T) {
	host := script.HostOf(os.Getenv)
	if _, _, ok := host.Tool("uv"); !ok {
		t.Skip("no uv")
	}
	f := newFake(t)
	f.wheel("greeting", "1.0", greeting("by uv"))
	s := newScene(t, func(o *packages.Options) { o.PythonIndex, o.Host = f.index(), host })
	plan := resolve(t, greeter, "run.py")
	if got := s.run(t, greeter, plan, s.ensure(t, greeter, plan)); got != "by uv\n" {
		t.Errorf("the script printed %q", got)
	}
}

// fakeUV writes its arguments and environment instead of packages.
const fakeUV = `#!/bin/sh
told="$*"
while [ $# -gt 0 ]; do
	[ "$1" = --target ] && target=$2
	shift
done
mkdir -p "$target"
{ echo "$told"; env; } > "$target/told.txt"
`

func TestUvIsPreferredAndReadsNoConfiguration(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "uv"), []byte(fakeUV), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("UV_EXTRA_INDEX_URL", "https://other.example")
	s := newScene(t, func(o *packages.Options) { o.Host.Path = dir + string(filepath.ListSeparator) + o.Host.Path })
	plan := resolve(t, greeter, "run.py")
	p := s.ensure(t, greeter, plan)
	text, err := os.ReadFile(filepath.Join(p.Mounts[0].Host, "told.txt"))
	if err != nil {
		t.Fatal(err)
	}
	told, env, _ := strings.Cut(string(text), "\n")
	for _, want := range []string{"pip install --no-config ", " --no-cache ", " --no-python-downloads ", " --only-binary :all:", " --python " + plan.Argv[0] + " ",
		" --index-url " + packages.DefaultPythonIndex + " ", " -r /work/app/requirements.txt"} {
		if !strings.Contains(told, want) {
			t.Errorf("uv got %s\nwant %q in it", told, want)
		}
	}
	if !strings.Contains(env, "UV_NO_CONFIG=1\n") || strings.Contains(env, "other.example") {
		t.Errorf("the environment of uv was\n%s", env)
	}
}

func TestOfflineErrorNamesPythonPackages(t *testing.T) {
	s, plan := pythonScene(t, "http://"+closedPort(t)+"/simple")
	check := func(err error, hosts int) {
		t.Helper()
		e, ok := errors.AsType[*packages.OfflineError](err)
		if !ok {
			t.Fatalf("got %v, want an OfflineError", err)
		}
		if !slices.Equal(e.Needs, []string{"greeting"}) || len(e.Hosts) != hosts || !strings.Contains(e.Error(), "greeting") || !strings.Contains(e.Error(), "run.py") {
			t.Errorf("%+v: %v", e, e)
		}
	}
	_, err := s.Ensure(t.Context(), plan.Needs, greeter, plan, nil)
	check(err, 1)
	if left := s.cache(t); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
	_, err = s.Lookup(plan.Needs, greeter, plan)
	check(err, 0)
	offline := s.opts
	offline.Offline = true
	_, err = mustNew(t, offline).Ensure(t.Context(), plan.Needs, greeter, plan, nil)
	check(err, 0)
}

func failed(t *testing.T, err error) *packages.FailedError {
	t.Helper()
	e, ok := errors.AsType[*packages.FailedError](err)
	if !ok {
		t.Fatalf("got %v, want a FailedError", err)
	}
	return e
}

func TestOnlyTheRegistryIsReached(t *testing.T) {
	other := newFake(t)
	path := other.wheel("greeting", "1.0", greeting("from elsewhere"))
	f := newFake(t)
	f.simple("greeting", func(string) string { return other.URL + path }, filepath.Base(path))
	s, plan := pythonScene(t, f.index())
	_, err := s.Ensure(t.Context(), plan.Needs, greeter, plan, nil)
	e := failed(t, err)
	if want := strings.TrimPrefix(other.URL, "http://"); !slices.Contains(e.Denied, want) || !strings.Contains(e.Error(), want) {
		t.Errorf("%v\nwas refused %q, want %s", e, e.Denied, want)
	}
	if n := other.requests(); n != 0 {
		t.Errorf("the other host had %d requests", n)
	}
	if left := s.cache(t); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
	s.opts.Hosts = []string{strings.TrimPrefix(other.URL, "http://")}
	s.Builder = mustNew(t, s.opts)
	s.ensure(t, greeter, plan)
}

func TestRegistryAtPrivateAddressMustBeListed(t *testing.T) {
	f := newFake(t)
	f.wheel("greeting", "1.0", greeting("hello"))
	s, plan := pythonScene(t, f.index())
	s.opts.Private = nil
	_, err := mustNew(t, s.opts).Ensure(t.Context(), plan.Needs, greeter, plan, nil)
	if e := failed(t, err); len(e.Denied) != 1 {
		t.Errorf("refused %q", e.Denied)
	}
	if n := f.requests(); n != 0 {
		t.Errorf("%d requests", n)
	}
}

func TestSkillConfigurationIsNotRead(t *testing.T) {
	other := newFake(t)
	other.wheel("greeting", "9.0", makeWheel("greeting", "9.0", member{name: "greeting.py", text: "def text(): return 'confused'\n"}))
	f := newFake(t)
	f.wheel("greeting", "1.0", greeting("hello"))
	skill := fstest.MapFS{
		"run.py": greeter["run.py"], "pip.conf": {Data: []byte("[global]\nextra-index-url = " + other.index() + "\n")},
		"uv.toml": {Data: []byte("extra-index-url = [\"" + other.index() + "\"]\n")},
	}
	s := newScene(t, func(o *packages.Options) {
		o.PythonIndex = f.index()
		o.Hosts = []string{strings.TrimPrefix(other.URL, "http://")} // so that nothing else keeps it away
	})
	plan := resolve(t, skill, "run.py")
	needPip(t, plan)
	t.Setenv("PIP_EXTRA_INDEX_URL", other.index())
	if got := s.run(t, skill, plan, s.ensure(t, skill, plan)); got != "hello\n" {
		t.Errorf("the script printed %q", got)
	}
	if n := other.requests(); n != 0 {
		t.Errorf("the other index had %d requests", n)
	}
}

func TestSourcesAreNotBuilt(t *testing.T) {
	f := newFake(t)
	f.files["/files/greeting-1.0.tar.gz"] = []byte("not looked at")
	f.simple("greeting", func(base string) string { return base + "/files/greeting-1.0.tar.gz" }, "greeting-1.0.tar.gz")
	s, plan := pythonScene(t, f.index())
	_, err := s.Ensure(t.Context(), plan.Needs, greeter, plan, nil)
	if e := failed(t, err); e.Output == "" || !strings.Contains(e.Hint, "wheels") {
		t.Errorf("%+v", e)
	}
	if n := f.count("/files/greeting-1.0.tar.gz"); n != 0 {
		t.Errorf("the source was fetched %d times", n)
	}
}

// Python would run compiled files without comparing them with the source.
func TestCompiledFilesOfPackagesAreRemoved(t *testing.T) {
	f := newFake(t)
	members := []member{{name: "greeting/__init__.py", text: "def text():\n    return 'hello'\n"}, {name: "greeting/invalid.py", text: "def\n"}}
	for minor := range 30 {
		for _, module := range []string{"__init__", "invalid"} {
			members = append(members, member{name: fmt.Sprintf("greeting/__pycache__/%s.cpython-3%d.pyc", module, minor), text: "of the package"})
		}
	}
	f.wheel("greeting", "1.0", makeWheel("greeting", "1.0", members...))
	s, plan := pythonScene(t, f.index())
	p := s.ensure(t, greeter, plan)
	if got := s.run(t, greeter, plan, p); got != "hello\n" {
		t.Errorf("the script printed %q", got)
	}
	var compiled []string
	for name := range p.Files() {
		if packages.IsCompiledPython(name) {
			compiled = append(compiled, name)
		}
	}
	if len(compiled) != 1 || !strings.HasPrefix(compiled[0], "greeting/__pycache__/__init__.") {
		t.Errorf("compiled files: %q", compiled)
	}
}

func TestHashesAreChecked(t *testing.T) {
	f := newFake(t)
	wheel := greeting("hello")
	f.wheel("greeting", "1.0", wheel)
	for name, hash := range map[string]string{"right": sum(wheel), "wrong": sum(nil)} {
		t.Run(name, func(t *testing.T) {
			skill := fstest.MapFS{"run.py": {Data: []byte("import greeting\nprint(greeting.text())\n")},
				"requirements.txt": {Data: []byte("greeting==1.0 --hash=sha256:" + hash + "\n")}}
			s := newScene(t, func(o *packages.Options) { o.PythonIndex = f.index() })
			plan := resolve(t, skill, "run.py")
			needPip(t, plan)
			p, err := s.Ensure(t.Context(), plan.Needs, skill, plan, nil)
			if name == "wrong" {
				failed(t, err)
			} else if err != nil {
				t.Error(err)
			} else if got := s.run(t, skill, plan, p); got != "hello\n" {
				t.Errorf("the script printed %q", got)
			}
		})
	}
}

func TestWheelDoesNotEscape(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	for name, members := range map[string][]member{
		"parent":   {{name: "../../../../../.." + outside, text: "x"}, {name: "../app/requirements.txt", text: "x"}},
		"absolute": {{name: outside, text: "x"}},
		"link": {{name: "greeting/__init__.py", text: "def text(): return 'x'\n"}, {name: "greeting/up", text: "../../..", link: true},
			{name: "greeting/up/outside", text: "x"}},
		"link to a file": {{name: "greeting/passwd", text: "/etc/passwd", link: true}, {name: "greeting/__init__.py", text: "\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.wheel("greeting", "1.0", makeWheel("greeting", "1.0", members...))
			s, plan := pythonScene(t, f.index())
			p, err := s.Ensure(t.Context(), plan.Needs, greeter, plan, nil)
			if err != nil {
				failed(t, err)
				if left := s.cache(t); len(left) != 0 {
					t.Errorf("left: %q", left)
				}
			} else {
				filepath.WalkDir(p.Mounts[0].Host, func(p string, d os.DirEntry, err error) error {
					if err != nil || !d.IsDir() && !d.Type().IsRegular() {
						t.Errorf("%s: %v %v", p, d.Type(), err)
					}
					return nil
				})
			}
			if _, err := os.Lstat(outside); err == nil {
				t.Error("a file was written outside")
			}
			beside, _ := os.ReadDir(filepath.Dir(s.opts.Dir))
			if len(beside) != 1 {
				t.Errorf("beside the cache: %v", beside)
			}
		})
	}
}

func TestInstallationLimits(t *testing.T) {
	many := []member{}
	for i := range 100_000 {
		many = append(many, member{name: fmt.Sprintf("greeting/f%d", i), text: ""})
	}
	deep := member{name: strings.Repeat("d/", 60) + "f", text: ""}
	for name, c := range map[string]struct {
		members []member
		limits  packages.Limits
	}{
		"100k files":             {members: many, limits: packages.Limits{Sandbox: sandbox.Limits{Inodes: 10_000}}},
		"more files than may be": {members: many[:3000], limits: packages.Limits{Files: 2000}},
		"bytes":                  {members: []member{{name: "greeting.bin", text: strings.Repeat("x", 3<<20)}}, limits: packages.Limits{Bytes: 2 << 20}},
		"depth":                  {members: []member{deep}},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && len(c.members) > 20_000 {
				t.Skip("takes seconds")
			}
			f := newFake(t)
			f.wheel("greeting", "1.0", makeWheel("greeting", "1.0", c.members...))
			s, plan := pythonScene(t, f.index())
			s.opts.Limits = c.limits
			_, err := mustNew(t, s.opts).Ensure(t.Context(), plan.Needs, greeter, plan, nil)
			t.Log(failed(t, err).Reason)
			if left := s.cache(t); len(left) != 0 {
				t.Errorf("left: %q", left)
			}
		})
	}
}

func TestTwoProcessesBuildOnce(t *testing.T) {
	f := newFake(t)
	path := f.wheel("greeting", "1.0", greeting("hello"))
	s, plan := pythonScene(t, f.index())
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	out := make([]string, 3)
	for i := range out {
		wg.Go(func() {
			cmd := exec.Command(exe)
			cmd.Env = append(os.Environ(), helper+"="+s.opts.Dir, helper+"_INDEX="+f.index(), stagetest.Variable+"="+stage)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			b, err := cmd.Output()
			if err != nil {
				t.Errorf("%v: %s", err, stderr.String())
			}
			out[i] = string(b)
		})
	}
	wg.Wait()
	if p := s.ensure(t, greeter, plan); out[0] != p.Digest+"\n" || out[1] != out[0] || out[2] != out[0] {
		t.Errorf("digests %q, want %s", out, p.Digest)
	}
	if n := f.count(path); n != 1 {
		t.Errorf("the wheel was fetched %d times", n)
	}
}

func TestMissingPip(t *testing.T) {
	f := newFake(t)
	s, plan := pythonScene(t, f.index())
	// An interpreter without packages.
	bare := filepath.Join(t.TempDir(), "bare")
	if out, err := exec.Command(plan.Argv[0], "-m", "venv", "--without-pip", bare).CombinedOutput(); err != nil {
		t.Skipf("no venv: %s", out)
	}
	h := script.HostOf(os.Getenv)
	h.Path = filepath.Join(bare, "bin")
	plan, err := script.Resolve(greeter, "run.py", h)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(plan.Argv[0], bare) {
		t.Skipf("the interpreter is %s", plan.Argv[0])
	}
	_, err = s.Ensure(t.Context(), plan.Needs, greeter, plan, nil)
	e, ok := errors.AsType[*packages.MissingToolError](err)
	if !ok || !strings.Contains(e.Error(), "uv") || !strings.Contains(e.Error(), "greeting") {
		t.Errorf("got %v, want a MissingToolError", err)
	}
}
