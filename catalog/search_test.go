package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/catalog"
)

func search(t *testing.T, c *catalog.Catalog, query string, o catalog.SearchOptions) []string {
	t.Helper()
	hits, err := c.Search(t.Context(), query, o)
	must(t, err)
	out := []string{}
	for i, h := range hits {
		out = append(out, h.Name)
		if i > 0 && h.Score > hits[i-1].Score {
			t.Errorf("%q: hit %d has a better score than the one before it", query, i)
		}
	}
	return out
}

func library(t *testing.T) string {
	describe := func(name, description, more, body string) string {
		return "---\nname: " + name + "\ndescription: " + description + "\n" + more + "---\n" + body
	}
	return tree(t, map[string]string{
		"pdf/SKILL.md":       describe("pdf", "Read, fill in and merge PDF documents.", "", "# PDF\n"),
		"pdf-forms/SKILL.md": describe("pdf-forms", "Fill in forms in PDF documents, pdf pdf pdf.", "", "# Forms\n"),
		"csv/SKILL.md":       describe("csv", "Read tables.", "tags: [spreadsheet, excel]\n", "Use pivot columns.\n"),
		"mine/SKILL.md":      describe("mine", "Deploy the documents of the person.", "disable-model-invocation: true\n", ""),
		"cn/SKILL.md":        describe("数据分析", "分析表格数据。", "", ""),
	})
}

func TestSearch(t *testing.T) {
	c := open(t, dir(library(t)))
	for _, tt := range []struct {
		query string
		o     catalog.SearchOptions
		want  []string
	}{
		{"pdf", catalog.SearchOptions{}, []string{"pdf", "pdf-forms"}}, // the exact name first
		{"PDF forms", catalog.SearchOptions{Limit: 1}, []string{"pdf-forms"}},
		{"excel", catalog.SearchOptions{}, []string{"csv"}},         // by a tag
		{"pivot columns", catalog.SearchOptions{}, []string{"csv"}}, // by the instructions
		{"表格", catalog.SearchOptions{}, []string{"数据分析"}},
		{"deploy", catalog.SearchOptions{}, []string{"mine"}},
		{"deploy", catalog.SearchOptions{ForModel: true}, []string{}},
		{"documents", catalog.SearchOptions{ForModel: true, Limit: 2}, []string{"pdf", "pdf-forms"}},
		{"nothing like it", catalog.SearchOptions{}, []string{}},
		{"", catalog.SearchOptions{}, []string{"csv", "mine", "pdf", "pdf-forms", "数据分析"}},
		{" \n\t", catalog.SearchOptions{Limit: 2}, []string{"csv", "mine"}},
		{"", catalog.SearchOptions{ForModel: true}, []string{"csv", "pdf", "pdf-forms", "数据分析"}},
		{"", catalog.SearchOptions{Limit: -1, ForModel: true}, []string{"csv", "pdf", "pdf-forms", "数据分析"}},
	} {
		got := search(t, c, tt.query, tt.o)
		if tt.query == "documents" {
			slices.Sort(got)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%q %+v (-want +got):\n%s", tt.query, tt.o, diff)
		}
	}
}

// A page is the beginning of a longer page, so that pages can be joined.
func TestSearchPagesAreConsistent(t *testing.T) {
	m := source("m", catalog.User)
	for i := range 60 {
		m.add(fmt.Sprintf("skill%02d", i))
		m.entries[i].Description = "Handles documents " + strings.Repeat("well ", i%7)
		m.entries[i].DisableModelInvocation = i%3 == 0
	}
	c := open(t, m)
	for _, query := range []string{"", "documents", "handles documents well"} {
		for _, forModel := range []bool{false, true} {
			all := search(t, c, query, catalog.SearchOptions{Limit: 1000, ForModel: forModel})
			if want := map[bool]int{false: 60, true: 40}[forModel]; len(all) != want && query != "handles documents well" { // the worst matches are dropped
				t.Errorf("%q, for a model %v: %d hits, want %d", query, forModel, len(all), want)
			}
			for n := 1; n <= len(all); n++ {
				if got := search(t, c, query, catalog.SearchOptions{Limit: n, ForModel: forModel}); !slices.Equal(got, all[:n]) {
					t.Fatalf("%q, for a model %v: the first %d are %q, want %q", query, forModel, n, got, all[:n])
				}
			}
		}
	}
}

