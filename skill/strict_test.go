package skill_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/skillpath"
	"github.com/loadout-dev/loadout/skill"
)

// rules are the words of the reference validator for each of its rules.
var rules = [...]string{
	3: "Missing required file: SKILL.md", 4: "SKILL.md must start with YAML frontmatter (---)",
	5: "SKILL.md frontmatter not properly closed with ---", 6: "Invalid YAML in frontmatter:",
	7: "SKILL.md frontmatter must be a YAML mapping", 8: "Unexpected fields in frontmatter: ",
	9: "Missing required field in frontmatter: name", 10: "Field 'name' must be a non-empty string",
	11: "Skill name '", 12: "Skill name '", 13: "Skill name cannot start or end with a hyphen",
	14: "Skill name cannot contain consecutive hyphens", 15: "Skill name '", 16: "Directory name '",
	17: "Missing required field in frontmatter: description", 18: "Field 'description' must be a non-empty string",
	19: "Description exceeds 1024 character limit", 20: "Field 'compatibility' must be a string",
	21: "Compatibility exceeds 500 character limit",
}

func long(n int) string { return strings.Repeat("x", n) }

func TestStrictVerdictFollowsReferenceRules(t *testing.T) {
	for _, tt := range []struct {
		name, src, folder string
		want              []int
	}{
		{"valid", doc(ok), "pdf", nil},
		{"3: other spelling", doc(ok), "SKILL.MD", []int{3}},
		{"4: no fence", "# PDF\n", "pdf", []int{4}},
		{"4: empty file", "", "pdf", []int{4}},
		{"4: UTF-16 without a mark", "-\x00-\x00-\x00\n\x00", "pdf", []int{4}},
		{"5: not closed", "---\n" + ok, "pdf", []int{5}},
		{"5: not closed, first line with more on it", "---- \nname: pdf\n", "pdf", []int{5}},
		{"6: no YAML", doc("name: pdf\ndescription: a: b\n"), "pdf", []int{6}},
		{"7: text", doc("name\n"), "pdf", []int{7}},
		{"7: list", doc("- name\n"), "pdf", []int{7}},
		{"7: nothing", doc(""), "pdf", []int{7}},
		{"7: comment", doc("# name: pdf\n"), "pdf", []int{7}},
		{"7: comment with a tab", doc("# name:\tpdf\n"), "pdf", []int{7}},
		{"8: other fields", doc(ok + "zz: 1\nversion: 1\n"), "pdf", []int{8}},
		{"9: no name", doc("description: d\n"), "pdf", []int{9}},
		{"10: empty name", doc("name:\ndescription: d\n"), "pdf", []int{10}},
		{"10: blank name", doc("name: ' '\ndescription: d\n"), "pdf", []int{10}},
		{"10: list", doc("name:\n  - pdf\ndescription: d\n"), "pdf", []int{10}},
		{"10: map", doc("name:\n  a: b\ndescription: d\n"), "pdf", []int{10}},
		{"10: YAML's default value", doc("name: =\ndescription: d\n"), "pdf", []int{10}},
		{"11: 65 characters", doc("name: " + long(65) + "\ndescription: d\n"), long(65), []int{11}},
		{"11: 64 characters", doc("name: " + long(64) + "\ndescription: d\n"), long(64), nil},
		{"11: 65 after NFKC of 33 ligatures", doc("name: " + strings.Repeat("ﬁ", 33) + "\ndescription: d\n"), strings.Repeat("ﬁ", 33), []int{11}},
		{"11: 64 characters that are decomposed", doc("name: " + strings.Repeat("e\u0301", 64) + "\ndescription: d\n"), strings.Repeat("é", 64), nil},
		{"12: upper case", doc("name: PDF\ndescription: d\n"), "PDF", []int{12}},
		{"12: upper case beyond ASCII", doc("name: Навык\ndescription: d\n"), "Навык", []int{12}},
		{"13: hyphen first", doc("name: -pdf\ndescription: d\n"), "-pdf", []int{13}},
		{"13: hyphen last", doc("name: pdf-\ndescription: d\n"), "pdf-", []int{13}},
		{"14: doubled hyphen", doc("name: pdf--a\ndescription: d\n"), "pdf--a", []int{14}},
		{"15: underscore", doc("name: pdf_a\ndescription: d\n"), "pdf_a", []int{15}},
		{"15: zero width space", doc("name: \"pdf\\u200B\"\ndescription: d\n"), "pdf\u200b", []int{15}},
		{"12 to 15: all at once", doc("name: -A--_\ndescription: d\n"), "-A--_", []int{12, 13, 14, 15}},
		{"16: other directory", doc(ok), "pdf2", []int{16}},
		{"16: blanks of the directory count", doc(ok), "pdf ", []int{16}},
		{"16: a name that cannot be used", doc("name: a/b\ndescription: d\n"), "b", []int{15, 16}},
		{"16: composed and decomposed are alike", doc("name: cafe\u0301\ndescription: d\n"), "café", nil},
		{"17: no description", doc("name: pdf\n"), "pdf", []int{17}},
		{"18: empty", doc("name: pdf\ndescription:\n"), "pdf", []int{18}},
		{"18: list", doc("name: pdf\ndescription:\n  - a\n"), "pdf", []int{18}},
		{"18: map", doc("name: pdf\ndescription:\n  a: b\n"), "pdf", []int{18}},
		{"18: YAML's default value", doc("name: pdf\ndescription: =\n"), "pdf", []int{18}},
		{"19: 1025 characters", doc("name: pdf\ndescription: " + strings.Repeat("é", 1025) + "\n"), "pdf", []int{19}},
		{"19: 1024 characters", doc("name: pdf\ndescription: " + strings.Repeat("é", 1024) + "\n"), "pdf", nil},
		{"19: blanks count", doc("name: pdf\ndescription: '" + long(1024) + " '\n"), "pdf", []int{19}},
		{"20: list", doc(ok + "compatibility:\n  - a\n"), "pdf", []int{20}},
		{"21: 501 characters", doc(ok + "compatibility: " + strings.Repeat("é", 501) + "\n"), "pdf", []int{21}},
		{"21: 500 characters", doc(ok + "compatibility: " + strings.Repeat("é", 500) + "\n"), "pdf", nil},

		{"quirk a: a value cut at ---", doc("name: pdf\ndescription: ''\nlicense: --- \n"), "pdf", []int{18}},
		{"quirk a: fields after --- are not seen", doc(ok + "license: a---b\nversion: 1\n"), "pdf", nil},
		{"quirk a: --- closes in the middle of a line", "---\nname: pdf\ndescription: d ---\n# PDF\n", "pdf", nil},
		{"quirk a: more on the first line", "--- # skill\n" + ok + "---\n", "pdf", nil},
		{"quirk b: byte order mark", "\ufeff" + doc(ok), "pdf", []int{4}},
		{"quirk b: blank line", "\n" + doc(ok), "pdf", []int{4}},
		{"quirk b: byte order mark after the fence", "---\n\ufeff" + ok + "---\n# PDF\n", "pdf", []int{8, 9}},
		{"quirk c: every scalar is text", doc("name: 123\ndescription: 1.10\ncompatibility: true\nlicense: 2024-01-01\n"), "123", nil},
		{"quirk c: also null", doc("name: 'null'\ndescription: ~\ncompatibility: null\n"), "null", nil},
		{"quirk c: flow map", doc(ok + "metadata: {}\n"), "pdf", []int{6}},
		{"quirk c: flow list", doc(ok + "allowed-tools: [Read]\n"), "pdf", []int{6}},
		{"quirk c: anchor", doc("name: &n pdf\ndescription: d\n"), "pdf", []int{6}},
		{"quirk c: alias", doc("name: &n pdf\ndescription: *n\n"), "pdf", []int{6}},
		{"quirk c: tag", doc("name: !!str pdf\ndescription: d\n"), "pdf", []int{6}},
		{"quirk c: tag without a name", doc("name: ! pdf\ndescription: d\n"), "pdf", []int{6}},
		{"quirk c: duplicate keys", doc(ok + "license: a\nlicense: a\n"), "pdf", []int{6}},
		{"quirk c: duplicate keys deep inside", doc(ok + "metadata:\n  a:\n    b: 1\n    b: 2\n"), "pdf", []int{6}},
		{"quirk c: a key that is a map", doc(ok + "? a: b\n: c\n"), "pdf", []int{6}},
		{"quirk c: merge key", doc(ok + "metadata:\n  <<: a\n"), "pdf", []int{6}},
		{"quirk c: indentation of sibling maps", doc(ok + "metadata:\n  a:\n    x: y\n  b:\n      x: y\n"), "pdf", []int{6}},
		{"quirk c: dots before the fields", doc("...\n" + ok), "pdf", []int{6}},
		{"quirk c: tab after the colon", doc("name: pdf\ndescription:\td\n"), "pdf", []int{6}},
		{"quirk c: tab on the first line", "---\t\n" + ok + "---\n# PDF\n", "pdf", []int{6}},
		{"quirk c: tab in quotes", doc("name: pdf\ndescription: 'a\tb'\n"), "pdf", nil},
		{"quirk c: tab in a block scalar", doc("name: pdf\ndescription: |\n  a\tb\n"), "pdf", nil},
		{"quirk c: tab in a comment", doc(ok + "# a\tb\n"), "pdf", nil},
		{"quirk c: a long key", doc(ok + "metadata:\n  " + long(1030) + ": x\n"), "pdf", []int{6}},
		{"quirk c: DEL", doc("name: pdf\ndescription: a\x7fb\n"), "pdf", []int{6}},
		{"quirk d: empty compatibility", doc(ok + "compatibility:\n"), "pdf", nil},
		{"quirk e: types of the other fields", doc(ok + "license:\n  - a\nmetadata:\n  - b\nallowed-tools:\n  - c\n"), "pdf", nil},
		{"quirk f: not UTF-8", doc(ok) + "\xff\n", "pdf", []int{6}},
		{"quirk g: skill.md", doc(ok), "skill.md", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file, folder := skill.FileName, tt.folder
			if skillpath.IsSkillFile(folder) {
				file, folder = folder, "pdf"
			}
			_, ds := skill.ParseBytes([]byte(tt.src), file, folder)
			var got []int
			for _, d := range ds {
				if d.Rule == 0 {
					continue
				}
				got = append(got, d.Rule)
				if !strings.HasPrefix(d.Message, rules[d.Rule]) && d.Code != "body-not-utf-8" {
					t.Errorf("message of rule %d is %q, does not begin with %q", d.Rule, d.Message, rules[d.Rule])
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("rules broken (-want +got):\n%s%v", diff, ds)
			}
			if ds.Valid() != (len(tt.want) == 0) {
				t.Errorf("valid is %v", ds.Valid())
			}
		})
	}
}

// Rules 1 and 2 are about the path that is given to a program.
func TestOpenDirReportsRulesOneAndTwoAsErrors(t *testing.T) {
	dir := t.TempDir()
	if _, err := skill.OpenDir(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("rule 1: %v", err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := skill.OpenDir(file); err == nil {
		t.Error("rule 2: a file was opened as a directory")
	}
}

func TestValidSkillsThatDoNotLoadAreDocumented(t *testing.T) {
	for src, code := range map[string]string{
		"---\nname: pdf\ndescription: d ---\n# PDF\n":    "frontmatter-unclosed",
		"--- # skill\n" + ok + "---\n":                   "frontmatter-fence",
		doc("name: pdf\ndescription: null\n"):            "description-empty",
		doc(ok + "license: a---b\n[never, a, mapping\n"): "yaml-invalid",
	} {
		_, ds := skill.ParseBytes([]byte(src), skill.FileName, "pdf")
		if !ds.Valid() || ds.Loads() || ds[0].Code != code && ds[len(ds)-1].Code != code {
			t.Errorf("%q: valid %v, loads %v, %v", src, ds.Valid(), ds.Loads(), ds)
		}
	}
}
