package mcpserver_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/mcpserver"
)

// list pages through skills/list.
func (c *client) list() []*skillEntry {
	c.t.Helper()
	var all []*skillEntry
	for p := (&rawParams{}); ; {
		res, err := c.custom("skills/list", p)
		if err != nil {
			c.t.Fatal(err)
		}
		if res.ResultType != "complete" {
			c.t.Errorf("skills/list has the result type %q", res.ResultType)
		}
		all = append(all, res.Skills...)
		if res.NextCursor == "" {
			return all
		}
		p = &rawParams{Cursor: res.NextCursor}
	}
}

func (c *client) get(uri string) *skillEntry {
	c.t.Helper()
	res, err := c.custom("skills/get", &rawParams{URI: uri})
	if err != nil {
		c.t.Fatalf("skills/get %s: %v", uri, err)
	}
	return res.Skill
}

// read returns the bytes of a resource.
func (c *client) read(uri string) []byte {
	c.t.Helper()
	res, err := c.ReadResource(c.ctx, &mcp.ReadResourceParams{URI: uri})
	if err != nil {
		c.t.Fatalf("resources/read %s: %v", uri, err)
	}
	if len(res.Contents) != 1 || res.Contents[0].URI != uri {
		c.t.Fatalf("resources/read %s: %+v", uri, res.Contents)
	}
	if b := res.Contents[0].Blob; b != nil {
		return b
	}
	return []byte(res.Contents[0].Text)
}

func uris(entries []*skillEntry) []string {
	var out []string
	for _, e := range entries {
		out = append(out, e.URI)
	}
	return out
}

// check verifies an entry like a host does before it uses a skill: its path, its names
// and every byte.
func (c *client) check(e *skillEntry) {
	c.t.Helper()
	var front struct{ Name, Description string }
	if err := json.Unmarshal(e.Frontmatter, &front); err != nil || front.Name == "" || front.Description == "" {
		c.t.Errorf("%s: frontmatter %s: %v", e.URI, e.Frontmatter, err)
	}
	root, ok := strings.CutSuffix(e.URI, "/SKILL.md")
	if !ok || root[strings.LastIndexByte(root, '/')+1:] != front.Name {
		c.t.Errorf("%s does not end in the skill's name %s", e.URI, front.Name)
	}
	if !slices.ContainsFunc(e.Resources, func(r struct {
		URI    string `json:"uri"`
		Digest string `json:"digest"`
		Size   int64  `json:"size"`
	}) bool {
		return r.URI == e.URI
	}) {
		c.t.Errorf("%s is not among its own resources", e.URI)
	}
	for _, r := range e.Resources {
		if !strings.HasPrefix(r.URI, root+"/") {
			c.t.Errorf("%s is not below %s", r.URI, root)
		}
		b := c.read(r.URI)
		if r.Digest != "sha256:"+skillfile.Hash(b) || r.Size != int64(len(b)) {
			c.t.Errorf("%s has digest %s and size %d, and is read with %s and %d", r.URI, r.Digest, r.Size, skillfile.Hash(b), len(b))
		}
	}
}

func TestExtensionIsDeclared(t *testing.T) {
	everyWay(t, setup{tree: basic()}, func(t *testing.T, w *world, c *client) {
		caps := c.InitializeResult().Capabilities
		got, _ := json.Marshal(caps.Extensions["io.modelcontextprotocol/skills"])
		if string(got) != `{"directoryRead":true}` || caps.Resources == nil {
			t.Errorf("extension %s, resources %v", got, caps.Resources)
		}
	})
}

