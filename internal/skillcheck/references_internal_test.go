package skillcheck

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/skill"
)

func TestMissingReferences(t *testing.T) {
	var files skill.Manifest
	for _, p := range []string{"SKILL.md", "references/guide.md", "scripts/check.py", "assets/logo.png", "docs/a b.md"} {
		files = append(files, skill.File{Path: p})
	}
	for text, want := range map[string][]string{
		"See references/missing.md.":                                                                   {"1:5 references/missing.md"},
		"See [the guide](references/guide.md#top) and `scripts/check.py`.":                             nil,
		"See [it](references/gide.md) and [it](references/gide.md)":                                    {"1:10 references/gide.md (references/guide.md)"},
		"a\nb\nRun `python3 scripts/chek.py --all`.":                                                   {"3:14 scripts/chek.py (scripts/check.py)"},
		"Run ${SKILL_DIR}/scripts/run.sh or ./scripts/stop.sh":                                         {"1:18 scripts/run.sh", "1:38 scripts/stop.sh"},
		"```sh\npython scripts/run.py\n```\nreferences/x.md":                                           {"2:8 scripts/run.py", "4:1 references/x.md"},
		"```\nexamples/other.md\n[a](b.md)\n```":                                                       nil, // a block may show another project
		"![logo](assets/logo.png) [file](docs/a%20b.md) [a](SKILL.md)":                                 nil,
		"[site](https://example.com/references/x.md) https://example.com/scripts/a.py":                 nil,
		"[title](url) [t](<name>.md) [u](/abs.md) [v](../other/SKILL.md) [w](mailto:a@b.c) [x](#part)": nil,
		"Save the result as assets/result.png, or write scripts/new.py":                                nil,
		"Names have the form `references/filename.md` or assets/file.png":                              nil,
		"`references/guide.json`":                                                                      {"1:2 references/guide.json (references/guide.md)"},
		"Use names such as references/topic.md.":                                                       nil,
		"other-skill/scripts/tool.py, .claude/scripts/x.sh, ../../references/x.md and {x}/assets/y.md": nil,
		"references/*.md references/<topic>.md references/{a,b}.md references":                         nil,
		"[Guide](REFERENCES/guide.md)":                                                                 {"1:9 REFERENCES/guide.md (references/guide.md)"},
	} {
		var got []string
		for _, d := range findReferences(text, 1, files) {
			name, _, _ := strings.Cut(strings.TrimPrefix(d.Message, "the instructions refer to "), ",")
			one := fmt.Sprintf("%d:%d %s", d.Line, d.Column, name)
			if near, ok := strings.CutPrefix(d.Fix, "did you mean "); ok {
				near, _, _ = strings.Cut(near, "?")
				one += " (" + near + ")"
			}
			got = append(got, one)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: (-want +got)\n%s", text, diff)
		}
	}
	var many strings.Builder
	for i := range 3 * maxReferences {
		fmt.Fprintf(&many, "[a](x%d.md)\n", i)
	}
	if got := findReferences(many.String(), 1, files); len(got) != maxReferences {
		t.Errorf("%d findings", len(got))
	}
}
