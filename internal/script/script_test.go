package script_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/script"
	"github.com/loadout-dev/loadout/internal/skillpath"
)

func TestTable(t *testing.T) {
	var exts []string
	for _, row := range script.Table() {
		exts = append(exts, row.Extension)
		if !skillpath.IsScript("x"+row.Extension, 0) {
			t.Errorf("a skill does not know %s for a script", row.Extension)
		}
		if (len(row.Interpreters) == 0) != (row.Kind == script.WASM) {
			t.Errorf("%+v", row)
		}
	}
	if want := []string{".py", ".sh", ".bash", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php", ".ps1", ".wasm"}; !slices.Equal(exts, want) {
		t.Error(exts)
	}
	script.Table()[0].Interpreters[0] = "changed"
	if script.Table()[0].Interpreters[0] != "python3" {
		t.Error("the table can be changed from outside")
	}
}

func TestPlan(t *testing.T) {
	_, host := fakeHost(t, "usr/bin/python3")
	plan, err := script.Resolve(fstest.MapFS{
		"s/x.py": file("#!/usr/bin/env -S LEVEL=2 PYTHONUNBUFFERED=0 python3 -X utf8\n"), "requirements.txt": file("rich"),
	}, "s/x.py", host)
	if err != nil {
		t.Fatal(err)
	}
	exe := filepath.Join(host.System[0], "bin", "python3")
	if diff := cmp.Diff([]string{exe, "-X", "utf8", "/skill/s/x.py", "-a", "{script}"}, plan.Command("/skill/s/x.py", "-a", "{script}")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"LEVEL": "2", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "0"}, plan.Env); diff != "" {
		t.Error(diff)
	}
	if plan.Kind != script.Python || plan.Script != "s/x.py" || plan.Needs == nil || plan.Needs.Source != "requirements.txt" {
		t.Errorf("%+v", plan)
	}
	plan.Env["PYTHONUNBUFFERED"] = "changed"
	if again, _ := script.Resolve(sources, "x.py", host); again.Env["PYTHONUNBUFFERED"] != "1" {
		t.Error("a plan can be changed through another")
	}
}

func TestResolveRefuses(t *testing.T) {
	_, host := fakeHost(t, "")
	for _, p := range []string{"README.md", "notes.txt"} {
		_, err := script.Resolve(sources, p, host)
		if ns, ok := errors.AsType[*script.NotScriptError](err); !ok || ns.Path != p {
			t.Errorf("%s: %v", p, err)
		}
	}
	_, err := script.Resolve(sources, "bad.sh", host)
	if se, ok := errors.AsType[*script.ShebangError](err); !ok || se.Path != "bad.sh" || se.Line != "./bash" {
		t.Error(err)
	}
	if _, err := script.Resolve(sources, "gone.py", host); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := script.Resolve(fstest.MapFS{"d.py/x": file("")}, "d.py", host); err == nil {
		t.Error("a directory is run")
	}
	// Needs come before the interpreter.
	_, err = script.Resolve(fstest.MapFS{"x.py": file(""), "requirements.txt": file("-e .")}, "x.py", host)
	if _, ok := errors.AsType[*script.NeedsError](err); !ok {
		t.Error(err)
	}
	large := fstest.MapFS{"x.py": file(strings.Repeat("#", 9<<20)), "x.sh": file(strings.Repeat("#", 9<<20))}
	if _, err := script.Resolve(large, "x.py", host); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Error(err)
	}
	if _, err := script.Resolve(large, "x.sh", host); err == nil || strings.Contains(err.Error(), "too large") {
		t.Error(err)
	}
}

