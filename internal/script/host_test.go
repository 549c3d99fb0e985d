package script_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/script"
)

// fakeHost creates a machine in a temporary directory. A line of layout is
// "path" for an executable, "path -> target" for a symlink, "path: text" for a
// file, or "path/" for a directory. In targets, texts and results, "@" stands
// for the directory of the machine.
func fakeHost(t *testing.T, layout string) (string, script.Host) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("links and executable bits of Unix")
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for line := range strings.SplitSeq(layout+"\nhome/\nusr/bin/", "\n") {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		name, target, link := strings.Cut(line, " -> ")
		name, text, plain := strings.Cut(name, ": ")
		p := filepath.Join(root, name)
		if strings.HasSuffix(name, "/") {
			must(os.MkdirAll(p, 0o755))
			continue
		}
		must(os.MkdirAll(filepath.Dir(p), 0o755))
		switch {
		case link:
			must(os.Symlink(strings.ReplaceAll(target, "@", root), p))
		case plain:
			must(os.WriteFile(p, []byte(strings.NewReplacer("@", root, `\n`, "\n").Replace(text)), 0o644))
		default:
			must(os.WriteFile(p, []byte("#!/usr/bin/env node\n"), 0o755))
		}
	}
	return root, script.Host{Home: filepath.Join(root, "home"), System: []string{filepath.Join(root, "usr"), filepath.Join(root, "bin")}}
}

// sources are scripts to resolve.
var sources = fstest.MapFS{
	"x.py": file(""), "x.sh": file(""), "x.js": file(""), "x.ts": file(""), "x.rb": file(""), "x.pl": file(""), "x.php": file(""), "x.ps1": file(""),
	"x.wasm": file("\x00asm"), "elf": isExecutable("\x7fELF"), "X.PY": file(""), "old.py": file("#!/usr/bin/env python2\n"),
	"new.py":  file("# /// script\n# requires-python = \">=3.12\"\n# ///\n"),
	"deno.ts": file("#!/usr/bin/env -S deno run --allow-read\n"),
	"x.lua":   isExecutable("#!/usr/bin/env lua\n"), "x.awk": isExecutable("#!/usr/bin/awk -f\n"), "Rules": file("#!/usr/bin/env -S make -s -f\n"),
	"README.md": isExecutable("text"), "bad.sh": file("#!./bash\n"), "notes.txt": file("x"),
}

