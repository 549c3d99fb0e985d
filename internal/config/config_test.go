package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/sandbox/selection"
)

// machine is a home directory, a repository and an environment.
type machine struct {
	t    *testing.T
	root string
	env  map[string]string
	in   config.Input
}

// newMachine has the working directory repo/pkg of the repository repo.
func newMachine(t *testing.T) *machine {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	m := &machine{t: t, root: root, env: map[string]string{}}
	m.in = config.Input{WorkDir: m.at("repo/pkg"), Home: m.at("home"), Getenv: func(name string) string { return m.env[name] }, Flags: map[string]string{}}
	m.write("repo/.git/HEAD", "")
	m.write("repo/pkg/x", "")
	m.write("home/x", "")
	return m
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (m *machine) at(p string) string { return filepath.Join(m.root, filepath.FromSlash(p)) }

func (m *machine) write(p, content string) string {
	m.t.Helper()
	must(m.t, os.MkdirAll(filepath.Dir(m.at(p)), 0o755))
	must(m.t, os.WriteFile(m.at(p), []byte(content), 0o644))
	return m.at(p)
}

const (
	userFile    = "home/.config/loadout/loadout.yaml"
	projectFile = "repo/loadout.yaml"
)

func (m *machine) load() *config.Config {
	m.t.Helper()
	c, err := config.Load(m.in)
	must(m.t, err)
	return c
}

// faults returns the faults of a configuration that cannot be loaded, with the root
// directory written as ROOT.
func (m *machine) faults() []string {
	m.t.Helper()
	c, err := config.Load(m.in)
	if err == nil {
		return nil
	}
	ce, ok := errors.AsType[*config.Error](err)
	if !ok || c != nil {
		m.t.Fatalf("got %v and %T: %v", c, err, err)
	}
	var out []string
	for _, f := range ce.Faults {
		out = append(out, m.plain(f))
		if !strings.Contains(err.Error(), f) {
			m.t.Errorf("the message leaves out %q", f)
		}
	}
	return out
}

func (m *machine) plain(s string) string {
	return strings.ReplaceAll(filepath.ToSlash(strings.ReplaceAll(s, m.root, "ROOT")), `\\`, "/")
}

func (m *machine) notes(c *config.Config) []string {
	var out []string
	for _, n := range c.Notes {
		out = append(out, m.plain(n.Where+": "+n.Message))
	}
	return out
}

func (m *machine) paths(paths []string) []string {
	out := []string{}
	for _, p := range paths {
		out = append(out, m.plain(p))
	}
	return out
}

// values returns the values that differ from the default, as "key value (from)".
func (m *machine) values(c *config.Config) []string {
	var out []string
	for _, v := range c.Values() {
		if v.From != "default" {
			out = append(out, m.plain(fmt.Sprintf("%s %s (%s)", v.Key, v.Text(), v.From)))
		}
	}
	return out
}

func TestDefaults(t *testing.T) {
	m := newMachine(t)
	c := m.load()
	if got := m.values(c); len(got) > 0 || len(c.Files)+len(c.Notes)+len(c.Inherited) > 0 {
		t.Errorf("values %q, files %q, notes %v, inherited %q; want none", got, c.Files, c.Notes, c.Inherited)
	}
	s := c.Skills
	if !s.Enabled || !s.Project || !s.Home || !s.Bundled || !s.Watch || s.Depth != 6 || len(s.Dirs)+len(s.Allow) > 0 || c.MCP.TextBudget != 0 || c.MCP.Address != "" {
		t.Errorf("got %+v", c)
	}
}

// The example has every key, and changes nothing as it stands.
func TestExampleEqualsDefaults(t *testing.T) {
	want := newMachine(t).load().Values()
	for _, location := range []string{userFile, "other.yaml", projectFile} {
		m := newMachine(t)
		file := m.write(location, config.Example())
		if location == "other.yaml" {
			m.in.File = file
		}
		c := m.load()
		for i, v := range c.Values() {
			if location != projectFile && v.From != file {
				t.Errorf("%s is not in the example: it comes from %s", v.Key, v.From)
			}
			v.From = "default"
			if diff := cmp.Diff(want[i], v); diff != "" {
				t.Errorf("%s (-default +example):\n%s", location, diff)
			}
		}
		if location != projectFile && len(c.Notes) > 0 {
			t.Errorf("notes %v", c.Notes)
		}
	}
	for _, v := range want {
		env := "LOADOUT_" + strings.ToUpper(strings.ReplaceAll(v.Key, ".", "_"))
		named := strings.Contains(config.Example(), "# Environment: "+env+"\n")
		if none := v.Key == "policy.approved" || v.Key == "policy.presence"; named == none { // an agent could set a variable
			t.Errorf("the example names %s: %v", env, named)
		}
	}
}

func TestVariants(t *testing.T) {
	for _, tt := range []struct {
		file string
		want []string
	}{
		{"development", []string{
			`skills.dirs ["TESTDATA/drafts", "ROOT/home/more", "/srv/skills/pack.zip"] (FILE)`, "skills.depth 9 (FILE)",
			`mcp.address "127.0.0.1:8485" (FILE)`, "mcp.text_budget 20000 (FILE)",
		}},
		{"locked-down", []string{
			`skills.dirs ["/opt/skills"] (FILE)`, "skills.project false (FILE)", "skills.home false (FILE)", "skills.bundled false (FILE)",
			`skills.allow ["pdf@>=1.2", "docs-*", "csv-analysis"] (FILE)`, "skills.watch false (FILE)",
		}},
		{"off", []string{"skills.enabled false (FILE)"}},
	} {
		t.Run(tt.file, func(t *testing.T) {
			file, err := filepath.Abs(filepath.Join("testdata", tt.file+".yaml"))
			must(t, err)
			m := newMachine(t)
			m.in.File = file
			c := m.load()
			var got []string
			for _, v := range m.values(c) {
				got = append(got, strings.ReplaceAll(strings.ReplaceAll(v, filepath.ToSlash(file), "FILE"), filepath.ToSlash(filepath.Dir(file)), "TESTDATA"))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !slices.Equal(c.Files, []string{file}) || len(c.Notes) > 0 {
				t.Errorf("files %q, notes %v", c.Files, c.Notes)
			}
			// What is shown is a configuration file again, that says the same.
			again := newMachine(t)
			var b strings.Builder
			for _, v := range c.Values() {
				group, key, _ := strings.Cut(v.Key, ".")
				if !strings.Contains(b.String(), group+":\n") {
					b.WriteString(group + ":\n")
				}
				fmt.Fprintf(&b, "  %s: %s\n", key, v.Text())
			}
			again.write(userFile, b.String())
			for i, v := range again.load().Values() {
				if want := c.Values()[i]; v.Text() != want.Text() {
					t.Errorf("%s read back is %s, want %s", v.Key, v.Text(), want.Text())
				}
			}
		})
	}
}

func TestLaterSourcesOverrideEarlierOnes(t *testing.T) {
	m := newMachine(t)
	set := func(depth int) string {
		return fmt.Sprintf("skills:\n  depth: %d\n  allow: [a%d]\n  dirs: [d%d]\n", depth, depth, depth)
	}
	check := func(want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, m.values(m.load())); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	m.write(userFile, set(1))
	check(`skills.dirs ["ROOT/home/.config/loadout/d1"] (ROOT/`+userFile+`)`, `skills.allow ["a1"] (ROOT/`+userFile+`)`, "skills.depth 1 (ROOT/"+userFile+")")
	m.write(projectFile, set(2)) // adds a directory, and nothing else
	check(`skills.dirs ["ROOT/home/.config/loadout/d1", "ROOT/repo/d2"] (ROOT/`+userFile+`, ROOT/`+projectFile+`)`,
		`skills.allow ["a1"] (ROOT/`+userFile+`)`, "skills.depth 1 (ROOT/"+userFile+")")
	m.in.File = m.write("x/third.yaml", set(3))
	check(`skills.dirs ["ROOT/x/d3"] (ROOT/x/third.yaml)`, `skills.allow ["a3"] (ROOT/x/third.yaml)`, "skills.depth 3 (ROOT/x/third.yaml)")
	m.env["LOADOUT_SKILLS_DEPTH"], m.env["LOADOUT_SKILLS_ALLOW"] = "4", "a4, b4"
	m.env["LOADOUT_SKILLS_DIRS"] = "d4" + string(filepath.ListSeparator) + m.at("e4")
	check(`skills.dirs ["ROOT/repo/pkg/d4", "ROOT/e4"] (LOADOUT_SKILLS_DIRS)`, `skills.allow ["a4", "b4"] (LOADOUT_SKILLS_ALLOW)`, "skills.depth 4 (LOADOUT_SKILLS_DEPTH)")
	m.in.Flags["skills.depth"] = "5"
	check(`skills.dirs ["ROOT/repo/pkg/d4", "ROOT/e4"] (LOADOUT_SKILLS_DIRS)`, `skills.allow ["a4", "b4"] (LOADOUT_SKILLS_ALLOW)`, "skills.depth 5 (command line)")
	if got := m.paths(m.load().Files); !slices.Equal(got, []string{"ROOT/" + userFile, "ROOT/" + projectFile, "ROOT/x/third.yaml"}) {
		t.Errorf("files %q", got)
	}
}

func TestUserFilePath(t *testing.T) {
	m := newMachine(t)
	for _, tt := range []struct {
		env  map[string]string
		want string
	}{
		{nil, "ROOT/" + userFile},
		{map[string]string{"XDG_CONFIG_HOME": m.at("cfg")}, "ROOT/cfg/loadout/loadout.yaml"},
		{map[string]string{"XDG_CONFIG_HOME": "relative"}, "ROOT/" + userFile}, // as that specification says
		{map[string]string{"LOADOUT_CONFIG": m.at("mine.yaml"), "XDG_CONFIG_HOME": m.at("cfg")}, "ROOT/mine.yaml"},
		{map[string]string{"LOADOUT_CONFIG": "mine.yaml"}, "ROOT/repo/pkg/mine.yaml"},
		{map[string]string{"LOADOUT_CONFIG": "~/mine.yaml"}, "ROOT/home/mine.yaml"},
	} {
		m.env = tt.env
		if got := m.plain(config.UserFile(m.in)); got != tt.want {
			t.Errorf("with %v: %s, want %s", tt.env, got, tt.want)
		}
	}
	m.env, m.in.Home = nil, ""
	if got := config.UserFile(m.in); got != "" {
		t.Errorf("without a home: %s", got)
	}
	m.load()
}

func TestProjectFilePath(t *testing.T) {
	m := newMachine(t)
	check := func(what, want, wantRoot string) {
		t.Helper()
		file, root := config.ProjectFile(m.in.WorkDir)
		if m.plain(file) != want || m.plain(root) != wantRoot {
			t.Errorf("%s: %q in %q, want %q in %q", what, m.plain(file), m.plain(root), want, wantRoot)
		}
	}
	check("none", "", "ROOT/repo")
	m.write("loadout.yaml", "")
	check("one above the repository", "", "ROOT/repo")
	m.write("repo/.loadout/loadout.yaml", "")
	check("in .loadout", "ROOT/repo/.loadout/loadout.yaml", "ROOT/repo")
	m.write("repo/loadout.yaml", "")
	check("at the root", "ROOT/repo/loadout.yaml", "ROOT/repo")
	m.write("repo/pkg/loadout.yaml", "")
	check("nearer", "ROOT/repo/pkg/loadout.yaml", "ROOT/repo")
	must(t, os.Remove(m.at("repo/pkg/loadout.yaml")))
	must(t, os.Mkdir(m.at("repo/pkg/loadout.yaml"), 0o755))
	check("a directory is none", "ROOT/repo/loadout.yaml", "ROOT/repo")
	m.in.WorkDir = m.at("home")
	m.write("home/loadout.yaml", "")
	check("outside a repository there is none", "", "")
}

func TestProjectFileAddsOnlyDirectoriesInsideProject(t *testing.T) {
	m := newMachine(t)
	m.write("repo/inside/x", "")
	m.write("outside/x", "")
	for link, to := range map[string]string{"repo/leadsout": "../outside", "repo/leadsin": "inside", "repo/leadsnowhere": "../nowhere", "repo/inside/up": ".."} {
		must(t, os.Symlink(filepath.FromSlash(to), m.at(link)))
	}
	m.write(userFile, "skills:\n  dirs: [/mine]\n  allow: [pdf]\n")
	m.write(projectFile, `
skills:
  dirs: [inside, ./new/dir, leadsin, inside/up/inside, `+m.at("repo")+`/abs, .., ../outside, `+m.at("outside")+`, ~/x, leadsout, leadsout/below, leadsout/not/yet, leadsnowhere, leadsnowhere/x, inside/../../outside, /mine]
  allow: ["*"]
  enabled: false
  home: nonsense
mcp:
  address: 0.0.0.0:80
  token_file: /etc/passwd
`)
	c := m.load()
	if diff := cmp.Diff([]string{"/mine", "ROOT/repo/inside", "ROOT/repo/new/dir", "ROOT/repo/leadsin", "ROOT/repo/inside/up/inside", "ROOT/repo/abs"}, m.paths(c.Skills.Dirs)); diff != "" {
		t.Errorf("directories (-want +got):\n%s", diff)
	}
	for _, d := range c.Skills.Dirs {
		if got := c.ProjectOf(d) != ""; got != (d != "/mine") {
			t.Errorf("%s is of the project: %v", d, got)
		}
	}
	if !slices.Equal(c.Skills.Allow, []string{"pdf"}) || !c.Skills.Enabled || !c.Skills.Home || c.MCP.Address != "" || c.MCP.TokenFile != "" {
		t.Errorf("more than directories took effect: %+v", c)
	}
	outside := 0
	for _, n := range m.notes(c) {
		if !strings.HasPrefix(n, "ROOT/"+projectFile+":") {
			t.Errorf("the note does not say where: %s", n)
		}
		if strings.Contains(n, "outside the project") {
			outside++
		}
	}
	if outside != 11 || len(c.Notes) != outside+5 {
		t.Errorf("%d notes on directories outside and %d on other keys, want 11 and 5:\n%s", outside, len(c.Notes)-outside, strings.Join(m.notes(c), "\n"))
	}
}

func TestProjectFileCannotRemoveUserSettings(t *testing.T) {
	m := newMachine(t)
	m.write(userFile, "skills:\n  dirs: [/mine]\n")
	for _, text := range []string{"skills:\n  dirs: []\n", "skills:\n  dirs:\n", "skills:\n  dirs: {a: b}\n", "skills:\n  dirs: [[/x]]\n", "skills:\n", ""} {
		m.write(projectFile, text)
		if got := m.load().Skills.Dirs; !slices.Equal(got, []string{"/mine"}) {
			t.Errorf("with %q: %q", text, got)
		}
	}
}

func TestBrokenProjectFileIsOnlyANote(t *testing.T) {
	for what, text := range map[string]string{
		"no YAML":               "skills: [",
		"a list":                "- a\n",
		"text":                  "hello\n",
		"two documents":         "a: 1\n---\nb: 2\n",
		"a wrong type":          "skills:\n  dirs: {a: b}\n",
		"a bad item at the end": "skills:\n  dirs: [/etc, {a: b}]\n", // no part of it comes into force
		"an empty item":         "skills:\n  dirs: [inside, '']\n",
		"an unknown key":        "skills:\n  dir: [inside]\n",
		"a NUL byte":            "skills:\x00\n",
		"not UTF-8":             "skills: \xff\n",
		"huge":                  strings.Repeat("# x\n", 1<<19),
		"many keys":             strings.Repeat("x", 3) + ":\n" + manyKeys(20_000),
		"deep":                  strings.Repeat("[", 500_000),
		"aliases":               "a: &a [x,x,x,x]\nb: &b [*a,*a,*a,*a]\nc: [*b,*b,*b,*b]\nskills: *a\n",
		"an alias to itself":    "skills: &a {dirs: *a}\n",
		"odd keys":              "? [a, b]\n: c\n? {d: e}\n: f\n",
		"a key that escapes":    "\"\\e[31m\\n\": 1\n",
	} {
		t.Run(what, func(t *testing.T) {
			m := newMachine(t)
			m.write("repo/inside/x", "")
			m.write(projectFile, text)
			c := m.load()
			if got := m.values(c); len(got) > 0 || len(c.Skills.Dirs) > 0 {
				t.Errorf("took effect: %q", got)
			}
			if len(c.Notes) == 0 || len(c.Notes) > 21 {
				t.Errorf("%d notes, want some and not many", len(c.Notes))
			}
			for _, n := range c.Notes {
				if len(n.Message) > 1000 || strings.ContainsAny(n.Message, "\x1b\n\x00") {
					t.Errorf("the note is too long, or not safe to print: %.100q", n.Message)
				}
			}
		})
	}
	t.Run("not readable", func(t *testing.T) {
		if os.Geteuid() == 0 {
			t.Skip("root may read everything")
		}
		m := newMachine(t)
		must(t, os.Chmod(m.write(projectFile, ""), 0))
		if c := m.load(); len(c.Notes) != 1 {
			t.Errorf("notes %v", c.Notes)
		}
	})
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "key%d: 1\n", i)
	}
	return b.String()
}

