package script

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestShebang(t *testing.T) {
	pythons, ts := []string{"python3", "python"}, []string{"node", "deno", "bun", "tsx"}
	for _, tt := range []struct {
		line string
		p    string
		want detected
	}{
		{"#!/usr/bin/env python3", "x.py", detected{kind: Python, interpreters: pythons}},
		{"#!/usr/bin/env python3\r", "x.py", detected{kind: Python, interpreters: pythons}},
		{"\ufeff#! /usr/bin/python3 -u \r", "x.py", detected{kind: Python, interpreters: pythons, exact: "/usr/bin/python3", args: []string{"-u"}}},
		{"#!/usr/bin/env python3.12", "x.py", detected{kind: Python, interpreters: []string{"python3.12"}}},
		{"#!/usr/bin/python2", "x.py", detected{kind: Python, interpreters: []string{"python2"}, exact: "/usr/bin/python2"}},
		{"#!/usr/bin/env python3 -u -W ignore", "x.py", detected{kind: Python, interpreters: pythons, args: []string{"-u", "-W", "ignore"}}},
		{"#!/usr/bin/env -S python3 -u", "x.py", detected{kind: Python, interpreters: pythons, args: []string{"-u"}}},
		{"#!/usr/bin/env -Spython3 -u", "x.py", detected{kind: Python, interpreters: pythons, args: []string{"-u"}}},
		{"#!/usr/bin/env -iS A=1 B='2 3' python3", "x.py", detected{}},
		{"#!/usr/bin/env -S A=1 B='2 3' python3", "x.py", detected{kind: Python, interpreters: pythons, env: map[string]string{"A": "1", "B": "2 3"}}},
		{"#!/usr/bin/env -S uv run --script", "x", detected{kind: Python, interpreters: pythons}},
		{"#!/usr/bin/env -S uv run --quiet --with rich,requests>2 --with=x --python 3.12 --script", "x", detected{kind: Python, interpreters: []string{"python3.12"}, with: []string{"rich", "requests>2", "x"}}},
		{"#!/usr/bin/env -S pipx run", "x", detected{kind: Python, interpreters: pythons}},
		{"#!/bin/bash -e", "x.sh", detected{kind: Shell, interpreters: []string{"bash"}, exact: "/bin/bash", args: []string{"-e"}}},
		{"#!/bin/bash -e -u", "x.sh", detected{kind: Shell, interpreters: []string{"bash"}, exact: "/bin/bash", args: []string{"-e -u"}}}, // one argument, as on Linux
		{"#!/bin/sh", "x.py", detected{kind: Shell, interpreters: []string{"sh"}, exact: "/bin/sh"}},
		{"#!/usr/bin/env node", "x.js", detected{kind: Node, interpreters: []string{"node"}}},
		{"#!/usr/bin/env node", "x.ts", detected{kind: TypeScript, interpreters: []string{"node"}}},
		{"#!/usr/bin/env -S npx tsx", "x.ts", detected{kind: TypeScript, interpreters: ts}},
		{"#!/usr/bin/env -S deno run -A", "x.ts", detected{kind: TypeScript, interpreters: []string{"deno"}, args: []string{"run", "-A"}}},
		{"#!/usr/bin/env pwsh", "x", detected{kind: PowerShell, interpreters: []string{"pwsh"}}},
		{"#!/usr/bin/env lua", "x.lua", detected{kind: Other, interpreters: []string{"lua"}}},
		{"#!/usr/bin/env -S Rscript --vanilla -e", "x.R", detected{kind: Other, interpreters: []string{"Rscript"}, args: []string{"--vanilla", "-e"}}},
		{"#!/usr/bin/env A=b julia", "x.py", detected{kind: Other, interpreters: []string{"julia"}, env: map[string]string{"A": "b"}}},
		{"#!/usr/bin/awk -f", "x.awk", detected{kind: Other, interpreters: []string{"awk"}, exact: "/usr/bin/awk", args: []string{"-f"}}},
		{"#!/usr/bin/make -s -f", "x", detected{kind: Other, interpreters: []string{"make"}, exact: "/usr/bin/make", args: []string{"-s -f"}}},
		{"#!/usr/bin/env g++-13.2_x", "x", detected{kind: Other, interpreters: []string{"g++-13.2_x"}}},
		{"#!/usr/bin/perl -w", "x", detected{kind: Perl, interpreters: []string{"perl"}, exact: "/usr/bin/perl", args: []string{"-w"}}},
	} {
		how, err := detectInterpreter(tt.p, []byte(tt.line+"\nrest"), 0o755)
		if tt.want.kind == "" {
			if err == nil {
				t.Errorf("%q: no error", tt.line)
			}
			continue
		}
		how.args = slices.Clip(how.args)
		if len(how.args) == 0 {
			how.args = nil
		}
		if diff := cmp.Diff(tt.want, how, cmp.AllowUnexported(detected{})); err != nil || diff != "" {
			t.Errorf("%q: %v\n%s", tt.line, err, diff)
		}
	}
}

