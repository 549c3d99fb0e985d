package script_test

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/script"
	"github.com/loadout-dev/loadout/skill"
)

func skillOf(t testing.TB, files fstest.MapFS) skill.Manifest {
	t.Helper()
	m, _, err := skill.List(files)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

func isExecutable(text string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte(text), Mode: 0o755}
}

var findable = fstest.MapFS{
	"SKILL.md":            file("x"),
	"scripts/x.py":        file(""),
	"scripts/deep/run.sh": file(""),
	"scripts/twice.py":    file(""),
	"other/twice.py":      file(""),
	"scripts/tool":        isExecutable("#!/bin/sh\n"),
	"scripts/archived":    file("#!/usr/bin/env python3\n"),
	"scripts/elf.bin":     file("\x7fELF\x02"),
	"scripts/data.csv":    file("a,b"),
	"scripts/main.rs":     isExecutable("#![allow(dead_code)]\n"),
	"scripts/with b.py":   file(""),
	"notes.txt":           file("#!/bin/sh\n"),
	"README.md":           isExecutable("# all files of this archive are executable\n"),
}

func TestFind(t *testing.T) {
	files := skillOf(t, findable)
	for name, want := range map[string]string{
		"scripts/x.py": "scripts/x.py", "./scripts/x.py": "scripts/x.py", `scripts\x.py`: "scripts/x.py", `.\scripts\x.py`: "scripts/x.py",
		"/skill/scripts/x.py": "scripts/x.py", "/skill//scripts/x.py": "scripts/x.py", "${CLAUDE_SKILL_DIR}/scripts/x.py": "scripts/x.py", "{baseDir}/scripts/x.py": "scripts/x.py",
		"x.py": "scripts/x.py", "run.sh": "scripts/deep/run.sh", " `scripts/x.py` ": "scripts/x.py", `"scripts/with b.py"`: "scripts/with b.py",
		"scripts//x.py": "scripts/x.py", "scripts/../scripts/x.py": "scripts/x.py", "scripts/deep/../x.py": "scripts/x.py",
		"tool": "scripts/tool", "archived": "scripts/archived", "scripts/elf.bin": "scripts/elf.bin", "other/twice.py": "other/twice.py",
	} {
		if got, err := script.Find(findable, files, name); err != nil || got != want {
			t.Errorf("Find(%q) = %q, %v; want %q", name, got, err, want)
		}
	}
}

func TestFindRefuses(t *testing.T) {
	files := skillOf(t, findable)
	scripts := []string{"other/twice.py", "scripts/archived", "scripts/deep/run.sh", "scripts/elf.bin", "scripts/tool", "scripts/twice.py", "scripts/with b.py", "scripts/x.py"}
	if diff := cmp.Diff(scripts, script.Scripts(findable, files)); diff != "" {
		t.Fatal(diff)
	}
	for _, name := range []string{"../x.py", "scripts/../../x.py", "/etc/passwd", `C:\x.py`, "c:/x.py", "", ".", "/skill/", "/skill/../x.py", "a\x00b", "/skills/x.py", "\xff.py", `..\x.py`, "//skill/x.py"} {
		_, err := script.Find(findable, files, name)
		if oe, ok := errors.AsType[*script.OutsideError](err); !ok || oe.Name != name {
			t.Errorf("Find(%q): %v", name, err)
		}
	}
	for name, want := range map[string]string{"scripts/data.csv": "scripts/data.csv", "data.csv": "scripts/data.csv", "SKILL.md": "SKILL.md", "README.md": "README.md", "notes.txt": "notes.txt", "main.rs": "scripts/main.rs"} {
		_, err := script.Find(findable, files, name)
		if ns, ok := errors.AsType[*script.NotScriptError](err); !ok || ns.Path != want || !slices.Equal(ns.Scripts, scripts) {
			t.Errorf("Find(%q): %v", name, err)
		} else if !strings.Contains(err.Error(), "scripts/x.py") {
			t.Errorf("%v does not say which scripts there are", err)
		}
	}
	for name, near := range map[string][]string{
		"twice.py":           {"other/twice.py", "scripts/twice.py"},
		"bin/x.py":           {"scripts/x.py"},
		"X.PY":               {"scripts/x.py"},
		"scripts/twise.py":   {"other/twice.py", "scripts/twice.py"},
		"scripts/archive.py": {"scripts/archived"},
		"zzz.py":             nil,
		"scripts":            nil,
	} {
		_, err := script.Find(findable, files, name)
		nf, ok := errors.AsType[*script.NotFoundError](err)
		if !ok || !slices.Equal(nf.Near, near) || nf.Name != name {
			t.Errorf("Find(%q): %v", name, err)
		}
	}
	empty := fstest.MapFS{"SKILL.md": file("x")}
	_, err := script.Find(empty, skillOf(t, empty), "x.py")
	if err == nil || !strings.Contains(err.Error(), "the skill has no scripts") {
		t.Error(err)
	}
}

func FuzzFind(f *testing.F) {
	for _, s := range []string{"scripts/x.py", "../x", `\\host\x`, "/skill/../../x.py", "C:x", "x.py", "'x.py'"} {
		f.Add(s)
	}
	files := skillOf(f, findable)
	f.Fuzz(func(t *testing.T, name string) {
		p, err := script.Find(findable, files, name)
		if err != nil {
			if p != "" {
				t.Fatal("a path with an error")
			}
			return
		}
		if !fs.ValidPath(p) || !slices.Contains(script.Scripts(findable, files), p) {
			t.Fatalf("Find(%q) = %q", name, p)
		}
		if again, err := script.Find(findable, files, p); err != nil || again != p {
			t.Fatalf("%q is found as %q, %v", p, again, err)
		}
	})
}
