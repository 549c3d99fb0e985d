package profile_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/loadout-dev/loadout/internal/profile"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/skill"
)

// wegent is a Ghost as its own system writes it.
const wegent = `apiVersion: agent.wecode.io/v1
kind: Ghost
metadata:
  name: weibo-test
spec:
  systemPrompt: "You are a Weibo analyst"
  skills:
    - weibo
  mcpServers:
    weiboServer:
      type: streamable-http
      url: https://weibo-api.example.com
      headers:
        Authorization: Bearer ${{user.weibo_token}}
`

// plain compares exported fields.
var plain = cmpopts.IgnoreUnexported(upstream.Config{})

func found(ds []skill.Diagnostic) []string {
	var out []string
	for _, d := range ds {
		out = append(out, fmt.Sprintf("%s %d:%d %s", d.Severity, d.Line, d.Column, d.Code))
	}
	return out
}

func TestGhostOfWegent(t *testing.T) {
	got, ds := profile.Parse([]byte(wegent), "weibo.yaml")
	want := []*profile.Profile{{
		Name: "weibo-test", SystemPrompt: "You are a Weibo analyst", Skills: []string{"weibo"}, File: "weibo.yaml", Line: 4,
		MCPServers: []*upstream.Config{{
			Name: "weiboServer", Type: upstream.HTTP, URLs: []string{"https://weibo-api.example.com"},
			Headers: map[string]string{"Authorization": "Bearer ${{user.weibo_token}}"}, File: "weibo.yaml", Line: 10,
		}},
	}}
	if diff := cmp.Diff(want, got, plain); diff != "" || len(ds) > 0 {
		t.Errorf("(-want +got):\n%s%v", diff, ds)
	}
	granted := upstream.Variables{User: func(name string) (string, bool) { return "t0ken", name == "weibo_token" }}
	if c, unset := got[0].MCPServers[0].Resolve(granted); len(unset) > 0 || c.Headers["Authorization"] != "Bearer t0ken" {
		t.Errorf("%+v %v", c, unset)
	}
}

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		name, file, src string
		want            []*profile.Profile
		found           []string
	}{
		{"our own form", "g.yaml", `apiVersion: loadout/v1
kind: Ghost
metadata: {name: analyst, description: reads numbers}
spec:
  skills: csv-analysis, team/pdf
  preload: [team/pdf]
  mcpServers: [weather, docs]
  expose: direct
  policy: {rules: ["deny mcp.*.delete"]}
`, []*profile.Profile{{Name: "analyst", Description: "reads numbers", Skills: []string{"csv-analysis", "team/pdf"}, Preload: []string{"team/pdf"}, ServerNames: []string{"weather", "docs"},
			Expose: "direct", Policy: []byte(`{"rules":["deny mcp.*.delete"]}`), File: "g.yaml", Line: 3}}, nil},
		{"other kinds beside", "g.yaml", "kind: Bot\nmetadata: {name: b}\n---\n# nothing\n---\napiVersion: loadout/v1\nkind: Ghost\nmetadata: {name: a}\nspec: {skills: [x, {name: y}, x]}\n---\nkind: Team\n",
			[]*profile.Profile{{Name: "a", Skills: []string{"x", "y"}, File: "g.yaml", Line: 8}}, []string{"info 1:7 profile-kind", "info 11:7 profile-kind"}},
		{"JSON", "g.json", `{"apiVersion": "loadout/v1", "kind": "Ghost", "metadata": {"name": "a"}, "spec": {"preload_skills": ["p"], /* c */}}`,
			[]*profile.Profile{{Name: "a", Skills: []string{"p"}, Preload: []string{"p"}, File: "g.json", Line: 1}}, []string{"warning 1:101 profile-preload"}},
		{"an error later hides nothing before", "g.yaml", "apiVersion: loadout/v1\nkind: Ghost\nmetadata: {name: a}\nspec: {}\n---\nkind: 'Ghost\n",
			[]*profile.Profile{{Name: "a", File: "g.yaml", Line: 3}}, []string{"error 6:7 profile-unreadable"}},
		{"a bad server", "g.yaml", "apiVersion: loadout/v1\nkind: Ghost\nmetadata: {name: a}\nspec:\n  mcpServers:\n    x: {type: pigeon, url: 'https://x.example'}\n    y: {command: z}\n",
			[]*profile.Profile{{Name: "a", File: "g.yaml", Line: 3, MCPServers: []*upstream.Config{{Name: "y", Type: upstream.Stdio, Command: "z", File: "g.yaml", Line: 7}}}}, []string{"error 6:15 server-type"}},
		{"twice", "g.yaml", "apiVersion: loadout/v1\nkind: Ghost\nmetadata: {name: a}\nspec: {}\n---\napiVersion: loadout/v1\nkind: Ghost\nmetadata: {name: a}\nspec: {skills: [b]}\n",
			[]*profile.Profile{{Name: "a", File: "g.yaml", Line: 3}}, []string{"warning 8:18 profile-duplicate"}},
		{"odd", "g.yaml", "kind: Ghost\nmetadata: {name: a}\nspec: {skills: {b: 1}, skill_refs: {}, colour: red, expose: [x], skills: [c, [d], \"e\\u202e\"], systemPrompt: ~}\n",
			[]*profile.Profile{{Name: "a", Skills: []string{"c"}, File: "g.yaml", Line: 2}},
			[]string{"info 1:1 profile-version", "warning 3:8 profile-key-twice", "info 3:24 profile-hub-only", "info 3:40 profile-key", "warning 3:61 profile-value", "warning 3:78 profile-skill", "warning 3:83 profile-skill"}},
		{"a later version", "g.yaml", "apiVersion: loadout/v9\nkind: Ghost\nmetadata: {name: a}\n", []*profile.Profile{{Name: "a", File: "g.yaml", Line: 3}}, []string{"warning 1:13 profile-version", "warning 3:18 profile-empty"}},
		{"no kind", "g.yaml", "skills: [a]\n", nil, []string{"error 1:1 profile-kind"}},
		{"no map", "g.yaml", "- a\n", nil, []string{"error 1:1 profile-shape"}},
		{"no name", "g.yaml", "apiVersion: loadout/v1\nkind: Ghost\nspec: {}\n", nil, []string{"error 2:7 profile-name"}},
		{"a path as name", "g.yaml", "apiVersion: loadout/v1\nkind: Ghost\nmetadata: {name: ../x}\n", nil, []string{"error 3:18 profile-name"}},
		{"spec is a list", "g.yaml", "apiVersion: loadout/v1\nkind: Ghost\nmetadata: {name: x}\nspec: [a]\n", nil, []string{"error 4:7 profile-shape"}},
		{"nothing", "g.yaml", "# nothing\n", nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, ds := profile.Parse([]byte(tt.src), tt.file)
			if diff := cmp.Diff(tt.want, got, plain) + cmp.Diff(tt.found, found(ds)); diff != "" {
				t.Errorf("(-want +got):\n%s%v", diff, ds)
			}
		})
	}
}