func TestSkillsListDescribesEachSkill(t *testing.T) {
	tree := basic()
	tree["pdf/notes/Ünï cödé #1?.md"] = "odd name\n"
	tree["pdf/notes/100%.txt"] = "percent\n"
	tree["pdf/notes/a:b@c;d=e&f,g.txt"] = "marks\n"
	tree["pdf/crlf.md"] = "a\r\nb\r\n"
	tree["pdf/late.bin"] = strings.Repeat("a", 9000) + "\xff\x00"
	tree["pdf/bom.md"] = "\ufeffbom\n"
	tree["pdf/.git/config"] = "no part of it"
	tree["pdf/a.md~"] = "no part of it"
	everyWay(t, setup{tree: tree}, func(t *testing.T, w *world, c *client) {
		entries := c.list()
		want := []string{"skill://csv/SKILL.md", "skill://deploy/SKILL.md", "skill://hollow/SKILL.md", "skill://pdf/SKILL.md", "skill://report/SKILL.md"}
		if got := uris(entries); !slices.Equal(got, want) {
			t.Errorf("skills %q, want %q", got, want)
		}
		for _, e := range entries {
			c.check(e)
			if got := c.get(e.URI); !reflect.DeepEqual(got, e) {
				t.Errorf("skills/get gives another entry than skills/list:\n%+v\n%+v", got, e)
			}
		}
		if n := len(entries[3].Resources); n != 12 {
			t.Errorf("pdf has %d resources, want 12: %+v", n, entries[3].Resources)
		}
		res, err := c.ReadResource(c.ctx, &mcp.ReadResourceParams{URI: "skill://pdf/SKILL.md"})
		if err != nil || res.Contents[0].MIMEType != "text/markdown" || res.Contents[0].Text != tree["pdf/SKILL.md"] {
			t.Errorf("SKILL.md is read as %+v, %v", res, err)
		}
	})
}

func TestFrontmatterEqualsFile(t *testing.T) {
	const front = `name: dated
description: "Quoted: \"yes\" \u00e9"
license: 2026-01-02
version: 1.10
metadata:
  on: yes
  list: [1, 2.50, null, ~, "x"]
  nested: {a: {b: [true, False]}}
argument-hint: "[a] <b> & c"
`
	w := newWorld(t, setup{tree: files{"dated/SKILL.md": "---\n" + front + "---\nx"}})
	c := w.connect(t, way{"stdio", modern}, nil)
	want := `{"name":"dated","description":"Quoted: \"yes\" é","license":"2026-01-02","version":1.10,"metadata":{"on":"yes","list":[1,2.50,null,null,"x"],"nested":{"a":{"b":[true,false]}}},"argument-hint":"[a] <b> & c"}`
	var got, exp any
	e := c.get("skill://dated/SKILL.md")
	if err := json.Unmarshal(e.Frontmatter, &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(want), &exp); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, exp) {
		t.Errorf("frontmatter %s, want %s", e.Frontmatter, want)
	}
}

func TestSkillsListPages(t *testing.T) {
	tree := files{}
	for i := range 120 {
		name := fmt.Sprintf("skill-%03d", i)
		tree[name+"/SKILL.md"] = skillText(name, "x")
	}
	w := newWorld(t, setup{tree: tree})
	c := w.connect(t, way{"http", modern}, nil)
	first, err := c.custom("skills/list", nil)
	if err != nil || len(first.Skills) != 50 || first.NextCursor == "" {
		t.Fatalf("the first page has %d skills and cursor %q, %v; want 50 and one", len(first.Skills), first.NextCursor, err)
	}
	all := uris(c.list())
	if len(all) != 120 || !slices.IsSorted(all) || len(slices.Compact(all)) != 120 {
		t.Errorf("the pages have %d skills: %q", len(all), all)
	}
	for _, cursor := range []string{"!", "bm90IGEgbnVtYmVy", "LTE"} {
		if _, err := c.custom("skills/list", &rawParams{Cursor: cursor}); code(err) != -32602 {
			t.Errorf("cursor %q: %v, want -32602", cursor, err)
		}
	}
}

func TestFreshnessIsSentToModernClients(t *testing.T) {
	everyWay(t, setup{tree: basic()}, func(t *testing.T, w *world, c *client) {
		isModern := c.InitializeResult().ProtocolVersion >= modern
		for method, p := range map[string]*rawParams{"skills/list": {}, "skills/get": {URI: "skill://pdf/SKILL.md"}} {
			res, err := c.custom(method, p)
			if err != nil {
				t.Fatal(err)
			}
			if isModern != (res.TTLMs != nil) || isModern != (res.CacheScope == "private") {
				t.Errorf("%s: ttlMs %v, cacheScope %q", method, res.TTLMs, res.CacheScope)
			}
		}
	})
	// As a client sees them that keeps nothing back.
	w := newWorld(t, setup{tree: basic()})
	for _, how := range ways {
		c := w.begin(t, how)
		for _, tt := range []struct {
			method string
			params args
			ttl    int
		}{
			{"skills/list", nil, 30_000},
			{"skills/get", args{"uri": "skill://pdf/SKILL.md"}, 0},
			{"resources/list", nil, 30_000},
			{"prompts/list", nil, 30_000},
			{"tools/list", nil, 30_000},
			{"resources/read", args{"uri": "skill://pdf/SKILL.md"}, 0},
		} {
			var res struct {
				TTLMs      *int
				CacheScope string
			}
			if err := json.Unmarshal(c.ok(tt.method, tt.params), &res); err != nil {
				t.Fatal(err)
			}
			if how.version >= modern && (res.TTLMs == nil || *res.TTLMs != tt.ttl || res.CacheScope != "private") {
				t.Errorf("%s, %s: ttlMs %v, cacheScope %q; want %d, private", how, tt.method, res.TTLMs, res.CacheScope, tt.ttl)
			}
		}
	}
}