func TestHost(t *testing.T) {
	for _, tt := range []struct {
		name, layout, path string
		env                map[string]string
		script             string
		argv, prefixes     string // words; "@" is the machine
	}{
		{name: "system", layout: "usr/bin/python3.11\nusr/bin/python3 -> python3.11", script: "x.py", argv: "@/usr/bin/python3.11 {script}"},
		{name: "system through a link of /bin", layout: "usr/bin/bash\nbin -> usr/bin", path: "@/bin", script: "x.sh", argv: "@/usr/bin/bash {script}"},
		{name: "sh where there is no bash", layout: "usr/bin/busybox\nusr/bin/sh -> busybox", script: "x.sh", argv: "@/usr/bin/sh {script}"},
		{name: "relative and empty entries of PATH", layout: "usr/bin/node", path: ":.:bin", script: "x.js", argv: "@/usr/bin/node {script}"},
		{name: "not executable", layout: "a/bin/node: x\nusr/bin/node", path: "@/a/bin", script: "x.js", argv: "@/usr/bin/node {script}"},
		{name: "a directory", layout: "a/bin/node/\nusr/bin/node", path: "@/a/bin", script: "x.js", argv: "@/usr/bin/node {script}"},
		{name: "dangling link", layout: "a/bin/node -> @/gone\nusr/bin/node", path: "@/a/bin", script: "x.js", argv: "@/usr/bin/node {script}"},
		{name: "link to itself", layout: "a/bin/node -> node\nusr/bin/node", path: "@/a/bin", script: "x.js", argv: "@/usr/bin/node {script}"},

		{name: "pyenv by file", layout: pyenv, path: "@/home/.pyenv/shims", script: "x.py", argv: "@/home/.pyenv/versions/3.11.7/bin/python3.11 {script}", prefixes: "@/home/.pyenv/versions/3.11.7"},
		{name: "pyenv by variable", layout: pyenv, path: "@/home/.pyenv/shims", env: map[string]string{"PYENV_VERSION": "3.12"}, script: "x.py", argv: "@/home/.pyenv/versions/3.12.10/bin/python3.12 {script}", prefixes: "@/home/.pyenv/versions/3.12.10"},
		{name: "pyenv with several", layout: pyenv, path: "@/home/.pyenv/shims", env: map[string]string{"PYENV_VERSION": "2.7:3.12.1"}, script: "x.py", argv: "@/home/.pyenv/versions/3.12.1/bin/python3.12 {script}", prefixes: "@/home/.pyenv/versions/3.12.1"},
		{name: "pyenv says system", layout: pyenv + "\nusr/bin/python3", path: "@/home/.pyenv/shims:@/usr/bin", env: map[string]string{"PYENV_VERSION": "system"}, script: "x.py", argv: "@/usr/bin/python3 {script}"},
		{name: "pyenv names a path", layout: pyenv + "\nusr/bin/python3\nhome/.pyenv/bin/python3", path: "@/home/.pyenv/shims:@/usr/bin", env: map[string]string{"PYENV_VERSION": "../"}, script: "x.py", argv: "@/usr/bin/python3 {script}"},
		{name: "pyenv's version is gone", layout: pyenv + "\nusr/bin/python3", path: "@/home/.pyenv/shims", env: map[string]string{"PYENV_VERSION": "3.8.1"}, script: "x.py", argv: "@/usr/bin/python3 {script}"},
		{name: "pyenv virtualenv", layout: pyenv + "\nhome/.pyenv/versions/3.11.7/envs/w/bin/python3 -> @/home/.pyenv/versions/3.11.7/bin/python3\nhome/.pyenv/versions/3.11.7/envs/w/pyvenv.cfg: home = @/home/.pyenv/versions/3.11.7/bin\nhome/.pyenv/versions/w -> 3.11.7/envs/w",
			path: "@/home/.pyenv/shims", env: map[string]string{"PYENV_VERSION": "w"}, script: "x.py", argv: "@/home/.pyenv/versions/3.11.7/envs/w/bin/python3 {script}", prefixes: "@/home/.pyenv/versions/3.11.7 @/home/.pyenv/versions/3.11.7/envs/w @/home/.pyenv/versions/w"},
		{name: "requires-python passes over the first", layout: pyenv, path: "@/home/.pyenv/shims", script: "new.py", argv: "@/home/.pyenv/versions/3.12.10/bin/python3.12 {script}", prefixes: "@/home/.pyenv/versions/3.12.10"},
		{name: "rbenv", layout: "home/.rbenv/shims/ruby\nhome/.rbenv/versions/3.3.0/bin/ruby\nhome/.rbenv/version: 3.3.0", path: "@/home/.rbenv/shims", script: "x.rb", argv: "@/home/.rbenv/versions/3.3.0/bin/ruby {script}", prefixes: "@/home/.rbenv/versions/3.3.0"},
		{name: "asdf", layout: "home/.asdf/shims/node\nhome/.asdf/installs/nodejs/20.1.0/bin/node\nhome/.tool-versions: ruby 3\\nnodejs 20.1.0 # lts", path: "@/home/.asdf/shims", script: "x.js", argv: "@/home/.asdf/installs/nodejs/20.1.0/bin/node {script}", prefixes: "@/home/.asdf/installs/nodejs/20.1.0"},
		{name: "mise", layout: "usr/bin/mise\nhome/.local/share/mise/shims/python3 -> @/usr/bin/mise\nhome/.local/share/mise/installs/python/3.12.4/bin/python3\nhome/.config/mise/config.toml: [tools]\\npython = [{version = \"3.12\"}]", path: "@/home/.local/share/mise/shims", script: "x.py",
			argv: "@/home/.local/share/mise/installs/python/3.12.4/bin/python3 {script}", prefixes: "@/home/.local/share/mise/installs/python/3.12.4"},
		{name: "volta", layout: "home/.volta/bin/volta-shim\nhome/.volta/bin/node -> volta-shim\nhome/.volta/tools/image/node/20.2.0/bin/node\nhome/.volta/tools/user/platform.json: {\"node\":{\"runtime\":\"20.2.0\"}}", path: "@/home/.volta/bin", script: "x.js", argv: "@/home/.volta/tools/image/node/20.2.0/bin/node {script}", prefixes: "@/home/.volta/tools/image/node/20.2.0"},
		{name: "nvm", layout: "home/.nvm/versions/node/v20.1.0/bin/node", path: "@/home/.nvm/versions/node/v20.1.0/bin", script: "x.js", argv: "@/home/.nvm/versions/node/v20.1.0/bin/node {script}", prefixes: "@/home/.nvm/versions/node/v20.1.0"},
		{name: "nvm that PATH does not have", layout: "home/.nvm/versions/node/v9.1.0/bin/node\nhome/.nvm/versions/node/v20.1.0/bin/node", script: "x.js", argv: "@/home/.nvm/versions/node/v20.1.0/bin/node {script}", prefixes: "@/home/.nvm/versions/node/v20.1.0"},
		{name: "uv by a link in .local/bin", layout: uv, path: "@/home/.local/bin", script: "x.py", argv: "@/home/.local/share/uv/python/cpython-3.12.3-linux/bin/python3.12 {script}", prefixes: "@/home/.local/share/uv/python/cpython-3.12.3-linux"},
		{name: "venv of uv", layout: uv + "\nhome/w/.venv/pyvenv.cfg: home = @/home/.local/share/uv/python/cpython-3.12-linux/bin\nhome/w/.venv/bin/python -> @/home/.local/share/uv/python/cpython-3.12-linux/bin/python3.12\nhome/w/.venv/bin/python3 -> python\nhome/w/secret: x",
			path: "@/home/w/.venv/bin", script: "x.py", argv: "@/home/w/.venv/bin/python3 {script}", prefixes: "@/home/.local/share/uv/python/cpython-3.12-linux @/home/.local/share/uv/python/cpython-3.12.3-linux @/home/w/.venv"},
		{name: "venv of the system", layout: "usr/bin/python3\nhome/v/pyvenv.cfg: home = @/usr/bin\nhome/v/bin/python3 -> @/usr/bin/python3", path: "@/home/v/bin", script: "x.py", argv: "@/home/v/bin/python3 {script}", prefixes: "@/home/v"},
		{name: "Homebrew", layout: "brew/Cellar/node/22.20.0/bin/node\nbrew/bin/node -> ../Cellar/node/22.20.0/bin/node\nbrew/opt/node -> ../Cellar/node/22.20.0\nbrew/var/db/: ", path: "@/brew/bin", script: "x.ts", argv: "@/brew/Cellar/node/22.20.0/bin/node {script}", prefixes: "@/brew/Cellar @/brew/opt"},
		{name: "opt", layout: "opt/ps/7/pwsh\nopt/ps/7/pwsh.dll: x\nusr/bin/pwsh -> @/opt/ps/7/pwsh", script: "x.ps1", argv: "@/opt/ps/7/pwsh -NoProfile -NonInteractive -File {script}", prefixes: "@/opt/ps/7"},
		{name: "one file", layout: "home/.local/bin/deno", path: "@/home/.local/bin", script: "x.ts", argv: "@/home/.local/bin/deno run --allow-all {script}", prefixes: "@/home/.local/bin/deno"},
		{name: "deno with its own flags", layout: "home/.deno/bin/deno", script: "deno.ts", argv: "@/home/.deno/bin/deno run --allow-read {script}", prefixes: "@/home/.deno/bin/deno"},

		{name: "node that needs a flag for TypeScript", layout: "home/.nvm/versions/node/v22.6.0/bin/node", script: "x.ts", argv: "@/home/.nvm/versions/node/v22.6.0/bin/node --experimental-strip-types {script}", prefixes: "@/home/.nvm/versions/node/v22.6.0"},
		{name: "node 23 that needs a flag", layout: "home/.nvm/versions/node/v23.5.0/bin/node", script: "x.ts", argv: "@/home/.nvm/versions/node/v23.5.0/bin/node --experimental-strip-types {script}", prefixes: "@/home/.nvm/versions/node/v23.5.0"},
		{name: "node that runs TypeScript", layout: "usr/bin/node\nusr/include/node/node_version.h: #define NODE_MAJOR_VERSION 24\\n#define NODE_MINOR_VERSION 1\\n#define NODE_PATCH_VERSION 0\\n", script: "x.ts", argv: "@/usr/bin/node {script}"},
		{name: "node too old, then bun", layout: "home/.nvm/versions/node/v20.1.0/bin/node\nhome/.bun/bin/bun", script: "x.ts", argv: "@/home/.bun/bin/bun {script}", prefixes: "@/home/.bun/bin/bun"},
		{name: "tsx", layout: "home/.nvm/versions/node/v20.1.0/bin/node\nhome/.nvm/versions/node/v20.1.0/lib/node_modules/tsx/dist/cli.mjs\nhome/.nvm/versions/node/v20.1.0/bin/tsx -> ../lib/node_modules/tsx/dist/cli.mjs", path: "@/home/.nvm/versions/node/v20.1.0/bin", script: "x.ts",
			argv: "@/home/.nvm/versions/node/v20.1.0/bin/node @/home/.nvm/versions/node/v20.1.0/lib/node_modules/tsx/dist/cli.mjs {script}", prefixes: "@/home/.nvm/versions/node/v20.1.0 @/home/.nvm/versions/node/v20.1.0/lib/node_modules"},

		{name: "upper case", layout: "usr/bin/python3", script: "X.PY", argv: "@/usr/bin/python3 {script}"},
		{name: "perl", layout: "usr/bin/perl", script: "x.pl", argv: "@/usr/bin/perl {script}"},
		{name: "php", layout: "usr/bin/php", script: "x.php", argv: "@/usr/bin/php {script}"},
		{name: "another interpreter", layout: "usr/bin/lua -> @/etc/lua\netc/lua -> @/usr/bin/lua5.4\nusr/bin/lua5.4", script: "x.lua", argv: "@/usr/bin/lua5.4 {script}"},
		{name: "another one with an argument", layout: "usr/bin/mawk\nusr/bin/awk -> mawk", script: "x.awk", argv: "@/usr/bin/mawk -f {script}"},
		{name: "another one with several", layout: "opt/make/4/bin/make", path: "@/opt/make/4/bin", script: "Rules", argv: "@/opt/make/4/bin/make -s -f {script}", prefixes: "@/opt/make/4"},
		{name: "another one of asdf", layout: "home/.asdf/shims/lua\nhome/.asdf/installs/lua/5.4.6/bin/lua\nhome/.tool-versions: lua 5.4.6", path: "@/home/.asdf/shims", script: "x.lua", argv: "@/home/.asdf/installs/lua/5.4.6/bin/lua {script}", prefixes: "@/home/.asdf/installs/lua/5.4.6"},
		{name: "wasm", script: "x.wasm", argv: "{script}"},
		{name: "executable", script: "elf", argv: "{script}"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root, host := fakeHost(t, tt.layout)
			host.Path = strings.ReplaceAll(tt.path, "@", root)
			host.Getenv = func(k string) string { return tt.env[k] }
			plan, err := script.Resolve(sources, tt.script, host)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.argv, strings.ReplaceAll(strings.Join(plan.Argv, " "), root, "@")); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.prefixes, strings.ReplaceAll(strings.Join(plan.Prefixes, " "), root, "@")); diff != "" {
				t.Error(diff)
			}
			checkPrefixes(t, host, plan)
		})
	}
}

