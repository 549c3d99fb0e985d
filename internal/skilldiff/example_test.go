package skilldiff_test

import (
	"context"
	"fmt"
	"testing/fstest"

	"github.com/loadout-dev/loadout/internal/skilldiff"
)

func ExampleCompare() {
	old := fstest.MapFS{
		"SKILL.md": {Data: []byte("---\nname: pdf\ndescription: Reads PDF files.\nversion: 1.0.0\n---\nRun read.py.\n")},
		"read.py":  {Data: []byte("print('read')\n")},
	}
	new := fstest.MapFS{
		"SKILL.md": {Data: []byte("---\nname: pdf\ndescription: Reads PDF files.\nversion: 1.1.0\nsandbox:\n  network: [api.example.com]\n---\nRun read.py.\n")},
		"read.py":  {Data: []byte("import json\nprint('read')\n")},
	}
	d, err := skilldiff.Compare(context.Background(), old, new, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range d.Files {
		fmt.Printf("%s %s +%d -%d\n", f.Change, f.Path, f.Added, f.Removed)
	}
	for _, f := range d.Fields {
		fmt.Printf("%s: %q, was %q\n", f.Name, f.New, f.Old)
	}
	for _, a := range d.Permissions.More {
		fmt.Printf("asks for %s %s\n", a.Kind, a.Name)
	}
	fmt.Print(d.Instructions)
	// Output:
	// changed SKILL.md +3 -1
	// changed read.py +1 -0
	// version: "1.1.0", was "1.0.0"
	// sandbox: "{\"network\":[\"api.example.com\"]}", was ""
	// asks for network api.example.com
	// --- SKILL.md
	// +++ SKILL.md
	// @@ -1,6 +1,8 @@
	//  ---
	//  name: pdf
	//  description: Reads PDF files.
	// -version: 1.0.0
	// +version: 1.1.0
	// +sandbox:
	// +  network: [api.example.com]
	//  ---
	//  Run read.py.
}

func ExampleUnified() {
	fmt.Print(skilldiff.Unified([]byte("one\ntwo\n"), []byte("one\ntwo\x1b[8m\n"), "a.md", "a.md", nil))
	// Output:
	// --- a.md
	// +++ a.md
	// @@ -1,2 +1,2 @@
	//  one
	// -two
	// +two\u{1b}[8m
}