func TestNestedSkillIsServedBelowParent(t *testing.T) {
	tree := files{
		"office/SKILL.md":                    skillText("office", "# Office\n"),
		"office/parts/pdf/SKILL.md":          skillText("pdf", "# PDF\n"),
		"office/parts/pdf/scripts/fill.py":   "print()",
		"office/parts/misnamed/SKILL.md":     skillText("docx", "# DOCX\n"),
		"office/parts/misnamed/a.md":         "a",
		"office/parts/pdf/deeper/x/SKILL.md": skillText("x", "# X\n"),
	}
	everyWay(t, setup{tree: tree}, func(t *testing.T, w *world, c *client) {
		entries := c.list()
		got := uris(entries)
		slices.Sort(got)
		want := []string{"skill://docx/SKILL.md", "skill://office/SKILL.md", "skill://office/parts/pdf/SKILL.md", "skill://office/parts/pdf/deeper/x/SKILL.md"}
		if !slices.Equal(got, want) {
			t.Errorf("skills %q, want %q", got, want)
		}
		for _, e := range entries {
			c.check(e)
			if e.URI == "skill://office/SKILL.md" && len(e.Resources) != 6 {
				t.Errorf("office lists %d files, want all 6: %+v", len(e.Resources), e.Resources)
			}
		}
		if got := string(c.read("skill://office/parts/pdf/scripts/fill.py")); got != "print()" {
			t.Errorf("got %q", got)
		}
		if got := string(c.read("skill://office/parts/misnamed/a.md")); got != "a" {
			t.Errorf("got %q", got)
		}
	})
}

func TestDuplicateNamesAreAllServed(t *testing.T) {
	bundle := func(body string) fstest.MapFS {
		return fstest.MapFS{"pdf/SKILL.md": {Data: []byte(skillText("pdf", body))}, "pdf/a.md": {Data: []byte(body)}}
	}
	w := newWorld(t, setup{
		tree: files{
			"pdf/SKILL.md":      skillText("pdf", "# Local\n"),
			"pdf/a.md":          "local",
			"more/pdf/SKILL.md": skillText("pdf", "# Local too\n"),
			"more/pdf/a.md":     "local too",
			// The name of another skill is the label of an origin.
			"hub/SKILL.md":      skillText("hub", "# Hub\n"),
			"hub/pdf/a.md":      "a file of the skill hub",
			"hub/docs/SKILL.md": skillText("docs", "# Nested\n"),
		},
		sources: []catalog.Source{
			catalog.NewFS("hub", catalog.Public, bundle("hub")),
			catalog.NewFS("bundled", catalog.Bundled, bundle("bundled")),
		},
	})
	c := w.connect(t, way{"http", legacy}, nil)
	entries := c.list()
	got := uris(entries)
	slices.Sort(got)
	want := []string{"skill://bundled/pdf/SKILL.md", "skill://from.hub/pdf/SKILL.md", "skill://hub/SKILL.md", "skill://hub/docs/SKILL.md", "skill://local/pdf/SKILL.md", "skill://pdf/SKILL.md"}
	if !slices.Equal(got, want) {
		t.Errorf("skills %q, want %q", got, want)
	}
	for _, e := range entries {
		c.check(e)
	}
	shadowed := map[string]bool{}
	for _, s := range w.rt.Catalog().Snapshot().Shadowed() {
		shadowed[s.Origin] = true
	}
	var texts []string
	for uri, origin := range map[string]string{"skill://bundled/pdf/a.md": "bundled", "skill://from.hub/pdf/a.md": "hub", "skill://local/pdf/a.md": "local", "skill://pdf/a.md": "", "skill://hub/pdf/a.md": ""} {
		texts = append(texts, string(c.read(uri)))
		if origin != "" && !shadowed[origin] {
			t.Errorf("%s is not shadowed, and has the path of one that is", uri)
		}
	}
	slices.Sort(texts)
	if want := []string{"a file of the skill hub", "bundled", "hub", "local", "local too"}; !slices.Equal(texts, want) {
		t.Errorf("the files are %q, want %q", texts, want)
	}
}

