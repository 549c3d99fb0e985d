package pythonskill_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/pythonskill"
	"github.com/loadout-dev/loadout/skill"
)

func TestReadDraft(t *testing.T) {
	chrome := &skill.Draft{Name: "chrome-devtools", Description: "Drive a browser.", Version: "1.10", Category: "automation",
		Tools: []skill.Tool{{Name: "take_screenshot", Description: "name="}, {Name: "navigate_page", Description: "Go."}}}
	plain := *chrome
	plain.Tools = []skill.Tool{{Name: "take_screenshot"}, {Name: "navigate_page"}}
	named := func(description string) *skill.Draft { return &skill.Draft{Name: "x", Description: description} }
	tests := map[string]struct {
		src  string
		want *skill.Draft
	}{
		"call": {`"""SKILL_MANIFEST = SkillManifest(name="wrong")"""
import os
SKILL_MANIFEST = SkillManifest(
    name="chrome_devtools",  # a comment with a " and a )
    description="Drive a browser.",
    version="1.10", category='automation',
    tools=[
        SkillTool(name="take_screenshot", description="name=", parameters={"name": "inner"}),
        SkillTool(description="Go.", name="navigate_page"),
    ],
)
`, chrome},
		"dict": {`SKILL_MANIFEST: Dict[str, "a=b"] = {
    "name": "chrome_devtools",
    "description": "Drive a browser.",
    'version': 1.10, "category": "automation",
    "tools": [{"name": "take_screenshot"}, "navigate_page", 7, {"title": "no name"}],
}
`, &plain},
		"joined texts":           {"SKILL_MANIFEST = dict(name='x', description=('one '\n  # why\n  \"two\" ' three'))", named("one two three")},
		"texts in parentheses":   {"SKILL_MANIFEST = (dict(name=('x'), description=((('a')))))", named("a")},
		"long text":              {"SKILL_MANIFEST = {'name': 'x', 'description': '''\n  one\n\n  \"two\"\n'''}", named(`one "two"`)},
		"escapes":                {`SKILL_MANIFEST = {'name': 'x', 'description': 'a\x41\u00e9\U0001F600\101\'\q\` + "\n" + `z'}`, named(`aAé😀A'\qz`)},
		"list of one":            {"SKILL_MANIFEST = {'name': 'x', 'description': 'a', 'tools': ['z9_Z']}", &skill.Draft{Name: "x", Description: "a", Tools: []skill.Tool{{Name: "z9_Z"}}}},
		"tuple of one":           {"SKILL_MANIFEST = {'name': 'x', 'description': 'a', 'tools': ('t',)}", &skill.Draft{Name: "x", Description: "a", Tools: []skill.Tool{{Name: "t"}}}},
		"tuple":                  {"SKILL_MANIFEST = {'name': 'x', 'description': 'a', 'tools': ('t', 'u')}", &skill.Draft{Name: "x", Description: "a", Tools: []skill.Tool{{Name: "t"}, {Name: "u"}}}},
		"text as list":           {"SKILL_MANIFEST = {'name': 'x', 'description': 'a', 'tools': ('t')}", named("a")},
		"positional argument":    {"SKILL_MANIFEST = Manifest(base(name='y'), name='x', description='a')", named("a")},
		"positional comparison":  {"SKILL_MANIFEST = Manifest(name == 'y', name='x', description='a')", named("a")},
		"escaped raw quote":      {`SKILL_MANIFEST = {'name': 'x', 'description': r'\x41\'b\101'}`, named(`\x41\'b\101`)},
		"version is zero":        {"SKILL_MANIFEST = {'name': 'x', 'description': 'a', 'version': 0.9}", &skill.Draft{Name: "x", Description: "a", Version: "0.9"}},
		"comment at the end":     {"SKILL_MANIFEST = {'name': 'x', 'description': 'a'} # end", named("a")},
		"raw text":               {`SKILL_MANIFEST = {'name': 'x', 'description': r'a\n\'b'}`, named(`a\n\'b`)},
		"carriage returns":       {"import os\r\nSKILL_MANIFEST = \\\r\n  {\r\n 'name': 'x', \r\n'description': 'a'}\r\n", named("a")},
		"last of two keys":       {"SKILL_MANIFEST = {'name': 'y', 'name': 'x', 'description': 'a'}", named("a")},
		"not the first":          {"SKILL_MANIFEST = None\nSKILL_MANIFEST = {'name': 'x', 'description': 'a'}", named("a")},
		"not the declaration":    {"SKILL_MANIFEST_VERSION = {'name': 'y'}\nif SKILL_MANIFEST == {'name': 'z'}: pass\nSKILL_MANIFEST == {'name': 'z'}\nSKILL_MANIFEST = {'name': 'x', 'description': 'a'}", named("a")},
		"not in a function":      {"def f():\n    SKILL_MANIFEST = {'name': 'y'}\nSKILL_MANIFEST = {'name': 'x', 'description': 'a'}", named("a")},
		"text with brackets":     {"a = ')(][}{'\nSKILL_MANIFEST = {'name': 'x', 'description': 'a) b'}", named("a) b")},
		"f-string":               {"SKILL_MANIFEST = {'name': 'x', 'description': f'{secret}'}", named("")},
		"bytes":                  {"SKILL_MANIFEST = {'name': 'x', 'description': b'a'}", named("")},
		"sum":                    {"SKILL_MANIFEST = {'name': 'x', 'description': 'a' + secret()}", named("")},
		"sum, turned":            {"SKILL_MANIFEST = {'name': 'x', 'description': secret + 'a'}", named("")},
		"method":                 {"SKILL_MANIFEST = {'name': 'x', 'description': 'a'.upper()}", named("")},
		"condition":              {"SKILL_MANIFEST = {'name': 'x', 'description': 'a' if b else 'c'}", named("")},
		"function":               {"SKILL_MANIFEST = {'name': 'x', 'description': open('/etc/passwd').read()}", named("")},
		"call as a text":         {"SKILL_MANIFEST = {'name': 'x', 'description': dedent('a')}", named("")},
		"lambda":                 {"SKILL_MANIFEST = {'name': 'x', 'f': lambda name: {'name': 'y'}, 'description': 'a'}", named("a")},
		"unpacked":               {"SKILL_MANIFEST = {**base, 'name': 'x', **{'name': 'y'}, 'description': 'a'}", named("a")},
		"positional":             {"SKILL_MANIFEST = Manifest('y', *rest, name='x', description='a', **more)", named("a")},
		"dotted call":            {"SKILL_MANIFEST = skills.Manifest (name='x', description='a')", named("a")},
		"comparison, no keyword": {"SKILL_MANIFEST = Manifest(name == 'y', name='x', description='a')", named("a")},
		"nested texts":           {"SKILL_MANIFEST = {'name': 'x', 'description': " + strings.Repeat("(", 49) + "'a'" + strings.Repeat(")", 49) + "}", named("a")},
		"too deeply nested":      {"SKILL_MANIFEST = {'name': 'x', 'description': " + strings.Repeat("(", 50) + "'a'" + strings.Repeat(")", 50) + "}", named("")},
		"not closed":             {"SKILL_MANIFEST = {'name': 'x', 'description': 'a'", named("a")},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := pythonskill.ReadDraft([]byte(tt.src))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("draft (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadDraftWithoutFields(t *testing.T) {
	tests := map[string]struct {
		src    string
		absent bool // no declaration
	}{
		"nothing":             {"", true},
		"import":              {"from x import SKILL_MANIFEST, y\n", true},
		"in a text":           {"'''\nSKILL_MANIFEST = {'name': 'x'}\n'''", true},
		"in a comment":        {"# SKILL_MANIFEST = {'name': 'x'}", true},
		"in brackets":         {"f(\nSKILL_MANIFEST = {'name': 'x'})", true},
		"type only":           {"SKILL_MANIFEST: Manifest\n", true},
		"no name":             {"SKILL_MANIFEST = {'description': 'x'}", false},
		"name of another":     {"SKILL_MANIFEST = load\nother(name='x')", false},
		"computed":            {"SKILL_MANIFEST = build(name='x') | y", false},
		"name not a literal":  {"SKILL_MANIFEST = {'name': f'x'}", false},
		"no value":            {"SKILL_MANIFEST =", false},
		"field without value": {"SKILL_MANIFEST = {'name':", false},
		"name not closed":     {"SKILL_MANIFEST = {'name': 'x\n}", false},
		"bomb of brackets":    {"SKILL_MANIFEST = " + strings.Repeat("(", 100_000), false},
		"bomb of dicts":       {"SKILL_MANIFEST = " + strings.Repeat("{'a':", 100_000), false},
		"bomb of calls":       {"SKILL_MANIFEST = " + strings.Repeat("a(b=", 100_000), false},
		"many declarations":   {strings.Repeat("SKILL_MANIFEST = (\n", 50_000), false},
		"text of a bare name": {"SKILL_MANIFEST = 'x'", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			d, err := pythonskill.ReadDraft([]byte(tt.src))
			if err == nil {
				t.Fatalf("draft %+v, want an error", d)
			}
			if got := errors.Is(err, pythonskill.ErrNoManifest); got != tt.absent {
				t.Errorf("error %q, want ErrNoManifest %v", err, tt.absent)
			}
		})
	}
	if _, err := pythonskill.ReadDraft(make([]byte, 1<<20+1)); err == nil {
		t.Error("a file of more than 1 MiB is read")
	}
}

// FuzzReadDraft checks that an untrusted file yields no draft, or one whose SKILL.md is
// valid and contains only the draft.
func FuzzReadDraft(f *testing.F) {
	for _, src := range []string{
		"SKILL_MANIFEST = SkillManifest(name='a_b', description=\"c\", version=1.0, tools=[Tool(name='t')])",
		"'''x'''\nSKILL_MANIFEST: T = {\"name\": r'x', 'description': 'a\\x00\\ufeff\\uffff\\n---\\nname: y', 'category': '# {', 'tools': ['`\\n## New']}",
		"SKILL_MANIFEST = (dict(name=('x' 'y'), description=f'a'))",
		"SKILL_MANIFEST = {'name': 'null', 'description': 'no', 'version': 'true', 'category': '\\ud800: - &a *b !c | > @ % '}",
	} {
		f.Add([]byte(src))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		d, err := pythonskill.ReadDraft(src)
		if err != nil {
			return
		}
		if utf8.RuneCountInString(d.Description) > 1024 {
			return // reported to the user
		}
		text := d.Render()
		if s, ds, _ := skill.ParseHead(text, true, skill.FileName, d.Name); s == nil || !ds.Valid() || s.Name != d.Name {
			t.Errorf("%q is not valid: %v", text, ds)
		}
	})
}