func TestReadDir(t *testing.T) {
	ghost := func(name string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("apiVersion: loadout/v1\nkind: Ghost\nmetadata: {name: " + name + "}\nspec: {skills: [a]}\n")}
	}
	got, problems, err := profile.ReadDir(fstest.MapFS{
		"b.yml": ghost("b"), "a.yaml": ghost("a"), "c.json": {Data: []byte("{")}, "d.yaml": ghost("a"), "README.md": {Data: []byte("#")},
		"below/e.yaml": ghost("e"), "f.yaml": {Mode: fs.ModeDir}, "g.yaml": {Data: []byte(strings.Repeat(" ", 1<<20+1))},
	})
	var names, said []string
	for _, p := range got {
		names = append(names, p.File+" "+p.Name)
	}
	for _, p := range problems {
		said = append(said, p.String())
	}
	want := []string{
		"c.json:1:2: error: cannot read the file: not valid JSON: parsing value: unexpected EOF [profile-unreadable]",
		`d.yaml:3:1: warning: Ghost "a" is already defined in a.yaml; this one is skipped [profile-duplicate]`,
		"f.yaml: error: cannot read the file: not a regular file [profile-unreadable]",
		"g.yaml: error: cannot read the file: file too large (1048577 bytes, limit 1048576) [profile-unreadable]",
	}
	if diff := cmp.Diff([]string{"a.yaml a", "b.yml b"}, names) + cmp.Diff(want, said); diff != "" || err != nil {
		t.Errorf("(-want +got):\n%s%v", diff, err)
	}
	if got, problems, err := profile.ReadDir(os.DirFS(filepath.Join(t.TempDir(), "none"))); got != nil || problems != nil || err != nil {
		t.Errorf("of no directory: %v %v %v", got, problems, err)
	}
}