func TestUnservableSkillsAreReported(t *testing.T) {
	tree := files{
		"good/SKILL.md":     skillText("good", "# Good\n"),
		"Bad_Name/SKILL.md": skillText("Bad_Name", "# Bad name\n"),
		"指南/SKILL.md":       skillText("指南", "# Guide\n"),
		"repaired/SKILL.md": "---\nname: repaired\ndescription: Use this: when it is needed\n---\n# Repaired\n",
		"unnamed/SKILL.md":  "---\ndescription: Has no name.\n---\n# Unnamed\n",
	}
	caseSensitive := runtime.GOOS == "linux"
	if caseSensitive {
		tree["lower/skill.md"] = skillText("lower", "# Lower\n")
	}
	w := newWorld(t, setup{tree: tree})
	c := w.connect(t, way{"stdio", legacy}, nil)
	reasons := map[string]string{}
	for e, reason := range w.server.NotServed() {
		reasons[e.Name] = reason
		if !strings.HasPrefix(e.Path, w.dir) {
			t.Errorf("%s is at %s", e.Name, e.Path)
		}
	}
	want := map[string]string{
		"Bad_Name": "name it bad-name",
		"指南":       "its name is not 1 to 64 lower-case letters",
		"repaired": "had to be repaired",
		"unnamed":  "has no name",
	}
	if caseSensitive {
		want["lower"] = "its file is named skill.md; name it SKILL.md"
	}
	if len(reasons) != len(want) {
		t.Errorf("unserved are %q", reasons)
	}
	for name, reason := range want {
		if !strings.Contains(reasons[name], reason) {
			t.Errorf("%s is not served because %q, want %q", name, reasons[name], reason)
		}
		res := c.call("load_skill", args{"name": name})
		if got := structured[loadResult](t, res); got.State != "loaded" || !strings.Contains(got.Instructions, "# ") {
			t.Errorf("load_skill %s: %+v", name, got)
		}
		if res := c.call("read_skill_file", args{"skill": name, "path": "SKILL.md"}); name != "lower" && res.IsError {
			t.Errorf("read_skill_file %s: %s", name, textOf(res))
		}
	}
	if got := uris(c.list()); !slices.Equal(got, []string{"skill://good/SKILL.md"}) {
		t.Errorf("skills/list has %q", got)
	}
	list, err := c.ListResources(c.ctx, nil)
	if err != nil || len(list.Resources) != 1 || list.Resources[0].URI != "skill://good/SKILL.md" {
		t.Errorf("resources/list has %+v, %v", list, err)
	}
	for _, r := range list.Resources {
		c.read(r.URI)
	}
}

func TestSkillsBeyondLimitsAreOmittedWithReason(t *testing.T) {
	tree := files{"small/SKILL.md": skillText("small", "x"), "large/SKILL.md": skillText("large", "x"), "many/SKILL.md": skillText("many", "x"), "most/SKILL.md": skillText("most", "x")}
	for i := range 512 {
		tree[fmt.Sprintf("many/%03d.md", i)] = "x"
		if i < 511 {
			tree[fmt.Sprintf("most/%03d.md", i)] = "x"
		}
	}
	var log bytes.Buffer
	w := newWorld(t, setup{tree: tree, options: mcpserver.Options{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))}})
	f, err := os.Create(filepath.Join(w.dir, "large", "big.bin"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(16 << 20); err != nil {
		t.Fatal(err)
	}
	f.Close()
	c := w.connect(t, way{"stdio", legacy}, nil)
	entries := c.list()
	if got := uris(entries); !slices.Equal(got, []string{"skill://most/SKILL.md", "skill://small/SKILL.md"}) {
		t.Errorf("skills/list has %q", got)
	}
	if len(entries[0].Resources) != 512 {
		t.Errorf("%d resources, want 512", len(entries[0].Resources))
	}
	for name, want := range map[string]string{"large": "2 files, 167772", "many": "513 files"} {
		_, err := c.custom("skills/get", &rawParams{URI: "skill://" + name + "/SKILL.md"})
		if code(err) != -32602 || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "(limits 512 and 16777216)") {
			t.Errorf("skills/get %s: %v", name, err)
		}
		if !strings.Contains(log.String(), "skill="+name) {
			t.Errorf("that %s is left out is not logged: %s", name, log.String())
		}
		if res := c.call("load_skill", args{"name": name}); res.IsError {
			t.Errorf("load_skill %s: %s", name, textOf(res))
		}
	}
}