const pyenv = `home/.pyenv/shims/python3
home/.pyenv/shims/python
home/.pyenv/version: 3.11.7
home/.pyenv/versions/3.11.7/bin/python3.11
home/.pyenv/versions/3.11.7/bin/python3 -> python3.11
home/.pyenv/versions/3.12.1/bin/python3.12
home/.pyenv/versions/3.12.1/bin/python3 -> python3.12
home/.pyenv/versions/3.12.10/bin/python3.12
home/.pyenv/versions/3.12.10/bin/python3 -> python3.12`

const uv = `home/.local/share/uv/python/cpython-3.12.3-linux/bin/python3.12
home/.local/share/uv/python/cpython-3.12-linux -> cpython-3.12.3-linux
home/.local/bin/python3 -> @/home/.local/share/uv/python/cpython-3.12-linux/bin/python3.12
home/.local/share/keyrings/login: secret`

// checkPrefixes checks the prefixes of a plan.
func checkPrefixes(t *testing.T, host script.Host, plan *script.Plan) {
	t.Helper()
	for _, p := range plan.Prefixes {
		if !filepath.IsAbs(p) || p == "/" || p == host.Home || strings.HasPrefix(host.Home+"/", p+"/") {
			t.Errorf("prefix %s", p)
		}
		if host.Home != "" && slices.Contains([]string{".local", ".config", ".cache", ".pyenv", "w"}, strings.TrimPrefix(p, host.Home+"/")) {
			t.Errorf("prefix %s shows more than a runtime", p)
		}
	}
	if n := slices.Index(plan.Argv, script.Placeholder); n != len(plan.Argv)-1 || plan.Env == nil {
		t.Errorf("argv %q", plan.Argv)
	}
}