func TestShebangRefused(t *testing.T) {
	for line, want := range map[string]string{
		"#!./run.py":                              "path is not absolute",
		"#!bin/python3":                           "path is not absolute",
		"#!python3":                               "path is not absolute",
		"#!/usr/bin/env ./bin/python3":            "path is relative",
		"#!/usr/bin/env bin/sh":                   "path is relative",
		"#!/skill/bin/interp":                     "inside the skill",
		"#!/bin/..//skill/interp":                 "contains ..",
		"#!/usr/bin/../../home/u/awk -f":          "contains ..",
		"#!/usr/bin/..":                           "contains ..",
		"#!/usr/bin/env ..":                       "contains ..",
		"#!/":                                     "invalid interpreter name",
		"#!/usr/bin/env -S 'a b'":                 "invalid interpreter name",
		"#!/usr/bin/env a;b":                      "invalid interpreter name",
		"#!/usr/bin/env -S '*'":                   "invalid interpreter name",
		"#!/usr/bin/$SHELL":                       "invalid interpreter name",
		"#!/usr/bin/lüa":                          "invalid interpreter name",
		"#!/usr/bin/env .hidden":                  "invalid interpreter name",
		"#!/usr/bin/env env python3":              "missing interpreter after env",
		"#!/usr/bin/sudo sh":                      "as another user",
		"#!/usr/bin/env SU -c":                    "as another user",
		"#!/usr/bin/env -S doas sh":               "as another user",
		"#!/usr/bin/env uvx cowsay":               "download a program",
		"#!":                                      "missing interpreter",
		"#! \r":                                   "missing interpreter",
		"#!/usr/bin/env":                          "missing interpreter",
		"#!/usr/bin/env -S A=1":                   "missing interpreter",
		"#!/usr/bin/env -u X python3":             "option -u of env",
		"#!/usr/bin/env -S python3 'a":            "missing closing quote",
		"#!/usr/bin/env -S uv tool run x":         "only `uv run`",
		"#!/usr/bin/env -S uv run --index x":      "option --index of uv",
		"#!/usr/bin/env -S LD_PRELOAD=/x python3": "cannot set environment variable LD_PRELOAD",
		"#!/usr/bin/env GODEBUG=x sh":             "cannot set environment variable GODEBUG",
		"#!/usr/bin/env npx cowsay":               "download a program",
		"#!/bin/sh\x00x":                          "control characters",
		"#!/bin/sh " + strings.Repeat("x", 300):   "too long",
	} {
		_, err := detectInterpreter("x.py", []byte(line+"\n"), 0)
		se, ok := err.(*ShebangError)
		if !ok || !strings.Contains(se.Reason, want) {
			t.Errorf("%q: %v; want %q", line, err, want)
		}
	}
}

func FuzzShebang(f *testing.F) {
	for _, s := range []string{"#!/bin/sh\n", "\ufeff#!/usr/bin/env -S uv run --script\r\n", "#!/usr/bin/env A=b python3 -u", "#! x", "#!/usr/bin/env -S 'a\\", "#!/a\xff"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		sb, ok, err := parseShebang(src)
		if !ok || err != nil {
			if !ok && strings.HasPrefix(string(src), "#!/") {
				t.Fatal("a shebang is passed over")
			}
			return
		}
		if sb.interpreter == "" || !path.IsAbs(sb.interpreter) && strings.Contains(sb.interpreter, "/") {
			t.Fatalf("interpreter %q", sb.interpreter)
		}
		// What follows the line, and how it ends, does not matter.
		first, _, _ := strings.Cut(string(src), "\n")
		if len(first) < maxShebang-2 {
			again, _, err := parseShebang([]byte(first + "\r\nmore\x00"))
			if diff := cmp.Diff(sb, again, cmp.AllowUnexported(shebang{})); err != nil || diff != "" {
				t.Fatal(err, diff)
			}
		}
		if how, err := sb.detect("x.ts"); err == nil && (how.kind == "" || len(how.interpreters) == 0) {
			t.Fatalf("%q: %+v", first, how)
		}
	})
}