func TestSkillsGetRefusesUnservedSkills(t *testing.T) {
	everyWay(t, setup{tree: basic()}, func(t *testing.T, w *world, c *client) {
		for _, uri := range hostileURIs() {
			if _, err := c.custom("skills/get", &rawParams{URI: uri}); code(err) != -32602 {
				t.Errorf("%.60q: %v, want -32602", uri, err)
			}
		}
		for _, uri := range []string{"skill://pdf", "skill://pdf/references/forms.md", "skill://pdf/skill.md", "skill://pdf/SKILL%2Emd"} {
			if _, err := c.custom("skills/get", &rawParams{URI: uri}); code(err) != -32602 {
				t.Errorf("%s: %v, want -32602: it is not an entry", uri, err)
			}
		}
	})
}

// hostileURIs name nothing that is served.
func hostileURIs() []string {
	return []string{
		"", "skill", "skill:", "skill:/", "skill://", "skill:///", "skill:////", "skill:///x", "skill:///pdf/SKILL.md", "skill://nothing/SKILL.md", "skill://pd/SKILL.md",
		"skill://pdf/missing.md", "skill://pdf/SKILL.md/x", "skill://pdf//SKILL.md", "skill://pdf/./SKILL.md", "skill://pdf/../csv/SKILL.md", "skill://pdf/../../secret",
		"skill://nothing/../pdf/SKILL.md", "skill://../pdf/SKILL.md", "skill://pdf/references/../SKILL.md", "skill://pdf/%2e%2e/csv/SKILL.md", "skill://pdf/%2E%2E/SKILL.md", "skill://pdf/..%2fcsv%2fSKILL.md",
		"skill://pdf%2FSKILL.md", "skill://pdf/references%2Fforms.md", "skill://pdf/SKILL.md%00", "skill://pdf/SKILL.md?x=1", "skill://pdf/SKILL.md#top", "skill://pdf/SKILL.md%", "skill://pdf/SKILL.md%zz",
		"skill://pdf/%ff%fe", "skill://pdf/..\\csv\\SKILL.md", "skill://pdf/%5c..%5ccsv", "skill://PDF/SKILL.md", "SKILL://pdf/SKILL.md", "skill://user@pdf/SKILL.md", "skill://pdf:80/SKILL.md",
		"file:///etc/passwd", "https://pdf/SKILL.md", "/etc/passwd", "pdf/SKILL.md", "skill://pdf/.git/config", "skill://pdf/__pycache__/x.pyc", "skill://pdf/a.md~",
		"skill://" + strings.Repeat("a/", 4000), "skill://pdf/" + strings.Repeat("../", 40) + "etc/passwd", "skill://pdf/" + strings.Repeat("x", 5000), "skill://[::1]/SKILL.md", "skill://pdf/\u202egpj.SKILL.md",
	}
}

func TestResourcesReadNeverLeavesSkill(t *testing.T) {
	tree := basic()
	tree["pdf/.git/config"] = "SECRET"
	tree["pdf/__pycache__/x.pyc"] = "SECRET"
	tree["pdf/a.md~"] = "SECRET"
	tree["secret"] = "SECRET"
	everyWay(t, setup{tree: tree}, func(t *testing.T, w *world, c *client) {
		links := map[string]string{}
		if runtime.GOOS != "windows" {
			links = map[string]string{"out": "../secret", "abs": filepath.Join(w.dir, "secret"), "up": "..", "in.md": "references/forms.md", "passwd": "/etc/passwd"}
		}
		for name, to := range links {
			if err := os.Symlink(to, filepath.Join(w.dir, "pdf", name)); err != nil {
				t.Fatal(err)
			}
		}
		bad := append(hostileURIs()[1:], "skill://pdf", "skill://pdf/", "skill://pdf/references", "skill://pdf/references/")
		if len(links) > 0 {
			bad = append(bad, "skill://pdf/out", "skill://pdf/abs", "skill://pdf/up", "skill://pdf/up/secret", "skill://pdf/passwd", "skill://pdf/up/pdf/SKILL.md")
			if got := string(c.read("skill://pdf/in.md")); got != tree["pdf/references/forms.md"] {
				t.Errorf("a link inside the skill gives %q", got)
			}
		}
		for _, uri := range bad {
			res, err := c.ReadResource(c.ctx, &mcp.ReadResourceParams{URI: uri})
			if code(err) != -32602 || strings.Contains(fmt.Sprint(err), w.dir) {
				t.Errorf("%.60q: %v, %v; want -32602", uri, res, err)
			}
		}
		for _, e := range c.list() {
			c.check(e) // symlinks that lead out are not listed
		}
		// Escapes that mean the same are the same.
		for _, uri := range []string{"skill://pdf/SKILL%2Emd", "skill://pdf/%53KILL.md", "skill://pd%66/SKILL.md"} {
			c.read(uri)
		}
	})
}