// What was meant to restrict must not be passed over because it cannot be read.
func TestK2UnreadableUserFileIsAnError(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"skills: [", "ROOT/FILE:2:1: is not valid YAML: "},
		{"skills:\n  allow: pdf: csv\n", "ROOT/FILE:2:13: is not valid YAML: "},
		{"- a\n", "ROOT/FILE:1:1: expected keys and values below the top level"},
		{"hello\n", "ROOT/FILE:1:1: expected keys and values below the top level"},
		{"skills: 7\n", "ROOT/FILE:1:9: expected keys and values below skills"},
		{"a: 1\n---\nb: 2\n", "ROOT/FILE: contains more than one YAML document: delete the second --- and everything after it"},
		{"skill:\n  enabled: false\n", "ROOT/FILE:1:1: unknown key skill; known keys: skills, mcp, "},
		{"skills:\n  enable: false\n", "ROOT/FILE:2:3: unknown key skills.enable; known keys: skills.enabled, "},
		{"skills.enabled: false\n", `ROOT/FILE:1:1: unknown key "skills.enabled"; known keys: skills, mcp, `},
		{"skills:\n  enabled: false\n  enabled: true\n", "ROOT/FILE:3:3: duplicate key skills.enabled"},
		{"skills:\n  enabled: false\nskills:\n  enabled: true\n", "ROOT/FILE:3:1: duplicate key skills"},
		{"skills:\n  enabled: maybe\n", `ROOT/FILE:2:12: skills.enabled: expected true or false, got "maybe"`},
		{"skills:\n  enabled:\n", "ROOT/FILE:2:11: skills.enabled: missing value: want true or false"},
		{"skills:\n  enabled: [false]\n", "ROOT/FILE:2:12: skills.enabled: expected true or false"},
		{"skills:\n  depth: six\n", `ROOT/FILE:2:10: skills.depth: not a number: "six"`},
		{"skills:\n  depth:\n", `ROOT/FILE:2:9: skills.depth: not a number: ""`},
		{"skills:\n  depth: 1.5\n", `ROOT/FILE:2:10: skills.depth: not a number: "1.5"`},
		{"skills:\n  depth: 0\n", "ROOT/FILE:2:10: skills.depth: 0 is out of range 1 to 32"},
		{"skills:\n  depth: 99999999999999999999\n", `ROOT/FILE:2:10: skills.depth: not a number: "99999999999999999999"`},
		{"skills:\n  allow: {pdf: true}\n", "ROOT/FILE:2:10: skills.allow: expected a list of strings"},
		{"skills:\n  allow: [pdf, [csv]]\n", "ROOT/FILE:2:10: skills.allow: expected a list of strings"},
		{"skills:\n  allow: [pdf, '']\n", "ROOT/FILE:2:10: skills.allow: empty list item"},
		{"skills:\n  allow:\n    -\n", "ROOT/FILE:3:5: skills.allow: empty list item"},
		{"skills:\n  dirs: ['']\n", "ROOT/FILE:2:9: skills.dirs: empty list item"},
		{"x: &a [pdf]\nskills:\n  allow: *a\n", "ROOT/FILE:3:10: skills.allow: expected a list of strings"},
		{"sandbox:\n  python_index: pypi.internal\n", "ROOT/FILE:2:17: sandbox.python_index: expected a URL such as https://registry.example.com/path"},
		{"sandbox:\n  packages: [pandas>=2, 'x @ https://evil.example/x.whl']\n", "ROOT/FILE:2:13: sandbox.packages: expected names of Python packages with versions, such as pandas>=2"},
		{"sandbox:\n  npm_registry: file:///srv/npm\n", "ROOT/FILE:2:17: sandbox.npm_registry: expected a URL such as https://registry.example.com/path"},
		{"sandbox:\n  npm_registry: \"https://:8080/x\"\n", "ROOT/FILE:2:17: sandbox.npm_registry: expected a URL such as https://registry.example.com/path"},
		{"mcp:\n  compat: weknow\n", `ROOT/FILE:2:11: mcp.compat: "weknow" is not one of weknora, ba-agent, wegent`},
		{"mcp:\n  address: [a]\n", "ROOT/FILE:2:12: mcp.address: expected a string"},
		{"skills: \x00\n", "ROOT/FILE: is not valid YAML: "},
		{strings.Repeat("#", 1<<20+1), "ROOT/FILE: cannot read the file: want a regular file of at most 1048576 bytes"},
	} {
		for _, location := range []string{userFile, "named.yaml", "fromenv.yaml"} {
			m := newMachine(t)
			file := m.write(location, tt.text)
			switch location {
			case "named.yaml":
				m.in.File = file
			case "fromenv.yaml":
				m.env["LOADOUT_CONFIG"] = file
			}
			got := m.faults()
			want := strings.Replace(tt.want, "FILE", location, 1)
			if !slices.ContainsFunc(got, func(f string) bool { return strings.HasPrefix(f, want) }) {
				t.Errorf("%.60q: got %.200q, want %q", tt.text, got, want)
			}
		}
	}
}