func TestExamplesAreSearched(t *testing.T) {
	head := "---\nname: %s\ndescription: Finds anomalies.\n%s---\nInstructions.\n"
	files := map[string]string{
		"detect/SKILL.md": fmt.Sprintf(head, "detect", "examples:\n  - Why did revenue plunge?\n  - 检测最近7天的异常波动\n"),
		"other/SKILL.md":  fmt.Sprintf(head, "other", ""),
	}
	c := open(t, dir(tree(t, files)))
	for _, query := range []string{"plunge", "异常波动"} {
		if diff := cmp.Diff([]string{"detect"}, search(t, c, query, catalog.SearchOptions{})); diff != "" {
			t.Errorf("%s: %s", query, diff)
		}
	}
}

func TestUserOnlySkillsDoNotFillSearchLimit(t *testing.T) {
	m := source("m", catalog.User)
	for i := range 100 {
		m.add(fmt.Sprintf("s%03d", i))
		m.entries[i].Description, m.entries[i].DisableModelInvocation = "Deploy documents now", true
	}
	m.add("last")
	m.entries[100].Description = "Deploy documents now, or some other day with a lot of other words"
	if got := search(t, open(t, m), "deploy documents now", catalog.SearchOptions{Limit: 1, ForModel: true}); !slices.Equal(got, []string{"last"}) {
		t.Errorf("got %q", got)
	}
}

func TestSearchUsesReloadedCatalog(t *testing.T) {
	root := library(t)
	c := open(t, dir(root))
	must(t, c.Warm(t.Context()))
	if got := search(t, c, "kubernetes", catalog.SearchOptions{}); len(got) > 0 {
		t.Errorf("before: %q", got)
	}
	write(t, root, map[string]string{"k/SKILL.md": "---\nname: k\ndescription: Runs kubernetes.\n---\n", "csv/SKILL.md": doc("csv", "") + "\nIt also knows kubernetes.\n"})
	if got := search(t, c, "kubernetes", catalog.SearchOptions{}); len(got) > 0 {
		t.Errorf("before the reload: %q", got)
	}
	must(t, c.Reload(t.Context()))
	if got := search(t, c, "kubernetes", catalog.SearchOptions{}); !slices.Equal(got, []string{"k", "csv"}) {
		t.Errorf("after: %q", got)
	}
}

func TestSkillWithUnreadableBodyIsFoundByDescription(t *testing.T) {
	root := library(t)
	c := open(t, dir(root), source("m", catalog.User, "widgets"))
	must(t, os.RemoveAll(filepath.Join(root, "pdf")))
	for query, want := range map[string]string{"merge pdf": "pdf", "widgets": "widgets"} {
		if got := search(t, c, query, catalog.SearchOptions{Limit: 1}); !slices.Equal(got, []string{want}) {
			t.Errorf("%q: %q", query, got)
		}
	}
}

// The instructions of a skill count wherever it comes from.
func TestInstructionsAreSearchedInEverySource(t *testing.T) {
	text := doc("a", "") + "\nTalks about zeppelins.\n"
	root := tree(t, map[string]string{"a/SKILL.md": text, "z.zip": pack(t, map[string]string{"a/SKILL.md": text})})
	for _, s := range []catalog.Source{
		dir(root), catalog.NewArchive("zip", catalog.User, filepath.Join(root, "z.zip")),
		catalog.NewFS("fs", catalog.User, fstest.MapFS{"a/SKILL.md": {Data: []byte(text)}}),
	} {
		if got := search(t, open(t, s), "zeppelin", catalog.SearchOptions{}); !slices.Equal(got, []string{"a"}) {
			t.Errorf("%s: %q", s.Origin(), got)
		}
	}
}

func TestCancelledSearchCanBeRepeated(t *testing.T) {
	c := open(t, dir(library(t)))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Search(ctx, "pdf", catalog.SearchOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if got := search(t, c, "pdf", catalog.SearchOptions{Limit: 1}); !slices.Equal(got, []string{"pdf"}) {
		t.Errorf("again: %q", got)
	}
}

// B10: skills are found by name, purpose and permitted user, in memory.
func TestB10Queries(t *testing.T) {
	root := library(t)
	c := open(t, dir(root))
	must(t, c.Warm(t.Context()))
	must(t, os.RemoveAll(root)) // nothing is read from here on
	get(t, c.Snapshot(), "pdf")
	if got := search(t, c, "spreadsheet", catalog.SearchOptions{}); !slices.Equal(got, []string{"csv"}) {
		t.Errorf("by a tag: %q", got)
	}
	if got := names(c.Snapshot().ForModel()); slices.Contains(got, "mine") || len(got) != 4 {
		t.Errorf("for a model: %q", got)
	}
	must(t, c.Reload(t.Context())) // until the reload
	if got := codes(root, c.Snapshot().Problems()); !slices.Contains(got, ". not-found") {
		t.Errorf("after a reload: %q", got)
	}
}