func TestPipeInSkillDoesNotBlock(t *testing.T) {
	w := newWorld(t, setup{tree: basic()})
	if !makePipe(filepath.Join(w.dir, "pdf", "pipe")) {
		t.Skip("no named pipes here")
	}
	c := w.connect(t, way{"stdio", legacy}, nil)
	if _, err := c.ReadResource(c.ctx, &mcp.ReadResourceParams{URI: "skill://pdf/pipe"}); code(err) != -32602 {
		t.Errorf("got %v, want -32602", err)
	}
	if res := c.call("read_skill_file", args{"skill": "pdf", "path": "pipe"}); !res.IsError {
		t.Errorf("got %q", textOf(res))
	}
	c.check(c.get("skill://pdf/SKILL.md"))
}

func TestReadingADirectory(t *testing.T) {
	tree := basic()
	tree["pdf/references/deep/a b.md"] = "x"
	everyWay(t, setup{tree: tree}, func(t *testing.T, w *world, c *client) {
		children := func(uri string) []string {
			t.Helper()
			res, err := c.custom("resources/directory/read", &rawParams{URI: uri})
			if err != nil {
				t.Fatalf("%s: %v", uri, err)
			}
			var out []string
			for _, raw := range res.Resources {
				var r mcp.Resource
				if err := json.Unmarshal(raw, &r); err != nil {
					t.Fatal(err)
				}
				out = append(out, fmt.Sprintf("%s %s %s %d", r.URI, r.Name, r.MIMEType, r.Size))
			}
			return out
		}
		size := len(tree["pdf/SKILL.md"])
		for uri, want := range map[string][]string{
			"skill://pdf": {
				fmt.Sprintf("skill://pdf/SKILL.md SKILL.md text/markdown %d", size),
				"skill://pdf/assets assets inode/directory 0",
				"skill://pdf/empty.md empty.md text/markdown 0",
				"skill://pdf/references references inode/directory 0",
				"skill://pdf/scripts scripts inode/directory 0",
			},
			"skill://pdf/references":      {"skill://pdf/references/deep deep inode/directory 0", "skill://pdf/references/forms.md forms.md text/markdown 16"},
			"skill://pdf/references/deep": {"skill://pdf/references/deep/a%20b.md a b.md text/markdown 1"},
			"skill://pdf/ref%65rences":    {"skill://pdf/references/deep deep inode/directory 0", "skill://pdf/references/forms.md forms.md text/markdown 16"},
		} {
			if got := children(uri); !slices.Equal(got, want) {
				t.Errorf("%s has %q, want %q", uri, got, want)
			}
		}
		for _, uri := range append(hostileURIs(), "skill://pdf/SKILL.md", "skill://pdf/", "skill://pdf/references/", "skill://pdf/references/forms.md", "skill://pdf/ref") {
			if _, err := c.custom("resources/directory/read", &rawParams{URI: uri}); code(err) != -32602 {
				t.Errorf("%.60q: %v, want -32602", uri, err)
			}
		}
	})
}

