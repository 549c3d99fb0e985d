package skill

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"
)

var fastSeeds = []string{
	"name: a\ndescription: does things\n",
	"name: a\ndescription: >-\n  folded text\n  over lines\nlicense: MIT\n",
	"description: |\n    kept\n    lines\n",
	"metadata:\n  version: \"1.0\"\n  author: team-1\nname: x\n",
	"name: 'single'\ndescription: \"double\"\n",
	"name: yes\n", "name: a\n  b: c\n", "a: b\n\nc: d\n", "a: b # c\n", "a: |\n  x\n\nb: c\n",
	"a:\n", "a: null\n", "key: x", "a: >\n  b\n  c\n", "a: b\r\nc: d\r\n", "a: b  \n", "a:  b\n", "a: >-\n b\n  c\n",
	"metadata:\n  a: |\n", "a: |\n  x\n y: z\n", "a: b\n# c\n", "a: x:y\n", "a: - b\n", "A-1_b: c\n", "a: \"\"\n", "a: b\nb: \n", "a: ~\n",
	"name: 文档\ndescription: Liest — und “schreibt” PDF.\n", "a: 'é'\nb: |\n  é\n", "a: x\u2028y\n", "a: \u0085\n", "a: é: b\n", "a: \ufeffb\n", "a: é\u00a0\n", "a: x\xff\n",
}

// The fast reader must give the same results as the YAML parser, or none.
func FuzzFastTree(f *testing.F) {
	for _, s := range fastSeeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, block string) {
		if len(block) > 4096 {
			t.Skip("longer than any simple frontmatter")
		}
		got := fastTree([]byte(block))
		if got == nil {
			return
		}
		want, err := parseYAML([]byte(block))
		if err != nil {
			t.Fatalf("fast reader accepts what YAML does not: %v\n%q", err, block)
		}
		if diff := cmp.Diff(strip(want), strip(got)); diff != "" {
			t.Fatalf("fast reader differs (-yaml +fast) for %q:\n%s", block, diff)
		}
	})
}

type flat struct {
	Kind         yaml.Kind
	Style        yaml.Style
	Tag, Value   string
	Line, Column int
	Content      []flat
}

func strip(n *yaml.Node) flat {
	f := flat{n.Kind, n.Style, n.Tag, n.Value, n.Line, n.Column, nil}
	for _, c := range n.Content {
		f.Content = append(f.Content, strip(c))
	}
	return f
}

func TestFastTreeReadsCommonShapes(t *testing.T) {
	for _, s := range append(fastSeeds[:5:5], "name: 文档\ndescription: Liest — und “schreibt” PDF.\n") {
		if fastTree([]byte(s)) == nil {
			t.Errorf("not read fast: %q", s)
		}
	}
}
