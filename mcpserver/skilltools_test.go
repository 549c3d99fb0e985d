package mcpserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/internal/tokencount"
	"github.com/loadout-dev/loadout/mcpserver"
)

const png = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"

const pdfBody = "# PDF\n\nFill forms with {baseDir}/scripts/fill.py.\n"

func basic() files {
	return files{
		"pdf/SKILL.md":            skillText("pdf", pdfBody),
		"pdf/references/forms.md": "# Forms\n\nÄäh.\n",
		"pdf/scripts/fill.py":     "print()\n",
		"pdf/assets/logo.png":     png,
		"pdf/assets/font.ttf":     "\x00\x01\x00\x00",
		"pdf/empty.md":            "",
		"csv/SKILL.md":            skillText("csv", "# CSV\n"),
		"report/SKILL.md":         "---\nname: report\ndescription: Writes reports.\ndependencies: [csv]\n---\n# Report\n",
		"hollow/SKILL.md":         skillText("hollow", "\n"),
		"deploy/SKILL.md":         "---\nname: deploy\ndescription: Deploys.\ndisable-model-invocation: true\n---\n# Deploy\n",
	}
}

type (
	searchResult struct {
		Hits []struct {
			Name, Origin, Description string
			Score                     float64
			Weak                      bool
		} `json:"hits"`
		Next    string `json:"next"`
		Changes string `json:"news"`
	}
	loadResult struct {
		State        string           `json:"state"`
		Name         string           `json:"name"`
		Origin       string           `json:"origin"`
		Digest       string           `json:"digest"`
		Instructions string           `json:"instructions"`
		Location     string           `json:"location"`
		Files        []map[string]any `json:"files"`
		MoreFiles    int              `json:"more_files"`
		Tools        []any            `json:"tools"`
		Problems     []string         `json:"problems"`
		Tokens       int              `json:"tokens"`
		Changes      string           `json:"news"`
	}
	readResult struct {
		Path     string `json:"path"`
		Size     int64  `json:"size"`
		SHA256   string `json:"sha256"`
		Type     string `json:"type"`
		Offset   int64  `json:"offset"`
		Next     int64  `json:"next"`
		Text     string `json:"text"`
		Location string `json:"location"`
		Changes  string `json:"news"`
	}
)

func digestOf(text string) string { return "sha256:" + skillfile.Hash([]byte(text)) }

