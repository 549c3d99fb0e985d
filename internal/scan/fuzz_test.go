package scan_test

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/scan"
)

// Whatever the files hold: two scans say the same, every finding is complete, in
// the file, and shows nothing that a reader would not see.
func FuzzSkill(f *testing.F) {
	for _, p := range pairs {
		for _, s := range append(p.bad, p.benign...) {
			if len(s.text) < 1<<16 {
				f.Add(s.name, []byte(s.text), []byte(s.body))
			}
		}
	}
	f.Add("a.py", []byte(`x = """'''#`+"\n'\\"), []byte("```\n~~~\n`a b c d e"))
	f.Fuzz(func(t *testing.T, name string, text, body []byte) {
		files := fstest.MapFS{"SKILL.md": {Data: append([]byte("---\nname: a\ndescription: b\n---\n"), body...)}, "script.sh": {Data: text}, "script.py": {Data: text}, "script.js": {Data: text}, "other.md": {Data: text}}
		r, err := scan.Skill(context.Background(), files, "a")
		if err != nil {
			t.Fatal(err)
		}
		again, err := scan.Skill(context.Background(), files, "a")
		if err != nil || len(again.Findings) != len(r.Findings) {
			t.Fatalf("two answers for one skill: %d and %d findings, %v", len(r.Findings), len(again.Findings), err)
		}
		for i, g := range r.Findings {
			lines := 1 + strings.Count(string(files[g.File].Data), "\n")
			switch {
			case g != again.Findings[i]:
				t.Errorf("two answers: %+v and %+v", g, again.Findings[i])
			case g.Rule == "" || g.Message == "" || g.Advice == "" || g.Line < 0 || g.Line > lines || g.Line > 0 && g.Column < 1:
				t.Errorf("unfinished, or not in the file of %d lines: %+v", lines, g)
			case unseen(g.Excerpt) || unseen(g.File) || !utf8.ValidString(g.Excerpt):
				t.Errorf("it shows what cannot be seen: %+q in %+q", g.Excerpt, g.File)
			}
		}
	})
}