func TestHostWithoutInterpreter(t *testing.T) {
	for _, tt := range []struct {
		name, layout, path string
		script             string
		interpreter        string
		tried              []string // beginnings of reasons
	}{
		{name: "nothing", script: "x.py", interpreter: "python3"},
		{name: "python2", layout: "usr/bin/python3", script: "old.py", interpreter: "python2"},
		{name: "the home itself", layout: "home/bin/node", path: "@/home/bin", script: "x.js", interpreter: "node", tried: []string{"directory @/home contains the home directory"}},
		{name: "another interpreter", script: "x.lua", interpreter: "lua"},
		{name: "another one in the home", layout: "home/bin/lua\nhome/.local/bin/lua", path: "@/home/bin", script: "x.lua", interpreter: "lua", tried: []string{"directory @/home contains the home directory", "directory @/home/.local is shared"}},
		{name: "above the home", layout: "bin2/node -> @/sbin/node\nsbin/node", path: "@/bin2", script: "x.js", interpreter: "node", tried: []string{"directory @ contains the home directory"}},
		{name: ".local", layout: "home/.local/bin/node", script: "x.js", interpreter: "node", tried: []string{"directory @/home/.local is shared"}},
		{name: "a project", layout: "home/w/bin/node\nhome/w/secret.txt: x", path: "@/home/w/bin", script: "x.js", interpreter: "node", tried: []string{"directory @/home/w contains other files, such as secret.txt"}},
		{name: "venv over a project", layout: "usr/bin/python3.11\nhome/w/pyvenv.cfg: home = @/usr/bin\nhome/w/bin/python3 -> @/usr/bin/python3.11\nhome/w/.env: x", path: "@/home/w/bin", script: "x.py", interpreter: "python3", tried: []string{"check base interpreter @/home/w/bin/python3 of virtual environment: directory @/home/w contains other files, such as .env"}},
		{name: "loose files", layout: "home/tools/node\nhome/tools/id_rsa: x", path: "@/home/tools", script: "x.js", interpreter: "node", tried: []string{"directory @/home/tools contains other files"}},
		{name: "link to a directory of secrets", layout: "home/w/id_rsa: x\nhome/w/bin/node\nlink -> home/w", path: "@/link/bin", script: "x.js", interpreter: "node", tried: []string{"directory @/home/w contains other files"}},
		{name: "snap", layout: "usr/bin/snap\nsnap/bin/node -> @/usr/bin/snap", path: "@/snap/bin", script: "x.js", interpreter: "node", tried: []string{"snaps do not run"}},
		{name: "unknown shim", layout: "home/z/shims/node", path: "@/home/z/shims", script: "x.js", interpreter: "node", tried: []string{"shim of an unknown version manager"}},
		{name: "pyenv without a version", layout: "home/.pyenv/shims/python3\nhome/.pyenv/versions/", path: "@/home/.pyenv/shims", script: "x.py", interpreter: "python3", tried: []string{"no version selected; run `pyenv global"}},
		{name: "mise without a version", layout: "usr/bin/mise\nhome/.local/share/mise/shims/node -> @/usr/bin/mise", script: "x.js", interpreter: "node", tried: []string{"no global version of node selected"}},
		{name: "node too old for TypeScript", layout: "home/.nvm/versions/node/v20.1.0/bin/node", script: "x.ts", interpreter: "node (22.6 or newer), deno, bun or tsx", tried: []string{"version 20.1.0 is too old"}},
		{name: "node of unknown age", layout: "usr/bin/node", script: "x.ts", interpreter: "node (22.6 or newer), deno, bun or tsx", tried: []string{"unknown version"}},
		{name: "python too old", layout: "usr/bin/python3.11\nusr/bin/python3 -> python3.11", script: "new.py", interpreter: "python3 (>=3.12)", tried: []string{"version 3.11 does not satisfy >=3.12"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root, host := fakeHost(t, tt.layout)
			host.Path = strings.ReplaceAll(tt.path, "@", root)
			_, err := script.Resolve(sources, tt.script, host)
			me, ok := errors.AsType[*script.MissingError](err)
			if !ok || me.Interpreter != tt.interpreter || me.For != tt.script || me.Hint == "" || !strings.Contains(err.Error(), me.Hint) {
				t.Fatalf("%#v", err)
			}
			if len(me.Tried) != len(tt.tried) {
				t.Fatalf("tried %q", me.Tried)
			}
			for i, u := range me.Tried {
				if !strings.HasPrefix(strings.ReplaceAll(u.Reason, root, "@"), tt.tried[i]) {
					t.Errorf("%s: %s", u.Path, u.Reason)
				}
			}
		})
	}
}

