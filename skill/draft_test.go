package skill_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/internal/skillname"
	"github.com/loadout-dev/loadout/skill"
)

// checkDraft renders a draft and reads it again.
func checkDraft(t *testing.T, d skill.Draft) {
	t.Helper()
	if !skillname.IsPortable(d.Name) {
		t.Fatalf("name %q is not portable", d.Name)
	}
	if utf8.RuneCountInString(d.Description) > 1024 {
		return // the caller reports it
	}
	text := d.Render()
	s, ds, more := skill.ParseHead(text, true, skill.FileName, d.Name)
	if s == nil || more || !ds.Valid() {
		t.Fatalf("%q is not valid: %v", text, ds)
	}
	if s.Name != d.Name {
		t.Errorf("name %q, want %q", s.Name, d.Name)
	}
	want := printable.OneLine(strings.Map(func(r rune) rune { // what YAML cannot hold is left out
		if r == 0xfeff || r&0xfffe == 0xfffe {
			return -1
		}
		return r
	}, d.Description))
	if s.Description == "" || want != "" && s.Description != want {
		t.Errorf("description %q, want %q", s.Description, want)
	}
	if want := len(d.Tools); strings.Count(s.Instructions, "\n- `") != want {
		t.Errorf("instructions %q, want %d tools", s.Instructions, want)
	}
	if n := strings.Count(s.Instructions, "\n## "); n != 3 && !(n == 4 && len(d.Tools) > 0) {
		t.Errorf("instructions %q have %d sections", s.Instructions, n)
	}
}

func TestDraftRender(t *testing.T) {
	for _, d := range []skill.Draft{
		{Name: "a"},
		{Name: "null"},
		{Name: "1-2"},
		{Name: "123"},
		{Name: "yes", Description: "no"},
		{Name: "x", Description: "- a: b # c"},
		{Name: "x", Description: "a\n---\nname: y\n---\n"},
		{Name: "x", Description: "~", Version: "1.10", Category: "null"},
		{Name: "x", Description: "\"'`${x} {{y}} \\", Version: "a\nb: c", Category: "\x00\x7f\u0085\u2028\ufeff\uffff"},
		{Name: "x", Description: strings.Repeat("ä", 1024)},
		{Name: "x", Tools: []skill.Tool{{Name: "a"}, {Name: "b`\n## Steps\n- `c"}}},
	} {
		t.Run(d.Name, func(t *testing.T) { checkDraft(t, d) })
	}
	// The version stays a text.
	s, _, _ := skill.ParseHead(skill.Draft{Name: "x", Version: "1.10"}.Render(), true, skill.FileName, "x")
	if s.Version != "1.10" {
		t.Errorf("version %q, want 1.10", s.Version)
	}
}

func FuzzDraftRender(f *testing.F) {
	f.Add("x", "what it does", "1.0", "category", "tool")
	f.Add("ABC", "a: b\n---\n", "\x00", "\ufffe", "`")
	f.Fuzz(func(t *testing.T, name, description, version, category, tool string) {
		d := skill.Draft{Name: skillname.Slug(name), Description: description, Version: version, Category: category}
		if printable.OneLine(tool) != "" {
			d.Tools = []skill.Tool{{Name: tool}}
		}
		checkDraft(t, d)
	})
}
