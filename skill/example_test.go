package skill_test

import (
	"bytes"
	"fmt"
	"testing/fstest"

	"github.com/loadout-dev/loadout/skill"
)

func ExampleParse() {
	fsys := fstest.MapFS{"SKILL.md": {Data: []byte(`---
name: pdf
description: Reads PDF files: text, tables and forms.
---
# PDF

Run scripts/read.py.
`)}}
	s, ds, err := skill.Parse(fsys, "pdf-tools")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s: %s\n", s.Name, s.Description)
	fmt.Printf("loads: %v, valid: %v\n", ds.Loads(), ds.Valid())
	for _, d := range ds {
		fmt.Println(d)
		fmt.Println("  mend:", d.Fix)
	}
	// Output:
	// pdf: Reads PDF files: text, tables and forms.
	// loads: true, valid: false
	// 3:14: warning: Invalid YAML in frontmatter: mapping values are not allowed in this context; read as if the value of description were quoted [yaml-repaired]
	//   mend: put the value of description in quotes
	// 2:7: warning: Directory name 'pdf-tools' must match skill name 'pdf' [name-folder]
	//   mend: rename the folder to pdf, or the skill to pdf-tools
}

func ExampleReadManifest() {
	m, _, err := skill.ReadManifest(fstest.MapFS{
		"SKILL.md":        {Data: []byte("---\nname: pdf\ndescription: Reads PDF files.\n---\n")},
		"scripts/read.py": {Data: []byte("print('read')\n")},
		".git/HEAD":       {Data: []byte("ref: refs/heads/main\n")},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range m {
		fmt.Println(f.Path, f.Size, f.Script)
	}
	fmt.Println(m.Digest())
	// Output:
	// SKILL.md 48 false
	// scripts/read.py 14 true
	// sha256:f5e2f31a50aecabd4ae3ecc2224a40bb42a965590d5c61d6fef85e766e20fde4
}

func ExampleOpenZIP() {
	var archive bytes.Buffer
	files := fstest.MapFS{"SKILL.md": {Data: []byte("---\nname: pdf\ndescription: Reads PDF files.\n---\n# PDF\n")}}
	if _, _, err := skill.WriteZIP(&archive, files, "pdf"); err != nil {
		fmt.Println(err)
		return
	}
	_, err := skill.OpenZIP(bytes.NewReader(archive.Bytes()), int64(archive.Len()), "docx.zip", skill.Limits{})
	fmt.Println(err)

	b, err := skill.OpenZIP(bytes.NewReader(archive.Bytes()), int64(archive.Len()), "pdf.zip", skill.Limits{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close()
	s, _, err := skill.Parse(b, b.Folder)
	fmt.Println(s.Name, err)
	// Output:
	// archive refused: "pdf/": the folder is named "pdf" and the archive "docx"; give them the same name
	// pdf <nil>
}

func ExampleDiagnostic_SuggestEdit() {
	src := []byte("---\nname: Tide Tables\ndescription: Reads tide tables.\n---\nRead the table.\n")
	_, found := skill.ParseBytes(src, "SKILL.md", "")
	for _, d := range found {
		if e := d.SuggestEdit(src, ""); e != nil {
			fmt.Printf("%s: line %d becomes %q\n", d.Code, e.StartLine, e.Text)
		}
	}
	// Output:
	// name-case: line 2 becomes "name: tide-tables\n"
	// name-characters: line 2 becomes "name: tide-tables\n"
}
