package script_test

import (
	"fmt"
	"testing/fstest"

	"github.com/loadout-dev/loadout/internal/script"
	"github.com/loadout-dev/loadout/skill"
)

func ExampleSplit() {
	words, err := script.Split(`--title "Q3 report" --pages 1-3 $HOME;ls`)
	fmt.Printf("%q %v\n", words, err)
	// Output: ["--title" "Q3 report" "--pages" "1-3" "$HOME;ls"] <nil>
}

func ExampleFind() {
	fsys := fstest.MapFS{"SKILL.md": {}, "scripts/fill.py": {}, "scripts/table.csv": {}}
	files, _, _ := skill.List(fsys)
	fmt.Println(script.Find(fsys, files, `.\scripts\fill.py`))
	for _, name := range []string{"table.csv", "fil.py", "../x.py"} {
		_, err := script.Find(fsys, files, name)
		fmt.Println(err)
	}
	// Output:
	// scripts/fill.py <nil>
	// scripts/table.csv is not a script; its scripts are scripts/fill.py
	// script "fil.py" not found in the skill; did you mean scripts/fill.py?
	// "../x.py" is not a path in the skill; use a path relative to its folder, such as scripts/run.py
}

func ExampleResolve() {
	fsys := fstest.MapFS{"scripts/fill.py": {Data: []byte("#!/usr/bin/env -S uv run --script\n# /// script\n# dependencies = [\"pypdf\"]\n# ///\n")}}
	_, err := script.Resolve(fsys, "scripts/fill.py", script.Host{System: []string{"/empty"}})
	fmt.Println(err)
	// Output: python3 is required to run scripts/fill.py but not installed; install it with `apt install python3` (Debian), `brew install python` (macOS) or `uv python install`
}