func TestDirectoryPages(t *testing.T) {
	tree := files{"many/SKILL.md": skillText("many", "x")}
	for i := range 510 {
		tree[fmt.Sprintf("many/files/%04d.md", i)] = "x"
	}
	w := newWorld(t, setup{tree: tree})
	c := w.connect(t, way{"stdio", modern}, nil)
	first, err := c.custom("resources/directory/read", &rawParams{URI: "skill://many/files"})
	if err != nil || len(first.Resources) != 500 || first.NextCursor == "" {
		t.Fatalf("%d children, cursor %q, %v", len(first.Resources), first.NextCursor, err)
	}
	rest, err := c.custom("resources/directory/read", &rawParams{URI: "skill://many/files", Cursor: first.NextCursor})
	if err != nil || len(rest.Resources) != 10 || rest.NextCursor != "" || !strings.Contains(string(rest.Resources[0]), "0500.md") {
		t.Errorf("%d children, cursor %q, %v", len(rest.Resources), rest.NextCursor, err)
	}
	if _, err := c.custom("resources/directory/read", &rawParams{URI: "skill://many/files", Cursor: "!"}); code(err) != -32602 {
		t.Errorf("a cursor of one's own: %v", err)
	}
}

// Skills in archives and in the program are served as those in directories.
func TestArchivesAndEmbeddedSkillsAreServed(t *testing.T) {
	var buf bytes.Buffer
	zw := zip.NewWriter(&buf)
	for name, text := range map[string]string{"zipped/SKILL.md": skillText("zipped", "In {baseDir}.\n"), "zipped/a.md": "a", "zipped/b.bin": "\x00\xff"} {
		f, err := zw.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		f.Write([]byte(text))
	}
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, setup{
		tree:    files{"zipped.skill": buf.String()},
		sources: []catalog.Source{catalog.NewFS("embedded", catalog.Bundled, fstest.MapFS{"inner/SKILL.md": {Data: []byte(skillText("inner", "In {baseDir}.\n"))}, "inner/refs/r.md": {Data: []byte("r")}})},
	})
	c := w.connect(t, way{"http", modern}, nil)
	entries := c.list()
	if got := uris(entries); !slices.Equal(got, []string{"skill://zipped/SKILL.md", "skill://inner/SKILL.md"}) {
		t.Errorf("skills %q", got)
	}
	for _, e := range entries {
		c.check(e)
	}
	for _, name := range []string{"zipped", "inner"} {
		if got := structured[loadResult](t, c.call("load_skill", args{"name": name})); got.Location != "skill://"+name || got.Instructions != "In skill://"+name+"." {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := structured[readResult](t, c.call("read_skill_file", args{"skill": "zipped", "path": "b.bin"})); got.Location != "skill://zipped/b.bin" {
		t.Errorf("got %+v", got)
	}
}

func TestEditedFileIsReadAsItIs(t *testing.T) {
	everyWay(t, setup{tree: basic()}, func(t *testing.T, w *world, c *client) {
		digest := func(e *skillEntry, uri string) string {
			for _, r := range e.Resources {
				if r.URI == uri {
					return r.Digest
				}
			}
			return ""
		}
		const uri, md = "skill://pdf/references/forms.md", "skill://pdf/SKILL.md"
		held := c.get(md)
		c.read(uri)
		files{"pdf/references/forms.md": "# Forms, edited\n", "pdf/SKILL.md": skillText("pdf", "# Edited\n"), "pdf/added.md": "new"}.write(t, w.dir)
		if got := c.read(uri); string(got) != "# Forms, edited\n" || digest(held, uri) == "sha256:"+skillfile.Hash(got) {
			t.Errorf("got %q", got)
		}
		fresh := c.get(md)
		c.check(fresh)
		if len(fresh.Resources) != len(held.Resources)+1 {
			t.Errorf("the entry now has %d resources, before it had %d", len(fresh.Resources), len(held.Resources))
		}
		if digest(fresh, md) != digestOf(skillText("pdf", "# Edited\n")) {
			t.Errorf("the digest of SKILL.md is %s", digest(fresh, md))
		}
	})
}

func TestResourcesAreListed(t *testing.T) {
	everyWay(t, setup{tree: basic()}, func(t *testing.T, w *world, c *client) {
		list, err := c.ListResources(c.ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range list.Resources {
			got = append(got, r.URI+" "+r.Name+" "+r.MIMEType)
		}
		if len(got) != 5 || got[3] != "skill://pdf/SKILL.md pdf text/markdown" {
			t.Errorf("resources %q", got)
		}
		templates, err := c.ListResourceTemplates(c.ctx, nil)
		if err != nil || len(templates.ResourceTemplates) != 1 || templates.ResourceTemplates[0].URITemplate != "skill://{+path}" {
			t.Errorf("templates %+v, %v", templates, err)
		}
	})
}
