package docs_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// translated lists the translated pages, which are for users of the program. References
// of the protocol and of Go packages exist in English only.
var translated = map[string]string{
	"../README.md": "../README.zh.md", "README.md": "zh/README.md", "getting.md": "zh/getting.md", "terminal.md": "zh/terminal.md", "web.md": "zh/web.md",
	"hub.md": "zh/hub.md", "mcp-clients.md": "zh/mcp-clients.md", "servers.md": "zh/servers.md", "sandbox.md": "zh/sandbox.md", "authors.md": "zh/authors.md",
	"scan.md": "zh/scan.md", "trust.md": "zh/trust.md", "migrate.md": "zh/migrate.md", "configuration.md": "zh/configuration.md", "skills-over-mcp.md": "zh/skills-over-mcp.md",
}

// part is the content below one heading that is the same in each language.
type part struct {
	Level  int
	Blocks []string // of code, whole
	Rows   int      // of tables
	Codes  []string // named in the text, each once, in order of the alphabet
}

// A page in Chinese has the headings, the commands and the names of its English one.
// With -update, its code becomes that of the English page.
func TestTranslationsMatch(t *testing.T) {
	for english, chinese := range translated {
		t.Run(filepath.Base(english), func(t *testing.T) {
			if *update {
				copyCode(t, filepath.Join("docs", english), filepath.Join("docs", chinese))
			}
			want, got := partsOf(t, english), partsOf(t, chinese)
			if len(got) != len(want) {
				t.Fatalf("%s has %d headings, %s %d", english, len(want), chinese, len(got))
			}
			for i := range want {
				if diff := cmp.Diff(want[i], got[i]); diff != "" {
					t.Errorf("below heading %d of %s (-) and %s (+):\n%s", i, english, chinese, diff)
				}
			}
		})
	}
}

// copyCode replaces the code blocks of a page that differ from those of its English
// one. It does nothing if the pages have different numbers of blocks.
func copyCode(t *testing.T, english, chinese string) {
	t.Helper()
	from := fences(readPage(t, english))
	for i := range from {
		p := readPage(t, chinese) // again after each replacement, which moves lines
		to := fences(p)
		if len(to) != len(from) {
			return
		}
		if !slices.Equal(to[i].text, from[i].text) {
			p.replace(t, to[i], from[i].text)
		}
	}
}

// fences returns the blocks of a page that are code.
func fences(p *page) []block {
	return slices.DeleteFunc(slices.Clone(p.blocks), func(b block) bool { return strings.HasPrefix(b.info, "<") })
}

func TestPagesAreTranslatedOrListed(t *testing.T) {
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		if translated[page] == "" && page != "mcp.md" && page != "embedding.md" {
			t.Errorf("%s is not translated: add it to docs/zh", page)
		}
	}
	there, err := filepath.Glob("zh/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range there {
		if translated[filepath.Base(page)] == "" {
			t.Errorf("%s is a translation of nothing", page)
		}
	}
}

func partsOf(t *testing.T, path string) []part {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	parts, texts, fence, block, comment := []part{{}}, []string{""}, "", "", false
	for line := range strings.Lines(string(data)) {
		last := &parts[len(parts)-1]
		trimmed := strings.TrimSpace(line)
		switch {
		case fence != "" && trimmed == fence:
			last.Blocks, fence = append(last.Blocks, block), ""
		case fence != "":
			block += line
		case comment || strings.HasPrefix(trimmed, "<!--"):
			comment = !strings.HasSuffix(trimmed, "-->")
		case strings.HasPrefix(trimmed, "```"):
			fence, block = strings.TrimRight(trimmed, "abcdefghijklmnopqrstuvwxyz"), line
		case strings.HasPrefix(line, "#"):
			parts = append(parts, part{Level: len(line) - len(strings.TrimLeft(line, "#"))})
			texts = append(texts, line)
		default:
			if strings.HasPrefix(trimmed, "|") {
				last.Rows++
			}
			texts[len(texts)-1] += line
		}
	}
	for i := range parts {
		parts[i].Codes = codes(texts[i])
	}
	return parts
}

// codes are the spans of code in a text, each once. Lines are folded at any place.
func codes(text string) []string {
	var out []string
	for i, span := range strings.Split(text, "`") {
		if i%2 == 1 {
			out = append(out, strings.Join(strings.Fields(span), " "))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