func TestHostVersionHook(t *testing.T) {
	_, host := fakeHost(t, "usr/bin/node")
	host.Version = func(string) string { return "v22.18.0\n" }
	plan, err := script.Resolve(sources, "x.ts", host)
	if err != nil || plan.Version != "22.18.0" || len(plan.Argv) != 2 {
		t.Fatalf("%+v, %v", plan, err)
	}
}

// An interpreter with any name is used under its own name, and is not run for
// inspection.
func TestOtherInterpreters(t *testing.T) {
	root, host := fakeHost(t, "usr/bin/lua\nusr/bin/awk")
	host.Version = func(exe string) string { t.Errorf("%s was run", exe); return "" }
	plan, err := script.Resolve(sources, "x.lua", host)
	if err != nil || plan.Kind != script.Other || plan.Interpreter != "lua" || plan.Version != "" || plan.Needs != nil || len(plan.Env) != 0 {
		t.Errorf("%+v, %v", plan, err)
	}
	if err := os.Chmod(filepath.Join(root, "usr/bin/awk"), 0o755|os.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	_, err = script.Resolve(sources, "x.awk", host)
	if me, ok := errors.AsType[*script.MissingError](err); !ok || me.Interpreter != "awk" || len(me.Tried) != 1 || !strings.Contains(err.Error(), "setuid") || !strings.Contains(me.Hint, "name another interpreter") {
		t.Error(err)
	}
	root, host = fakeHost(t, "home/secret/bin/lua")
	if _, err := script.Resolve(fstest.MapFS{"x": file("#!" + root + "/home/secret/bin/lua\n")}, "x", host); !errors.As(err, new(*script.MissingError)) {
		t.Error(err)
	}
}

// A shebang must not choose which part of a home directory is mounted.
func TestShebangOutsidePath(t *testing.T) {
	root, host := fakeHost(t, "usr/bin/python3\nusr/bin/python3.9\nhome/secret/bin/python3\nhome/v/bin/python3")
	for shebang, want := range map[string]string{
		root + "/home/secret/bin/python3":               root + "/usr/bin/python3",
		root + "/usr/bin/../../home/secret/bin/python3": root + "/usr/bin/python3",
		root + "/usr/bin/python3.9":                     root + "/usr/bin/python3.9",
		root + "/home/v/bin/python3":                    root + "/home/v/bin/python3",
	} {
		host.Path = ""
		if strings.Contains(shebang, "/v/") {
			host.Path = root + "/usr/bin:" + root + "/home/v/bin"
		}
		plan, err := script.Resolve(fstest.MapFS{"x": file("#!" + shebang + "\n")}, "x", host)
		if err != nil || plan.Argv[0] != want {
			t.Errorf("%s: %v, %v", shebang, plan, err)
		}
	}
}