func TestNamedFileMustExist(t *testing.T) {
	m := newMachine(t)
	m.in.File = "missing.yaml"
	if got := m.faults(); len(got) != 1 || got[0] != "ROOT/repo/pkg/missing.yaml: cannot read the file: no such file or directory" {
		t.Errorf("--config: %q", got)
	}
	m.in.File = ""
	m.env["LOADOUT_CONFIG"] = m.at("missing.yaml")
	if got := m.faults(); len(got) != 1 || !strings.HasPrefix(got[0], "ROOT/missing.yaml: cannot read the file") {
		t.Errorf("LOADOUT_CONFIG: %q", got)
	}
	m.env["LOADOUT_CONFIG"] = m.at("home")
	if got := m.faults(); len(got) != 1 || !strings.HasPrefix(got[0], "ROOT/home: cannot read the file") {
		t.Errorf("a directory: %q", got)
	}
}

func TestEmptyFiles(t *testing.T) {
	for _, text := range []string{"", "# only a comment\n", "---\n", "{}\n", "skills:\n", "skills: {}\nmcp: ~\n", "\ufeffskills:\n", "skills:\n  dirs:\n  allow: ~\n  shell:\n"} {
		m := newMachine(t)
		m.write(userFile, text)
		c := m.load()
		if s := c.Skills; !s.Enabled || len(s.Dirs)+len(s.Allow) > 0 || s.Shell != "" || len(c.Files) != 1 || len(c.Notes) > 0 {
			t.Errorf("%q: %+v", text, c)
		}
	}
}