// Plans for this machine can be run.
func TestRealInterpreters(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("scripts for Unix")
	}
	for name, src := range map[string]string{
		"x.py":     "import sys, json, os.path\nprint('ok', *sys.argv[1:])\n",
		"env.py":   "#!/usr/bin/env -S uv run --script\n# /// script\n# requires-python = \">=3.8\"\n# ///\nimport sys\nprint('ok', *sys.argv[1:])\n",
		"sys.py":   "#!/usr/bin/python3\r\nimport sys\nprint('ok', *sys.argv[1:])\n",
		"new.py":   "# /// script\n# requires-python = \">=3.13\"\n# ///\nimport sys\nassert sys.version_info >= (3, 13)\nprint('ok', *sys.argv[1:])\n",
		"x.js":     "console.log('ok', ...process.argv.slice(2))\n",
		"x.mjs":    "import process from 'node:process'\nconsole.log('ok', ...process.argv.slice(2))\n",
		"x.ts":     "const a: string[] = process.argv.slice(2)\nconsole.log('ok', ...a)\n",
		"x.sh":     "echo ok \"$@\"\n",
		"bash":     "#!/bin/bash -e\necho ok \"$@\"\nfalse\necho not reached\n",
		"x.pl":     "print join(' ', 'ok', @ARGV), \"\\n\";\n",
		"x.rb":     "puts ['ok', *ARGV].join(' ')\n",
		"x.php":    "<?php echo implode(' ', ['ok', ...array_slice($argv, 1)]), \"\\n\";\n",
		"x.ps1":    "Write-Output \"ok $($args -join ' ')\"\n",
		"x.awk":    "#!/usr/bin/awk -f\nBEGIN { printf \"ok\"; for (i = 1; i < ARGC; i++) printf \" %s\", ARGV[i]; print \"\" }\n",
		"x.tcl":    "#!/usr/bin/env tclsh\nputs [concat ok [lindex $argv 0] [lindex $argv 1]]\n",
		"x.lua":    "#!/usr/bin/env lua\nprint(table.concat({'ok', ...}, ' '))\n",
		"python27": "#!/usr/bin/env python2\nimport sys\nprint 'ok', ' '.join(sys.argv[1:])\n",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, name), []byte(src), 0o755); err != nil {
				t.Fatal(err)
			}
			host := script.HostOf(os.Getenv)
			plan, err := script.Resolve(os.DirFS(dir), name, host)
			if me, ok := errors.AsType[*script.MissingError](err); ok {
				t.Skip(me)
			}
			if err != nil {
				t.Fatal(err)
			}
			checkPrefixes(t, host, plan)
			for _, p := range plan.Prefixes {
				if _, err := os.Stat(p); err != nil {
					t.Error(err)
				}
			}
			argv := plan.Command(filepath.Join(dir, name), "two words", "$HOME")
			cmd := exec.Command(argv[0], argv[1:]...)
			for k, v := range plan.Env {
				cmd.Env = append(cmd.Env, k+"="+v)
			}
			out, err := cmd.Output()
			if string(out) != "ok two words $HOME\n" || (err != nil) != (name == "bash") {
				t.Errorf("%q: %q, %v", argv, out, err)
			}
			if s := plan.Version; plan.Kind == script.Python && s != "" {
				said, err := exec.Command(plan.Argv[0], "--version").CombinedOutput()
				if err != nil || !strings.HasPrefix(string(said), "Python "+s) {
					t.Errorf("version %s, and %s returned %q", s, plan.Argv[0], said)
				}
			}
		})
	}
}

// Uses the pyenv of this machine, if there is one.
func TestRealPyenv(t *testing.T) {
	home, err := os.UserHomeDir()
	if err != nil {
		t.Skip(err)
	}
	found, err := filepath.Glob(filepath.Join(home, ".pyenv", "versions", "3.*", "bin", "python3"))
	if err != nil || len(found) == 0 {
		t.Skip("no Python of pyenv")
	}
	prefix := filepath.Dir(filepath.Dir(found[0]))
	version := filepath.Base(prefix)
	host := script.HostOf(func(k string) string {
		return map[string]string{"HOME": home, "PATH": filepath.Join(home, ".pyenv", "shims") + ":/usr/bin", "PYENV_VERSION": version}[k]
	})
	plan, err := script.Resolve(sources, "x.py", host)
	if err != nil || !slices.Equal(plan.Prefixes, []string{prefix}) || !slices.Equal(plan.Bin, []string{prefix + "/bin"}) || plan.Version != version {
		t.Errorf("%+v, %v", plan, err)
	}
}