func TestThreeToolsWithAnnotationsAndSchemas(t *testing.T) {
	everyWay(t, setup{tree: basic()}, func(t *testing.T, w *world, c *client) {
		list, err := c.ListTools(c.ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, tool := range list.Tools {
			names = append(names, tool.Name)
			a := tool.Annotations
			if a == nil || !a.ReadOnlyHint || !a.IdempotentHint || a.OpenWorldHint == nil || *a.OpenWorldHint {
				t.Errorf("%s has annotations %+v, want read-only, idempotent and of a closed world", tool.Name, a)
			}
			if tool.InputSchema == nil || tool.OutputSchema == nil || tool.Title == "" {
				t.Errorf("%s lacks a schema or a title", tool.Name)
			}
		}
		if want := []string{"load_skill", "read_skill_file", "search_skills"}; !slices.Equal(names, want) {
			t.Errorf("tools %q, want %q", names, want)
		}
		description := list.Tools[0].Description
		if want := "- csv: What csv is for.\n- hollow: What hollow is for.\n- pdf: What pdf is for.\n- report: Writes reports.\n"; !strings.HasSuffix(description, want) {
			t.Errorf("load_skill is described as %q, without %q", description, want)
		}
		if strings.Contains(c.InitializeResult().Instructions, "- report") || !strings.Contains(c.InitializeResult().Instructions, "load_skill") {
			t.Errorf("instructions %q", c.InitializeResult().Instructions)
		}
	})
}

func TestSearchSkills(t *testing.T) {
	everyWay(t, setup{tree: basic()}, func(t *testing.T, w *world, c *client) {
		t.Run("by a task", func(t *testing.T) {
			res := c.call("search_skills", args{"query": "fill in pdf forms"})
			got := structured[searchResult](t, res)
			if len(got.Hits) == 0 || got.Hits[0].Name != "pdf" || got.Hits[0].Origin != "local" || got.Hits[0].Description != "What pdf is for." || got.Hits[0].Score <= 0 {
				t.Errorf("got %+v", got)
			}
			if !strings.HasPrefix(textOf(res), "- pdf: What pdf is for.\n") {
				t.Errorf("text %q", textOf(res))
			}
		})
		t.Run("by several phrasings", func(t *testing.T) {
			for _, a := range []args{
				{"queries": []string{"report", "pdf forms", "pdf"}},
				{"query": "pdf forms", "queries": []string{"report", " ", "pdf", "pdf"}},
			} {
				res := c.call("search_skills", a)
				got := structured[searchResult](t, res)
				if len(got.Hits) < 2 || got.Hits[0].Name != "pdf" || got.Hits[0].Score <= got.Hits[1].Score || got.Hits[0].Score > 1 {
					t.Errorf("%v: %+v", a, got)
				}
				if !strings.Contains(textOf(res), "- report:") {
					t.Errorf("%v: the hit of another phrasing is missing: %+v", a, got)
				}
				// The pages of a search are those of one list.
				a["limit"] = 1
				page := structured[searchResult](t, c.call("search_skills", a))
				a["cursor"] = page.Next
				next := structured[searchResult](t, c.call("search_skills", a))
				if len(page.Hits) != 1 || len(next.Hits) != 1 || page.Hits[0] != got.Hits[0] || next.Hits[0] != got.Hits[1] {
					t.Errorf("%v: pages %+v and %+v of %+v", a, page, next, got)
				}
			}
			if res := c.call("search_skills", args{"queries": strings.Fields("a b c d e f g h i")}); !res.IsError || !strings.Contains(textOf(res), "too many queries (9, limit 8)") {
				t.Errorf("nine queries: %q", textOf(res))
			}
		})
		t.Run("a hit that probably does not fit", func(t *testing.T) {
			res := c.call("search_skills", args{"query": "report a lost umbrella to the station master"})
			if got := structured[searchResult](t, res); len(got.Hits) == 0 || got.Hits[0].Name != "report" || !got.Hits[0].Weak {
				t.Errorf("got %+v, want the weak hit report", got)
			}
			if text := textOf(res); !strings.HasPrefix(text, "- report: [weak match] ") || !strings.Contains(text, "No skill clearly fits.") {
				t.Errorf("text %q", text)
			}
			res = c.call("search_skills", args{"queries": []string{"pdf", "what is the pdf for", "report a lost umbrella to the station master"}})
			if text := textOf(res); !strings.Contains(text, "- pdf: What") || !strings.Contains(text, "- report: [weak match] ") || strings.Contains(text, "No skill clearly fits.") {
				t.Errorf("text %q", text)
			}
		})
		t.Run("empty query lists all model skills", func(t *testing.T) {
			var names []string
			cursor, pages := "", 0
			for {
				res := c.call("search_skills", args{"limit": 3, "cursor": cursor})
				got := structured[searchResult](t, res)
				for _, h := range got.Hits {
					names = append(names, h.Name)
				}
				pages++
				if got.Next == "" {
					break
				}
				if !strings.Contains(textOf(res), got.Next) {
					t.Errorf("text %q does not say how to go on", textOf(res))
				}
				cursor = got.Next
			}
			if want := []string{"csv", "hollow", "pdf", "report"}; !slices.Equal(names, want) || pages != 2 {
				t.Errorf("%d pages with %q, want 2 with %q", pages, names, want)
			}
		})
		t.Run("no match", func(t *testing.T) {
			res := c.call("search_skills", args{"query": "zzzzqqq"})
			if got := structured[searchResult](t, res); got.Hits == nil || len(got.Hits) != 0 || res.IsError || !strings.Contains(textOf(res), "other words") {
				t.Errorf("got %+v, %q; want no hits and advice", got, textOf(res))
			}
		})
		t.Run("a cursor of one's own", func(t *testing.T) {
			for _, cursor := range []string{"!", "LTE", "OTk5OTk5OTk5OTk5OTk5OTk5OQ"} {
				res := c.call("search_skills", args{"cursor": cursor})
				if !res.IsError || res.StructuredContent != nil || !strings.Contains(textOf(res), "start again without a cursor") {
					t.Errorf("cursor %q: %q", cursor, textOf(res))
				}
			}
		})
		t.Run("arguments of the wrong type", func(t *testing.T) {
			if res := c.call("search_skills", args{"query": 7}); !res.IsError || !strings.Contains(textOf(res), "query") {
				t.Errorf("got %q", textOf(res))
			}
		})
	})
}

func TestSearchReturnsAtMostFifty(t *testing.T) {
	tree := files{}
	for i := range 60 {
		name := fmt.Sprintf("skill-%02d", i)
		tree[name+"/SKILL.md"] = skillText(name, "x")
	}
	w := newWorld(t, setup{tree: tree})
	c := w.connect(t, way{"stdio", modern}, nil)
	for limit, want := range map[int]int{0: 10, -1: 10, 1: 1, 50: 50, 1000: 50} {
		if got := structured[searchResult](t, c.call("search_skills", args{"limit": limit})); len(got.Hits) != want {
			t.Errorf("limit %d: %d hits, want %d", limit, len(got.Hits), want)
		}
	}
}

func TestLoadSkill(t *testing.T) {
	everyWay(t, setup{tree: basic()}, func(t *testing.T, w *world, c *client) {
		pdf := filepath.Join(w.dir, "pdf")
		digest := digestOf(basic()["pdf/SKILL.md"])
		if got := textOf(c.call("load_skill", args{"name": "", "skill_name": "csv", "have": "x"})); !strings.Contains(got, "# CSV") {
			t.Errorf("by skill_name beside an empty name: %q", got)
		}
		for _, unknown := range []args{{"name": "pdf", "path": "x"}, {"skill": "pdf"}} {
			if res := c.call("load_skill", unknown); !res.IsError || !strings.Contains(textOf(res), "unexpected additional properties") {
				t.Errorf("%v: %q", unknown, textOf(res))
			}
		}
		for _, arg := range []string{"name", "skill_name"} {
			t.Run("by "+arg, func(t *testing.T) {
				res := c.call("load_skill", args{arg: "pdf"})
				got := structured[loadResult](t, res)
				if res.IsError || got.State != "loaded" || got.Name != "pdf" || got.Origin != "local" || got.Digest != digest || got.Tokens == 0 || got.Location != pdf {
					t.Errorf("got %+v", got)
				}
				if want := "# PDF\n\nFill forms with " + pdf + "/scripts/fill.py."; got.Instructions != want {
					t.Errorf("instructions %q, want %q", got.Instructions, want)
				}
				var paths []string
				for _, f := range got.Files {
					paths = append(paths, fmt.Sprint(f["path"], f["script"]))
				}
				if want := []string{"assets/font.ttf<nil>", "assets/logo.png<nil>", "empty.md<nil>", "references/forms.md<nil>", "scripts/fill.pytrue"}; !slices.Equal(paths, want) {
					t.Errorf("files %q, want %q", paths, want)
				}
				for _, want := range []string{"Skill pdf (from local) is loaded.", got.Instructions + "\n", "Files of this skill (in " + pdf + "): assets/font.ttf", "Digest: " + digest[7:19] + "\n"} {
					if !strings.Contains(textOf(res), want) {
						t.Errorf("text %q lacks %q", textOf(res), want)
					}
				}
			})
		}
		t.Run("current content is not sent again", func(t *testing.T) {
			for _, have := range []string{digest, digest[7:], digest[7:19], " " + strings.ToUpper(digest[7:19])} {
				res := c.call("load_skill", args{"name": "pdf", "have": have})
				got := structured[loadResult](t, res)
				if got.State != "already" || got.Instructions != "" || got.Digest != digest || strings.Contains(textOf(res), "# PDF") || len(textOf(res)) > 100 {
					t.Errorf("have %s: got %+v, %q", have, got, textOf(res))
				}
			}
		})
		t.Run("without the full current digest it is sent", func(t *testing.T) {
			for _, have := range []string{"", "sha256:", "0", digest[7:15], digestOf("another")} {
				if got := structured[loadResult](t, c.call("load_skill", args{"name": "pdf", "have": have})); got.State != "loaded" || got.Instructions == "" {
					t.Errorf("have %q: got %+v", have, got)
				}
			}
		})
		t.Run("loads with its dependencies", func(t *testing.T) {
			res := c.call("load_skill", args{"name": "report"})
			got := structured[loadResult](t, res)
			if got.State != "loaded" || strings.Index(got.Instructions, "# CSV") > strings.Index(got.Instructions, "# Report") || !strings.Contains(got.Instructions, "# CSV") {
				t.Errorf("instructions %q", got.Instructions)
			}
			res = c.call("load_skill", args{"name": "report", "have": got.Digest})
			if !strings.Contains(textOf(res), "It needs csv") {
				t.Errorf("a repeat returned %q, and not what else is needed", textOf(res))
			}
		})
		t.Run("without instructions it is degraded", func(t *testing.T) {
			res := c.call("load_skill", args{"name": "hollow"})
			got := structured[loadResult](t, res)
			if got.State != "degraded" || len(got.Problems) != 1 || !strings.Contains(textOf(res), "no instructions") {
				t.Errorf("got %+v, %q", got, textOf(res))
			}
		})
		t.Run("unknown name suggests similar ones", func(t *testing.T) {
			res := c.call("load_skill", args{"name": "pfd"})
			got := structured[loadResult](t, res)
			if !res.IsError || got.State != "failed" || len(got.Problems) != 1 {
				t.Errorf("got %+v", got)
			}
			if want := `skill "pfd" not found; did you mean pdf, csv? Find skills with search_skills.`; !strings.HasPrefix(textOf(res), `skill "pfd" not found; did you mean pdf`) || !strings.HasSuffix(textOf(res), "? Find skills with search_skills.") {
				t.Errorf("text %q, want about %q", textOf(res), want)
			}
		})
		t.Run("or with all if there are few", func(t *testing.T) {
			res := c.call("load_skill", args{"name": "photoshop"})
			if want := `skill "photoshop" not found. Available skills: csv, hollow, pdf, report.`; textOf(res) != want {
				t.Errorf("text %q, want %q", textOf(res), want)
			}
		})
		t.Run("user-only skill is hidden from models", func(t *testing.T) {
			res := c.call("load_skill", args{"name": "deploy"})
			if !res.IsError || !strings.Contains(textOf(res), "choose the prompt deploy") || strings.Contains(textOf(res), "# Deploy") {
				t.Errorf("got %q", textOf(res))
			}
		})
		t.Run("missing name is an error", func(t *testing.T) {
			if res := c.call("load_skill", args{}); !res.IsError || !strings.Contains(textOf(res), "name of a skill") {
				t.Errorf("got %q", textOf(res))
			}
		})
		t.Run("a hostile name is no path", func(t *testing.T) {
			for _, name := range []string{"../pdf", "/etc", "..", strings.Repeat("a", 1<<16), "a\x00b", "pdf@", "pdf@x", "sha256:" + strings.Repeat("0", 64), "local/../pdf"} {
				if res := c.call("load_skill", args{"name": name}); name != "pdf@" && !res.IsError {
					t.Errorf("%.20q is loaded: %q", name, textOf(res))
				}
			}
		})
		t.Run("after an edit the content is sent again", func(t *testing.T) {
			edited := skillText("pdf", "# PDF, edited\n")
			files{"pdf/SKILL.md": edited}.write(t, w.dir) // the catalog need not have seen it
			got := structured[loadResult](t, c.call("load_skill", args{"name": "pdf", "have": digest}))
			if got.State != "loaded" || got.Instructions != "# PDF, edited" || got.Digest != digestOf(edited) {
				t.Errorf("got %+v", got)
			}
		})
		t.Run("broken since: fails with the reason", func(t *testing.T) {
			files{"csv/SKILL.md": "no frontmatter"}.write(t, w.dir)
			res := c.call("load_skill", args{"name": "csv"})
			if !res.IsError || !strings.Contains(textOf(res), "skill csv at "+filepath.Join(w.dir, "csv")) {
				t.Errorf("got %q", textOf(res))
			}
		})
	})
}

func TestLoadListsAtMost100Files(t *testing.T) {
	tree := files{"big/SKILL.md": skillText("big", "# Big\n")}
	for i := range 130 {
		tree[fmt.Sprintf("big/references/%03d.md", i)] = "x"
	}
	w := newWorld(t, setup{tree: tree})
	c := w.connect(t, way{"stdio", legacy}, nil)
	res := c.call("load_skill", args{"name": "big"})
	if got := structured[loadResult](t, res); len(got.Files) != 100 || got.MoreFiles != 30 {
		t.Errorf("%d files are named and %d more, want 100 and 30", len(got.Files), got.MoreFiles)
	}
	if !strings.Contains(textOf(res), "It has 110 more files.") {
		t.Errorf("the text does not say that there are more: %q", textOf(res))
	}
}

// A body is delivered once in the text and once in the structured content, and
// costs next to nothing beyond itself.
func TestLoadCostsAtMostTwoPercentMoreThanBody(t *testing.T) {
	body := ""
	for tokencount.Estimate(body) < 2000 {
		body += "Read the whole document first, then fill in the fields one after another.\n"
	}
	w := newWorld(t, setup{tree: files{"long/SKILL.md": skillText("long", body)}})
	c := w.connect(t, way{"stdio", legacy}, nil)
	res := c.call("load_skill", args{"name": "long"})
	if was, is := tokencount.Estimate(body), tokencount.Estimate(textOf(res)); float64(is) > 1.02*float64(was) {
		t.Errorf("a body of %d tokens is delivered in %d", was, is)
	}
	got := structured[loadResult](t, res)
	if got.Instructions != strings.TrimRight(body, "\n") {
		t.Error("the structured content has something else than the body")
	}
}

func TestReadSkillFile(t *testing.T) {
	everyWay(t, setup{tree: basic()}, func(t *testing.T, w *world, c *client) {
		read := func(a args) (*mcp.CallToolResult, readResult) {
			t.Helper()
			if a["skill"] == nil {
				a["skill"] = "pdf"
			}
			res := c.call("read_skill_file", a)
			if res.IsError {
				t.Fatalf("%v: %s", a, textOf(res))
			}
			return res, structured[readResult](t, res)
		}
		t.Run("text, in both forms of the result", func(t *testing.T) {
			const text = "# Forms\n\nÄäh.\n"
			res, got := read(args{"path": "references/forms.md"})
			want := readResult{Path: "references/forms.md", Size: int64(len(text)), SHA256: skillfile.Hash([]byte(text)), Type: "text/markdown", Text: text}
			if got != want || textOf(res) != text {
				t.Errorf("got %+v and %q, want %+v", got, textOf(res), want)
			}
		})
		t.Run("part of it, with the next offset", func(t *testing.T) {
			res, got := read(args{"path": "references/forms.md", "offset": 2, "limit": 8})
			if got.Offset != 2 || got.Next != 9 || got.Text != "Forms\n\n" || textOf(res) != "Forms\n\n|[9 of 16 bytes; go on with offset 9]" {
				t.Errorf("got %+v and %q", got, textOf(res))
			}
			res, got = read(args{"path": "references/forms.md", "offset": 9})
			if got.Next != 0 || textOf(res) != "Ääh.\n" {
				t.Errorf("got %+v and %q", got, textOf(res))
			}
		})
		t.Run("SKILL.md unchanged", func(t *testing.T) {
			if _, got := read(args{"path": "SKILL.md"}); got.Text != basic()["pdf/SKILL.md"] {
				t.Errorf("got %q", got.Text)
			}
		})
		t.Run("empty file is not empty text", func(t *testing.T) {
			res, got := read(args{"path": "empty.md"})
			if got.Size != 0 || textOf(res) == "" {
				t.Errorf("got %+v and %q", got, textOf(res))
			}
		})
		t.Run("image content, or a path for local clients", func(t *testing.T) {
			res, got := read(args{"path": "assets/logo.png"})
			img, ok := res.Content[0].(*mcp.ImageContent)
			if !ok || string(img.Data) != png || img.MIMEType != "image/png" || len(res.Content) != 1 {
				t.Errorf("content %+v", res.Content)
			}
			if got.Location != filepath.Join(w.dir, "pdf", "assets", "logo.png") || got.Type != "image/png" || got.Text != "" {
				t.Errorf("got %+v", got)
			}
		})
		t.Run("other binary file: type and path", func(t *testing.T) {
			res, got := read(args{"path": "assets/font.ttf"})
			if len(res.Content) != 2 || got.Location != filepath.Join(w.dir, "pdf", "assets", "font.ttf") {
				t.Fatalf("content %+v, got %+v", res.Content, got)
			}
			link, ok := res.Content[1].(*mcp.ResourceLink)
			if !ok || link.URI != "skill://pdf/assets/font.ttf" || link.MIMEType != "font/ttf" || link.Size == nil || *link.Size != 4 {
				t.Errorf("link %+v", res.Content[1])
			}
			if !strings.HasPrefix(textOf(res), "assets/font.ttf is not text: font/ttf, 4 bytes") {
				t.Errorf("text %q", textOf(res))
			}
			r, err := c.ReadResource(c.ctx, &mcp.ReadResourceParams{URI: link.URI})
			if err != nil || string(r.Contents[0].Blob) != "\x00\x01\x00\x00" {
				t.Errorf("the link gives %+v, %v", r, err)
			}
		})
		t.Run("with the digest of the load, while it is current", func(t *testing.T) {
			digest := digestOf(basic()["pdf/SKILL.md"])
			read(args{"path": "empty.md", "digest": digest})
			read(args{"path": "empty.md", "digest": digest[7:19]})
			res := c.call("read_skill_file", args{"skill": "pdf", "path": "empty.md", "digest": digestOf("older")})
			if want := "Skill pdf has changed since it was loaded: load it again, then use its files."; !res.IsError || textOf(res) != want {
				t.Errorf("got %q, want %q", textOf(res), want)
			}
		})
		t.Run("user-only skill after the user started it", func(t *testing.T) {
			read(args{"skill": "deploy", "path": "SKILL.md"})
		})
		for _, tt := range []struct {
			name string
			args args
			want string
		}{
			{"a missing file", args{"path": "forms.md"}, "skill pdf has no file forms.md; did you mean references/forms.md?"},
			{"a directory", args{"path": "references"}, "skill pdf: references is a directory; its files are references/forms.md"},
			{"a path that leaves the skill", args{"path": "../csv/SKILL.md"}, `invalid path "../csv/SKILL.md": give a file of the skill`},
			{"as on Windows", args{"path": `..\csv\SKILL.md`}, "give a file of the skill"},
			{"an absolute path", args{"path": "/etc/passwd"}, "give a file of the skill"},
			{"no path", args{"path": ""}, "give a file of the skill"},
			{"an offset behind the end", args{"path": "references/forms.md", "offset": 99}, "has 16 bytes"},
			{"an offset into an image", args{"path": "assets/logo.png", "offset": 1}, "offset is only supported for text files"},
			{"an unknown skill", args{"skill": "pfd", "path": "x"}, "did you mean pdf"},
			{"an argument that is missing", args{"skill": "pdf"}, "path"},
			{"an argument that there is not", args{"path": "x", "file": "y"}, "file"},
		} {
			t.Run("refused: "+tt.name, func(t *testing.T) {
				if tt.args["skill"] == nil {
					tt.args["skill"] = "pdf"
				}
				res := c.call("read_skill_file", tt.args)
				if !res.IsError || !strings.Contains(textOf(res), tt.want) || res.StructuredContent != nil {
					t.Errorf("got %q (%v), want an error that returned %q", textOf(res), res.StructuredContent, tt.want)
				}
			})
		}
	})
}

func TestLongFileIsReadIn64KiBParts(t *testing.T) {
	long := strings.Repeat("0123456789abcde\n", 10_000)
	w := newWorld(t, setup{tree: files{"pdf/SKILL.md": skillText("pdf", "x"), "pdf/long.txt": long}})
	c := w.connect(t, way{"http", modern}, nil)
	var got strings.Builder
	for offset := int64(0); ; {
		part := structured[readResult](t, c.call("read_skill_file", args{"skill": "pdf", "path": "long.txt", "offset": offset}))
		if len(part.Text) > 64<<10 {
			t.Fatalf("a part has %d bytes", len(part.Text))
		}
		got.WriteString(part.Text)
		if offset = part.Next; offset == 0 {
			break
		}
	}
	if got.String() != long {
		t.Errorf("the parts give %d bytes, the file has %d", got.Len(), len(long))
	}
}

func TestRemoteClientGetsNoLocalPaths(t *testing.T) {
	w := newWorld(t, setup{tree: basic(), options: mcpserver.Options{Remote: true}})
	c := w.connect(t, way{"http", modern}, nil)
	load := c.call("load_skill", args{"name": "pdf"})
	if got := structured[loadResult](t, load); got.Location != "skill://pdf" || !strings.Contains(got.Instructions, "skill://pdf/scripts/fill.py") {
		t.Errorf("got %+v", got)
	}
	font := c.call("read_skill_file", args{"skill": "pdf", "path": "assets/font.ttf"})
	if got := structured[readResult](t, font); got.Location != "skill://pdf/assets/font.ttf" {
		t.Errorf("got %+v", got)
	}
	files{"csv/SKILL.md": "spoilt"}.write(t, w.dir)
	broken := c.call("load_skill", args{"name": "csv"})
	w.dir, _ = filepath.Abs(w.dir)
	results := []*mcp.CallToolResult{load, font, broken}
	removed := filepath.Join(w.dir, "hollow")
	if err := os.RemoveAll(removed); err != nil {
		t.Fatal(err)
	}
	results = append(results, c.call("load_skill", args{"name": "hollow"}), c.call("read_skill_file", args{"skill": "hollow", "path": "x.md"}))
	for _, res := range results {
		js, _ := json.Marshal(res)
		if strings.Contains(string(js), w.dir) {
			t.Errorf("a result tells where things are: %s", js)
		}
	}
	if _, err := c.ReadResource(c.ctx, &mcp.ReadResourceParams{URI: "skill://hollow/SKILL.md"}); err == nil || strings.Contains(err.Error(), w.dir) {
		t.Errorf("an error tells where things are: %v", err)
	}
	if _, err := c.custom("skills/get", &rawParams{URI: "skill://hollow/SKILL.md"}); err == nil || strings.Contains(err.Error(), w.dir) {
		t.Errorf("an error tells where things are: %v", err)
	}
}

// K2: with skills switched off the tools stay, and answer one fixed error.
func TestKillSwitch(t *testing.T) {
	everyWay(t, setup{tree: basic(), filter: catalog.Filter{Disabled: true}}, func(t *testing.T, w *world, c *client) {
		list, err := c.ListTools(c.ctx, nil)
		if err != nil || len(list.Tools) != 3 {
			t.Fatalf("got %v, %v; want three tools", list, err)
		}
		const off = "Skills are switched off by the configuration (skills.enabled)."
		if got := c.InitializeResult().Instructions; got != off {
			t.Errorf("instructions %q, want %q", got, off)
		}
		for tool, a := range map[string]args{
			"search_skills":   {"query": "pdf"},
			"load_skill":      {"name": "pdf"},
			"read_skill_file": {"skill": "pdf", "path": "SKILL.md"},
		} {
			res := c.call(tool, a)
			if !res.IsError || textOf(res) != off {
				t.Errorf("%s answers %q, want %q", tool, textOf(res), off)
			}
		}
		if res := c.call("load_skill", args{}); textOf(res) != off {
			t.Errorf("load_skill without a name answers %q", textOf(res))
		}
		if p, err := c.ListPrompts(c.ctx, nil); err != nil || len(p.Prompts) != 0 {
			t.Errorf("prompts %v, %v; want none", p, err)
		}
		if r, err := c.ListResources(c.ctx, nil); err != nil || len(r.Resources) != 0 {
			t.Errorf("resources %v, %v; want none", r, err)
		}
		if r, err := c.custom("skills/list", &rawParams{}); err != nil || len(r.Skills) != 0 {
			t.Errorf("skills/list %v, %v; want none", r, err)
		}
		if _, err := c.ReadResource(c.ctx, &mcp.ReadResourceParams{URI: "skill://pdf/SKILL.md"}); code(err) != -32602 {
			t.Errorf("resources/read: %v, want -32602", err)
		}
	})
}

func TestUnknownToolIsAProtocolError(t *testing.T) {
	everyWay(t, setup{}, func(t *testing.T, w *world, c *client) {
		if _, err := c.CallTool(c.ctx, &mcp.CallToolParams{Name: "format_disk"}); code(err) != -32602 {
			t.Errorf("got %v, want -32602", err)
		}
	})
}

func TestHostCanAddTools(t *testing.T) {
	w := newWorld(t, setup{tree: basic(), options: mcpserver.Options{Extend: func(s *mcp.Server) {
		s.AddTool(&mcp.Tool{Name: "echo", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return shared, nil
		})
	}}})
	c := w.connect(t, way{"stdio", legacy}, nil)
	w.change(t, files{"new/SKILL.md": skillText("new", "x")})
	if res := c.call("echo", nil); !strings.Contains(textOf(res), "- new: What new is for.") {
		t.Errorf("got %q; want the news too", textOf(res))
	}
	if res := c.call("echo", nil); textOf(res) != "echo" || len(shared.Content) != 1 {
		t.Errorf("got %q; the host's own result was changed", textOf(res))
	}
}

var shared = &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "echo"}}, StructuredContent: json.RawMessage(`{"a":1}`)}