// Fields of the user are texts with a name; an error names the field, never its value.
func TestUserFields(t *testing.T) {
	m := newMachine(t)
	m.write(userFile, "user:\n  name: Ada\n  employee: 0042\n")
	if diff := cmp.Diff(map[string]string{"name": "Ada", "employee": "0042"}, m.load().User); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for field, where := range map[string]string{"langs: [secret]": "2:3", "deep: {a: secret}": "2:3", `"": secret`: "2:3"} {
		m.write(userFile, "user:\n  "+field+"\n")
		got := m.faults()
		if len(got) != 1 || !strings.HasPrefix(got[0], "ROOT/"+userFile+":"+where+": user.") || strings.Contains(got[0], "secret") {
			t.Errorf("%s: faults %q", field, got)
		}
	}
}

func TestAllFaultsAreReported(t *testing.T) {
	file, err := filepath.Abs(filepath.Join("testdata", "faults.yaml"))
	must(t, err)
	m := newMachine(t)
	m.in.File = file
	m.write(userFile, "skills:\n  watch: perhaps\n")
	m.env["LOADOUT_SKILLS_DEPTH"] = "40"
	m.env["LOADOUT_SKILLS_ALLOW"] = " , "
	m.in.Flags["mcp.text_budget"] = "7"
	var got []string
	for _, f := range m.faults() {
		f, _, _ = strings.Cut(f, "; known keys:")
		got = append(got, strings.ReplaceAll(f, filepath.ToSlash(file), "FILE"))
	}
	want := []string{
		"ROOT/" + userFile + `:2:10: skills.watch: expected true or false, got "perhaps"`,
		`FILE:2:12: skills.enabled: expected true or false, got "maybe"`,
		"FILE:3:3: duplicate key skills.enabled",
		"FILE:4:9: skills.dirs: expected a list of strings",
		`FILE:5:10: skills.depth: not a number: "deep"`,
		"FILE:6:3: unknown key skills.dept",
		"FILE:7:10: skills.allow: expected a list of strings",
		"FILE:8:8: skills.home: missing value: want true or false",
		"FILE:9:10: skills.shell: expected a string",
		"FILE:10:6: expected keys and values below mcp",
		"FILE:11:1: unknown key sklls",
		`FILE:13:1: unknown key "skills.enabled"`,
		`LOADOUT_SKILLS_ALLOW: skills.allow: empty list " , ": unset the variable or give it a value`,
		"LOADOUT_SKILLS_DEPTH: skills.depth: 40 is out of range 1 to 32",
		"command line: mcp.text_budget: 7 is out of range 200 to 1000000",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFaultLimit(t *testing.T) {
	m := newMachine(t)
	m.write(userFile, manyKeys(50_000))
	if got := m.faults(); len(got) != 21 || got[20] != "and 49980 more" {
		t.Errorf("%d faults, the last %q", len(got), got[len(got)-1])
	}
}

func TestPathsInFiles(t *testing.T) {
	m := newMachine(t)
	m.write(userFile, "skills:\n  dirs: [rel, ./dot, ../up, '~', ~/x, ~other/x, /abs/../clean]\nmcp:\n  token_file: secrets/token\n")
	c := m.load()
	const at = "ROOT/home/.config/loadout"
	want := []string{at + "/rel", at + "/dot", "ROOT/home/.config/up", "ROOT/home", "ROOT/home/x", at + "/~other/x", "/clean"}
	if diff := cmp.Diff(want, m.paths(c.Skills.Dirs)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := m.plain(c.MCP.TokenFile); got != at+"/secrets/token" {
		t.Errorf("token file %s", got)
	}
	m.in.Flags["mcp.token_file"] = "token"
	if got := m.plain(m.load().MCP.TokenFile); got != "ROOT/repo/pkg/token" {
		t.Errorf("token file on the command line %s", got)
	}
}

func TestEnvironmentValues(t *testing.T) {
	for text, want := range map[string]bool{"1": true, "true": true, "YES": true, " on ": true, "0": false, "false": false, "No": false, "off": false} {
		m := newMachine(t)
		m.env["LOADOUT_SKILLS_HOME"] = text
		if c := m.load(); c.Skills.Home != want {
			t.Errorf("%q is %v", text, c.Skills.Home)
		}
	}
	m := newMachine(t)
	m.env["LOADOUT_SKILLS_HOME"] = "" // as good as not set
	if !m.load().Skills.Home {
		t.Error("an empty variable turns it off")
	}
	m.env["LOADOUT_SKILLS_HOME"] = "nope"
	if got := m.faults(); len(got) != 1 || got[0] != `LOADOUT_SKILLS_HOME: skills.home: expected true or false, got "nope"` {
		t.Errorf("got %q", got)
	}
}

// L1: variables of an earlier system keep their meaning.
func TestL1LegacyVariables(t *testing.T) {
	list := func(paths ...string) string { return strings.Join(paths, string(filepath.ListSeparator)) }
	for _, tt := range []struct {
		what string
		env  map[string]string
		home bool
		want []string
	}{
		{"directories", map[string]string{"LLP_SKILLS_DIRS": list("/a", "b", "", "~/c")}, true, []string{"/a", "ROOT/repo/pkg/b", "ROOT/home/c"}},
		{"the global directory", map[string]string{"LLP_CLAUDE_SKILLS_DIR": "ROOT/flat"}, true, []string{"ROOT/flat"}},
		{"which may have a child named skills", map[string]string{"LLP_CLAUDE_SKILLS_DIR": "ROOT/nested"}, true, []string{"ROOT/nested/skills"}},
		{"a file of that name is none", map[string]string{"LLP_CLAUDE_SKILLS_DIR": "ROOT/odd"}, true, []string{"ROOT/odd"}},
		{"enabled", map[string]string{"LLP_ENABLE_CLAUDE_GLOBAL": "1", "LLP_CLAUDE_SKILLS_DIR": "ROOT/nested"}, true, []string{"ROOT/nested/skills"}},
		{"not enabled", map[string]string{"LLP_ENABLE_CLAUDE_GLOBAL": "0", "LLP_CLAUDE_SKILLS_DIR": "ROOT/nested"}, false, nil},
		{"not enabled, with others", map[string]string{"LLP_ENABLE_CLAUDE_GLOBAL": "false", "LLP_SKILLS_DIRS": "/a"}, false, []string{"/a"}},
		{"both", map[string]string{"LLP_SKILLS_DIRS": "/a", "LLP_CLAUDE_SKILLS_DIR": "ROOT/missing"}, true, []string{"/a", "ROOT/missing"}},
	} {
		t.Run(tt.what, func(t *testing.T) {
			m := newMachine(t)
			m.write("nested/skills/x", "")
			m.write("flat/x", "")
			m.write("odd/skills", "")
			for k, v := range tt.env {
				m.env[k] = strings.ReplaceAll(v, "ROOT", m.root)
			}
			c := m.load()
			if c.Skills.Home != tt.home {
				t.Errorf("home %v, want %v", c.Skills.Home, tt.home)
			}
			if diff := cmp.Diff(append([]string{}, tt.want...), m.paths(c.Inherited)); diff != "" {
				t.Errorf("directories (-want +got):\n%s", diff)
			}
			if len(c.Notes) > 0 {
				t.Errorf("notes %v", c.Notes)
			}
		})
	}
	t.Run("own variable comes later", func(t *testing.T) {
		m := newMachine(t)
		m.env["LLP_ENABLE_CLAUDE_GLOBAL"], m.env["LOADOUT_SKILLS_HOME"] = "0", "1"
		if got := m.values(m.load()); !slices.Equal(got, []string{"skills.home true (LOADOUT_SKILLS_HOME)"}) {
			t.Errorf("got %q", got)
		}
	})
	t.Run("source of the value", func(t *testing.T) {
		m := newMachine(t)
		m.env["LLP_ENABLE_CLAUDE_GLOBAL"] = "0"
		if got := m.values(m.load()); !slices.Equal(got, []string{"skills.home false (LLP_ENABLE_CLAUDE_GLOBAL)"}) {
			t.Errorf("got %q", got)
		}
	})
}

// L2: without these variables nothing is inherited. An invalid one is reported and
// otherwise ignored.
func TestL2BadLegacyVariables(t *testing.T) {
	m := newMachine(t)
	m.env["LLP_ENABLE_CLAUDE_GLOBAL"], m.env["LLP_SKILLS_DIRS"], m.env["LLP_CLAUDE_SKILLS_DIR"] = "perhaps", "/a", "/b"
	c := m.load()
	if c.Skills.Home || !slices.Equal(m.paths(c.Inherited), []string{"/a"}) {
		t.Errorf("home %v, directories %q; want what cannot be read to mean no", c.Skills.Home, c.Inherited)
	}
	if got := m.notes(c); !slices.Equal(got, []string{`LLP_ENABLE_CLAUDE_GLOBAL: expected true or false, got "perhaps"; false is used`}) {
		t.Errorf("notes %q", got)
	}
}

func TestRelativeServerPathsInVariables(t *testing.T) {
	m := newMachine(t)
	m.env["LLP_MCP_CONNECTIONS_FILE"], m.env["LLP_MCP_CONNECTIONS_DIR"] = "team.json", "./team"
	m.env["LOADOUT_SERVERS_FILES"] = strings.Join([]string{"team.json", "~/mine.json", "/a/b.json"}, string(filepath.ListSeparator))
	c := m.load()
	if got := m.paths(slices.Concat(c.Servers.Files, c.Servers.Inherited)); !slices.Equal(got, []string{"ROOT/home/mine.json", "/a/b.json"}) {
		t.Errorf("got %q", got)
	}
	if got := strings.Join(m.notes(c), "\n"); strings.Count(got, "write an absolute path") != 3 || !strings.Contains(got, `LLP_MCP_CONNECTIONS_DIR: "./team" is ignored`) {
		t.Errorf("notes %s", got)
	}
	m.env["LLP_MCP_CONNECTIONS_FILE"], m.env["LLP_MCP_CONNECTIONS_DIR"] = "/a.json", "~/a"
	if got := m.paths(m.load().Servers.Inherited); !slices.Equal(got, []string{"/a.json", "ROOT/home/a"}) {
		t.Errorf("got %q", got)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add("skills:\n  dirs: [a, /b]\n")
	f.Add(config.Example())
	f.Add("skills: &a {dirs: *a}\n")
	f.Add("? [x]\n: y\n")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<16 {
			t.Skip("longer than needed")
		}
		m := newMachine(t)
		m.write(projectFile, text)
		c := m.load() // never an error
		for _, v := range c.Values() {
			if v.Key != "skills.dirs" && v.From != "default" {
				t.Errorf("%s is from %s", v.Key, v.From)
			}
		}
		for _, d := range c.Skills.Dirs {
			if rel, err := filepath.Rel(m.at("repo"), d); err != nil || !filepath.IsLocal(rel) || c.ProjectOf(d) == "" {
				t.Errorf("%q is outside the project", d)
			}
		}
		m = newMachine(t)
		m.write(userFile, text)
		_, err := config.Load(m.in)
		if _, ok := errors.AsType[*config.Error](err); err != nil && !ok {
			t.Errorf("%T: %v", err, err)
		}
	})
}

// A password in the address of a database is not shown.
func TestPasswordsAreNotShown(t *testing.T) {
	const hidden = "geheim"
	for address, want := range map[string]string{
		"sqlite:/srv/hub.db": "sqlite:/srv/hub.db",
		"postgres://hub:" + hidden + "@db.example.com/hub":                                      "postgres://hub:xxxxx@db.example.com/hub",
		"postgres://db.example.com/hub?password=" + hidden + "&sslmode=disable":                 "postgres://db.example.com/hub?password=xxxxx&sslmode=disable",
		"postgres://hub:" + hidden + "%zz@db.example.com/hub":                                   "…",
		"redis://:" + hidden + "@redis.example.com:6379/0":                                      "redis://:xxxxx@redis.example.com:6379/0",
		"postgres://db.example.com/hub?sslmode=disable&default_query_exec_mode=simple_protocol": "postgres://db.example.com/hub?sslmode=disable&default_query_exec_mode=simple_protocol",
	} {
		m := newMachine(t)
		m.env["LOADOUT_DATABASE"], m.env["LOADOUT_HUB_REDIS"] = address, address
		c := m.load()
		if c.Hub.Database != address || c.Hub.Redis != address {
			t.Errorf("%q and %q are active, want %q", c.Hub.Database, c.Hub.Redis, address)
		}
		for _, v := range c.Values() {
			if v.Key != "hub.database" && v.Key != "hub.redis" {
				continue
			}
			if v.Value != want || strings.Contains(v.Text(), hidden) {
				t.Errorf("%s is shown as %s, want %q", v.Key, v.Text(), want)
			}
		}
	}
}

func TestNetworks(t *testing.T) {
	m := newMachine(t)
	m.in.Flags["hub.proxies"] = "10.0.0.0/8, 192.0.2.7, 2001:db8::/32"
	if c := m.load(); len(c.Hub.Proxies) != 3 {
		t.Errorf("the proxies are %q", c.Hub.Proxies)
	}
	m.in.Flags["hub.private"] = "intranet"
	if _, err := config.Load(m.in); err == nil || !strings.Contains(err.Error(), "hub.private") {
		t.Errorf("the error is %v", err)
	}
}

func TestEveryBackendCanBeConfigured(t *testing.T) {
	m := newMachine(t)
	for _, b := range selection.Candidates(nil) {
		m.env["LOADOUT_SANDBOX_BACKEND"] = b.Name()
		if c := m.load(); c.Sandbox.Backend != b.Name() || len(c.Notes) > 0 {
			t.Errorf("sandbox.backend is %q, want %q; notes %v", c.Sandbox.Backend, b.Name(), c.Notes)
		}
	}
}

// Networks in which no address would match are errors.
func TestMappedNetworksAreErrors(t *testing.T) {
	for _, key := range []string{"hub.private", "hub.proxies", "sandbox.private"} {
		m := newMachine(t)
		m.in.Flags[key] = "10.0.0.0/8,::ffff:10.0.0.0/104"
		want := []string{"command line: " + key + `: invalid address or network "::ffff:10.0.0.0/104": expected addresses or networks such as 10.1.2.0/24`}
		if diff := cmp.Diff(want, m.faults()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// A platform value is text, or refers to a stored secret. An error names the
// value, never its text, and a project sets none.
func TestVariables(t *testing.T) {
	m := newMachine(t)
	m.write(userFile, "variables:\n  backend_url: https://wegent.example\n  task_data.docs.url: {secret: DOCS}\n")
	want := map[string]config.Variable{"backend_url": {Value: "https://wegent.example"}, "task_data.docs.url": {Secret: "DOCS"}}
	if diff := cmp.Diff(want, m.load().Variables); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for field, message := range map[string]string{
		"langs: [hidden]":         "variables.langs: expected a string, or secret: NAME",
		"deep: {a: hidden}":       "variables.deep: expected a string, or secret: NAME",
		"deep: {secret: hid-den}": "variables.deep: expected a string, or secret: NAME",
		"empty:":                  "variables.empty: expected a string, or secret: NAME",
		"user.name: hidden":       "variables.\"user.name\": expected a name such as backend_url or task_data.region",
		"a b: hidden":             "expected a name such as backend_url or task_data.region",
		"long: " + strings.Repeat("hidden", 2000): "variables.long: value too long (12000 bytes, limit 8192)",
		"twice: hidden\n  twice: hidden":          "duplicate key variables.twice",
	} {
		m.write(userFile, "variables:\n  "+field+"\n")
		got := m.faults()
		if len(got) != 1 || !strings.Contains(got[0], message) || strings.Contains(got[0], "hidden") {
			t.Errorf("%s: faults %q", field, got)
		}
	}
}