func TestLimits(t *testing.T) {
	names := func(n int) []string {
		out := make([]string, n)
		for i := range out {
			out[i] = fmt.Sprintf("s%d", i)
		}
		return out
	}
	const head = "apiVersion: loadout/v1\nkind: Ghost\nmetadata: {name: a, description: d}\nspec: {description: long, skills: "
	long := strings.Repeat("x", 256)
	for _, tt := range []struct {
		what, skills string
		want         int
		found        string
	}{
		{"as many skills as permitted", "[" + strings.Join(names(1000), ", ") + "]", 1000, ""},
		{"too many skills", "[" + strings.Join(names(1001), ", ") + "]", 1000, "profile-skill"},
		{"as long as permitted", "[" + long + "]", 1, ""},
		{"too long", "[a, " + long + "x]", 1, "profile-skill"},
	} {
		got, ds := profile.Parse([]byte(head+tt.skills+"}\n"), "g.yaml")
		code := ""
		if len(ds) > 0 {
			code = ds[len(ds)-1].Code
		}
		if len(got) != 1 || len(got[0].Skills) != tt.want || code != tt.found || len(ds) > 1 {
			t.Errorf("%s: %d profiles, problems %v", tt.what, len(got), ds)
		}
	}
	files := fstest.MapFS{}
	for i := range 501 {
		files[fmt.Sprintf("%04d.yaml", i)] = &fstest.MapFile{Data: fmt.Appendf(nil, "apiVersion: loadout/v1\nkind: Ghost\nmetadata: {name: g%d}\nspec: {skills: [a]}\n", i)}
	}
	got, problems, err := profile.ReadDir(files)
	if err != nil || len(got) != 500 || len(problems) != 1 || problems[0].Code != "profile-many" {
		t.Errorf("of 501 files: %d profiles, %v, %v", len(got), problems, err)
	}
}

// A link in a repository leads to no file outside of it.
func TestReadDirFollowsNoSymlinkOut(t *testing.T) {
	outside, dir := filepath.Join(t.TempDir(), "secret.yaml"), t.TempDir()
	if err := os.WriteFile(outside, []byte(wegent), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "a.yaml")); err != nil {
		t.Skip(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	got, problems, err := profile.ReadDir(root.FS())
	if len(got) > 0 || len(problems) != 1 || problems[0].Code != "profile-unreadable" || err != nil {
		t.Errorf("%v %v %v", got, problems, err)
	}
}

// FuzzParse checks that profiles have unique names that fit into a URL, and that
// preloaded skills are among their skills.
func FuzzParse(f *testing.F) {
	f.Add([]byte(wegent), "a.yaml")
	f.Add([]byte("kind: Ghost\nmetadata: &m {name: a}\nspec: {preload: [p], mcp_servers: [x], expose: direct, policy: {a: [1]}}\n---\nkind: Ghost\nmetadata: *m\n"), "a.yaml")
	f.Add([]byte(`{"kind": "Ghost", "metadata": {"name": "a"}, "spec": {"skills": "a, b",},}`), "a.json")
	f.Fuzz(func(t *testing.T, src []byte, file string) {
		got, ds := profile.Parse(src, file)
		again, ds2 := profile.Parse(src, file)
		if diff := cmp.Diff(got, again, plain) + cmp.Diff(ds, ds2); diff != "" {
			t.Fatalf("two answers for one file:\n%s", diff)
		}
		for _, d := range ds {
			if d.Code == "" || d.Message == "" || d.Line < 0 || d.Severity != skill.Info && d.Fix == "" || strings.ContainsAny(d.Message+d.Fix, "\n\x1b") {
				t.Errorf("unfinished diagnostic %+v", d)
			}
		}
		names := map[string]bool{}
		for _, p := range got {
			if p.Name == "" || strings.ContainsAny(p.Name, "/\\?#%\n\x1b") || names[p.Name] || p.Line < 1 {
				t.Errorf("profile %+v", p)
			}
			names[p.Name] = true
			in := map[string]bool{}
			for _, s := range p.Skills {
				if s == "" || in[s] {
					t.Errorf("skill %q", s)
				}
				in[s] = true
			}
			for _, s := range p.Preload {
				if !in[s] {
					t.Errorf("%q is preloaded and not among the skills", s)
				}
			}
			for _, c := range p.MCPServers {
				if c.Name == "" || (c.Command == "") == (len(c.URLs) == 0) {
					t.Errorf("server %+v", c)
				}
			}
		}
	})
}
