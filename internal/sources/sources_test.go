package sources_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/sources"
)

// files maps slash-separated paths to contents.
type files map[string]string

func (f files) write(t *testing.T, dir string) {
	t.Helper()
	for name, content := range f {
		p := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func skillText(name, body string) string {
	return "---\nname: " + name + "\ndescription: What " + name + " is for.\n---\n" + body
}

// places returns "label scope path" for each source, with paths relative to root.
func places(t *testing.T, root string, o sources.Options) []string {
	t.Helper()
	all, err := sources.New(&o)
	if err != nil {
		t.Fatal(err)
	}
	out := []string{}
	seen := map[string]bool{}
	for _, s := range all {
		if !regexp.MustCompile(`^[a-z0-9]+([.-][a-z0-9]+)*$`).MatchString(s.Origin()) || seen[s.Origin()] {
			t.Errorf("the label %q is not unique, or not of letters, digits, dots and hyphens", s.Origin())
		}
		seen[s.Origin()] = true
		where := "-"
		if at, ok := s.(interface{ Root() string }); ok {
			where = at.Root()
			if rel, err := filepath.Rel(root, where); err == nil {
				where = filepath.ToSlash(rel)
			}
		}
		out = append(out, s.Origin()+" "+s.Scope().String()+" "+where)
	}
	if _, err := catalog.New(all, nil); err != nil {
		t.Errorf("the sources do not make a catalog: %v", err)
	}
	return out
}

// skillNames returns the names of the skills that the sources offer.
func skillNames(t *testing.T, o sources.Options) []string {
	t.Helper()
	all, err := sources.New(&o)
	if err != nil {
		t.Fatal(err)
	}
	rt, err := loadout.New(t.Context(), &loadout.Options{Sources: all})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	if p := rt.Catalog().Snapshot().Problems(); len(p) > 0 {
		t.Errorf("problems: %v", p)
	}
	out := []string{}
	for _, e := range rt.Catalog().Snapshot().Skills() {
		out = append(out, e.Key())
	}
	return out
}

func under(prefix, dir, scope string) []string {
	var out []string
	for _, name := range []string{"loadout", "agents", "claude", "codex", "gemini", "cursor", "github"} {
		out = append(out, strings.TrimSpace(prefix+name+" "+scope+" "+strings.TrimPrefix(dir+"/."+name+"/skills", "./")))
	}
	return out
}

func TestDefaultDirectories(t *testing.T) {
	root := t.TempDir()
	files{"repo/.git/HEAD": "", "repo/pkg/deep/x": "", "work/free/x": "", "tree/.git": "gitdir: elsewhere", "home/x": "", "tree/sub/x": ""}.write(t, root)
	at := func(p string) string { return filepath.Join(root, filepath.FromSlash(p)) }
	home := under("user.", "home", "user")
	bundled := []string{"bundled bundled -"}
	for _, tt := range []struct {
		what string
		o    sources.Options
		want []string
	}{
		{"outside a repository: the working directory only", sources.Options{WorkDir: at("work/free"), Home: at("home")},
			slices.Concat([]string{"project.skills project work/free/skills"}, under("project.", "work/free", "project"), home, bundled)},
		{"in a repository: nearest first, up to its root", sources.Options{WorkDir: at("repo/pkg/deep"), Home: at("home")},
			slices.Concat(
				[]string{"project.skills project repo/pkg/deep/skills"}, under("project.", "repo/pkg/deep", "project"),
				[]string{"project.up1.skills project repo/pkg/skills"}, under("project.up1.", "repo/pkg", "project"),
				[]string{"project.up2.skills project repo/skills"}, under("project.up2.", "repo", "project"), home, bundled)},
		{"in a work tree, whose .git is a file", sources.Options{WorkDir: at("tree/sub"), NoHome: true, NoBundled: true},
			slices.Concat([]string{"project.skills project tree/sub/skills"}, under("project.", "tree/sub", "project"),
				[]string{"project.up1.skills project tree/skills"}, under("project.up1.", "tree", "project"))},
		{"in the home directory its dotted directories are the user's", sources.Options{WorkDir: at("home"), Home: at("home") + "/"},
			slices.Concat([]string{"project.skills project home/skills"}, home, bundled)},
		{"and not read where the home directory is not", sources.Options{WorkDir: at("home"), Home: at("home"), NoHome: true},
			slices.Concat([]string{"project.skills project home/skills"}, bundled)},
		{"without the project", sources.Options{WorkDir: at("repo"), Home: at("home"), NoProject: true}, slices.Concat(home, bundled)},
		{"nothing", sources.Options{WorkDir: at("repo"), Home: at("home"), NoProject: true, NoHome: true, NoBundled: true}, []string{}},
	} {
		t.Run(tt.what, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, places(t, root, tt.o)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A home directory that is also reached by another path is still the home.
func TestHomeDirectoryThroughSymlink(t *testing.T) {
	root := t.TempDir()
	files{"users/ann/x": ""}.write(t, root)
	if err := os.Symlink("users/ann", filepath.Join(root, "ann")); err != nil {
		t.Skip(err)
	}
	for _, p := range places(t, root, sources.Options{WorkDir: filepath.Join(root, "ann"), Home: filepath.Join(root, "users", "ann"), NoHome: true, NoBundled: true}) {
		if p != "project.skills project ann/skills" {
			t.Errorf("it is read as a project: %s", p)
		}
	}
}

func TestEmptyListIsNotTheDefault(t *testing.T) {
	all, err := sources.New(&sources.Options{NoProject: true, NoHome: true, NoBundled: true})
	if err != nil || all == nil || len(all) != 0 {
		t.Fatalf("got %v, %v; want an empty list", all, err)
	}
	rt, err := loadout.New(t.Context(), &loadout.Options{Sources: all})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	if n := len(rt.Catalog().Sources()); n > 0 {
		t.Errorf("%d sources", n)
	}
}

func TestDefaultDirectoriesAreSearched(t *testing.T) {
	root := t.TempDir()
	files{
		"home/repo/.git/HEAD": "", "home/repo/pkg/x": "",
		"home/repo/pkg/.claude/skills/near/SKILL.md": skillText("near", ""),
		"home/repo/skills/far/SKILL.md":              skillText("far", ""),
		"home/repo/skills/near/SKILL.md":             skillText("near", ""),
		"home/.agents/skills/far/SKILL.md":           skillText("far", ""),
		"home/.agents/skills/own/SKILL.md":           skillText("own", ""),
		"home/.codex/skills/own/SKILL.md":            skillText("own", ""),
		"home/skills/other/SKILL.md":                 skillText("other", ""), // not a default location
	}.write(t, root)
	o := sources.Options{WorkDir: filepath.Join(root, "home", "repo", "pkg"), Home: filepath.Join(root, "home"), NoBundled: true}
	if diff := cmp.Diff([]string{"project.up1.skills/far", "project.claude/near", "user.agents/own"}, skillNames(t, o)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Skills that Codex installed for itself are not for other clients.
func TestPrivateSkillsOfClients(t *testing.T) {
	home := t.TempDir()
	files{".codex/skills/.system/own/SKILL.md": skillText("own", ""), ".codex/skills/mine/SKILL.md": skillText("mine", "")}.write(t, home)
	o := sources.Options{WorkDir: home, Home: home, NoBundled: true, NoProject: true}
	if diff := cmp.Diff([]string{"user.codex/mine"}, skillNames(t, o)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAdditionalDirectories(t *testing.T) {
	root := t.TempDir()
	files{
		"a/skills/one/SKILL.md": skillText("one", ""), "b/skills/one/SKILL.md": skillText("one", ""), "B Dir/two/SKILL.md": skillText("two", ""),
		"three/SKILL.md": skillText("three", ""), "文档/four/SKILL.md": skillText("four", ""), "bundled/five/SKILL.md": skillText("five", ""),
	}.write(t, root)
	at := func(p string) string { return filepath.Join(root, filepath.FromSlash(p)) }
	extra := func(paths ...string) (out []sources.Location) {
		for _, p := range paths {
			out = append(out, sources.Location{Path: p, Scope: catalog.User})
		}
		return out
	}
	only := sources.Options{WorkDir: root, Home: at("home"), NoHome: true, NoProject: true, NoBundled: true}
	t.Run("are labelled by path", func(t *testing.T) {
		o := only
		o.Extra = append(extra(at("a/skills"), at("b/skills"), at("B Dir"), at("three/SKILL.md"), at("文档"), at("bundled"), "a/skills", at("x/pack.zip"), at("pack.SKILL"), "/"),
			sources.Location{Path: at("missing"), Scope: catalog.Group, Label: "team.one"}, sources.Location{Path: at("missing2"), Label: "team.one"})
		o.NoBundled = false
		want := []string{"a user a/skills", "b user b/skills", "b-dir user B Dir", "three user three", "skill user 文档", "bundled-2 user bundled", "a-2 user a/skills",
			"pack user x/pack.zip", "pack-2 user pack.SKILL", "skill-2 user /", "team.one group missing", "team.one-2 bundled missing2", "bundled bundled -"}
		got := places(t, root, o)
		got[9] = "skill-2 user /" // long relative to root
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("precede the defaults of their scope", func(t *testing.T) {
		o := sources.Options{WorkDir: root, Home: at("home"), NoProject: true, NoBundled: true, Extra: extra(at("b/skills"), at("a/skills"))}
		files{"home/.agents/skills/one/SKILL.md": skillText("one", "")}.write(t, root)
		if got := skillNames(t, o); !slices.Equal(got, []string{"b/one"}) {
			t.Errorf("got %q", got)
		}
	})
	t.Run("may be a SKILL.md or an archive", func(t *testing.T) {
		o := only
		o.Extra = extra(at("three/SKILL.md"))
		if got := skillNames(t, o); !slices.Equal(got, []string{"three/three"}) && !slices.Equal(got, []string{"three/."}) {
			t.Errorf("got %q", got)
		}
	})
	t.Run("missing or of another type are problems", func(t *testing.T) {
		files{"text.txt": "x"}.write(t, root)
		for path, code := range map[string]string{"none": "not-found", "none.zip": "not-found", "none/SKILL.md": "not-found", "text.txt": "not-a-zip"} {
			o := only
			o.Extra = extra(at(path))
			all, err := sources.New(&o)
			if err != nil {
				t.Fatal(err)
			}
			rt, err := loadout.New(t.Context(), &loadout.Options{Sources: all})
			if err != nil {
				t.Fatal(err)
			}
			if p := rt.Catalog().Snapshot().Problems(); len(p) != 1 || p[0].Code != code || !strings.HasPrefix(at(path), p[0].Path) {
				t.Errorf("%s: %v", path, p)
			}
			rt.Close()
		}
	})
}

func TestPluginDirectories(t *testing.T) {
	for _, tt := range []struct {
		what, file string
		want       []string
	}{
		{"version 2", `{"version":2,"plugins":{"pdf@market":[{"scope":"user","installPath":"ROOT/p/pdf/1.0","version":"1.0"}],"csv@market":[{"installPath":"ROOT/p/csv"}]}}`,
			[]string{"plugin.csv user p/csv/skills", "plugin.pdf user p/pdf/1.0/skills"}},
		{"version 1", `{"version":1,"plugins":{"pdf@market":{"installPath":"ROOT/p/pdf","version":"1.0"}}}`, []string{"plugin.pdf user p/pdf/skills"}},
		{"one name from two markets", `{"plugins":{"pdf@b":[{"installPath":"ROOT/p/b"}],"pdf@a":[{"installPath":"ROOT/p/a"}]}}`,
			[]string{"plugin.pdf user p/a/skills", "plugin.pdf-2 user p/b/skills"}},
		{"installed for projects", `{"plugins":{"here@m":[{"scope":"project","projectPath":"ROOT/repo","installPath":"ROOT/p/here"}],
			"above@m":[{"scope":"local","projectPath":"ROOT","installPath":"ROOT/p/above"}],"all@m":[{"scope":"user","installPath":"ROOT/p/all"}],
			"other@m":[{"scope":"project","projectPath":"ROOT/rep","installPath":"ROOT/p/other"}],"below@m":[{"projectPath":"ROOT/repo/sub","installPath":"ROOT/p/below"}]}}`,
			[]string{"plugin.above user p/above/skills", "plugin.here user p/here/skills", "plugin.all user p/all/skills"}},
		{"hostile names and paths", `{"plugins":{"../../x y\u001b[31m@m":[{"installPath":"ROOT/p/../p/x"}],"relative@m":[{"installPath":"p/pdf"}],"empty@m":[{"installPath":""}],"":[{"installPath":"ROOT/p/nameless"}],"user.agents@m":[{"installPath":"ROOT/p/agents"}]}}`,
			[]string{"plugin.skill user p/nameless/skills", "plugin.user-agents user p/agents/skills", "plugin.x-y-31m user p/x/skills"}},
		{"of other types", `{"plugins":{"a@m":"text","b@m":7,"c@m":null,"d@m":[1,"x",null],"e@m":[{"installPath":7}],"f@m":[[]],"g@m":[{"installPath":"ROOT/p/g"}]}}`, []string{"plugin.g user p/g/skills"}},
		{"a list", `{"plugins":[{"installPath":"ROOT/p"}]}`, nil},
		{"not JSON", `{"plugins":`, nil},
		{"empty", ``, nil},
		{"deep", strings.Repeat(`{"plugins":`, 20_000), nil},
		{"too long", `{"plugins":{"a@m":[{"installPath":"ROOT/p"}]}}` + strings.Repeat(" ", 4<<20), nil},
	} {
		t.Run(tt.what, func(t *testing.T) {
			root := t.TempDir()
			home := filepath.Join(root, "home")
			files{"home/.claude/plugins/installed_plugins.json": strings.ReplaceAll(tt.file, "ROOT", filepath.ToSlash(root)), "repo/.git/HEAD": ""}.write(t, root)
			for range 3 { // the file is a map
				got := places(t, root, sources.Options{WorkDir: filepath.Join(root, "repo"), Home: home, NoBundled: true})
				i := slices.IndexFunc(got, func(s string) bool { return strings.HasPrefix(s, "plugin.") })
				if i < 0 {
					i = len(got)
				}
				if diff := cmp.Diff(tt.want, slices.Clip(append([]string(nil), got[i:]...))); diff != "" {
					t.Fatalf("(-want +got):\n%s", diff)
				}
			}
			off := places(t, root, sources.Options{WorkDir: filepath.Join(root, "repo"), Home: home, NoHome: true, NoProject: true, NoBundled: true})
			if len(off) > 0 {
				t.Errorf("with the home directory off: %q", off)
			}
		})
	}
}

// If the project is not known, the settings in the working directory of this
// program do not count.
func TestPluginsAreEnabledByKnownProjects(t *testing.T) {
	root := t.TempDir()
	t.Chdir(root)
	dir := filepath.Join(root, "home", ".claude", "plugins")
	files{
		"home/.claude/plugins/installed_plugins.json":  `{"plugins": {"a@m": [{"installPath": "` + filepath.ToSlash(filepath.Join(root, "a")) + `"}]}}`,
		"home/.claude/plugins/known_marketplaces.json": `{"m": {}}`,
		".claude/settings.json":                        `{"enabledPlugins": {"a@m": true}}`,
	}.write(t, root)
	if got, want := sources.EnabledPluginSkills(dir, root), []string{filepath.Join(root, "a", "skills")}; !slices.Equal(got, want) {
		t.Errorf("in the project: %q, want %q", got, want)
	}
	if got := sources.EnabledPluginSkills(dir, ""); len(got) > 0 {
		t.Errorf("without a project: %q", got)
	}
}

// Each directory has its own index in the configured cache directory.
func TestDepthAndIndexReachTheSources(t *testing.T) {
	root := t.TempDir()
	files{"s/1/2/deep/SKILL.md": skillText("deep", ""), "s/top/SKILL.md": skillText("top", "")}.write(t, root)
	cache := filepath.Join(root, "cache")
	o := sources.Options{NoHome: true, NoProject: true, NoBundled: true, Depth: 1, CacheDir: cache, Extra: []sources.Location{{Path: filepath.Join(root, "s")}, {Path: filepath.Join(root, "s", "1")}}}
	all, err := sources.New(&o)
	if err != nil {
		t.Fatal(err)
	}
	rt, err := loadout.New(t.Context(), &loadout.Options{Sources: all})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	if _, err := rt.Catalog().Snapshot().Get("deep"); err == nil {
		t.Error("it is searched deeper than one level")
	}
	if _, err := rt.Catalog().Snapshot().Get("top"); err != nil {
		t.Error(err)
	}
	if got, err := filepath.Glob(filepath.Join(cache, "index", "*.idx")); err != nil || len(got) != 2 {
		t.Errorf("index files %q, %v; want two", got, err)
	}
}

// A clone must not list other directories of the machine as its own skills.
func TestProjectSymlinksStayInTheProject(t *testing.T) {
	const doc = "---\nname: %\ndescription: d\n---\n"
	skill := func(name string) string { return strings.ReplaceAll(doc, "%", name) }
	root := t.TempDir()
	files{
		"away/secret/SKILL.md": skill("secret"), "repo/.git/HEAD": "", "repo/lib/shared/SKILL.md": skill("shared"),
		"repo/sub/.agents/skills/own/SKILL.md": skill("own"), "repo/.claude/x": "", "home/skills/x": "", "home/.agents/skills/x": "",
		"home/proj/skills/x": "", "home/lib/SKILL.md": skill("lib"),
	}.write(t, root)
	link := func(target, at string) {
		t.Helper()
		if err := os.Symlink(target, filepath.Join(root, filepath.FromSlash(at))); err != nil {
			t.Fatal(err)
		}
	}
	away := filepath.Join(root, "away")
	link("/", "repo/sub/.agents/skills/x")
	link("../../../lib/shared", "repo/sub/.agents/skills/shared")
	link(away, "repo/.claude/skills")
	link(away, "home/skills/away")
	link("../../lib", "home/proj/skills/lib")
	list := func(o sources.Options) (skills, problems []string) {
		t.Helper()
		o.Home, o.NoBundled = filepath.Join(root, "home"), true
		all, err := sources.New(&o)
		if err != nil {
			t.Fatal(err)
		}
		rt, err := loadout.New(t.Context(), &loadout.Options{Sources: all})
		if err != nil {
			t.Fatal(err)
		}
		defer rt.Close()
		for _, e := range rt.Catalog().Snapshot().Skills() {
			skills = append(skills, e.Name)
		}
		for _, p := range rt.Catalog().Snapshot().Problems() {
			rel, _ := filepath.Rel(root, p.Path)
			problems = append(problems, rel+" "+p.Code)
		}
		slices.Sort(skills)
		slices.Sort(problems)
		return skills, problems
	}
	for _, tt := range []struct {
		what             string
		o                sources.Options
		skills, problems []string
	}{
		{"a clone", sources.Options{WorkDir: filepath.Join(root, "repo", "sub"), NoHome: true}, []string{"own", "shared"}, []string{"repo/.claude/skills outside-project", "repo/sub/.agents/skills/x outside-project"}},
		{"the home directory", sources.Options{WorkDir: filepath.Join(root, "home")}, []string{"secret"}, nil},
		{"a directory below home", sources.Options{WorkDir: filepath.Join(root, "home", "proj")}, nil, []string{"home/proj/skills/lib outside-project"}},
		{"a directory of the user", sources.Options{NoProject: true, NoHome: true, Extra: []sources.Location{{Path: filepath.Join(root, "repo", ".claude", "skills"), Scope: catalog.User}}}, []string{"secret"}, nil},
		{"a directory of a project's configuration", sources.Options{NoProject: true, NoHome: true, Extra: []sources.Location{{Path: filepath.Join(root, "repo", ".claude", "skills"), Scope: catalog.Project, Within: filepath.Join(root, "repo")}}},
			nil, []string{"repo/.claude/skills outside-project"}},
	} {
		skills, problems := list(tt.o)
		if !slices.Equal(skills, tt.skills) || !slices.Equal(problems, tt.problems) {
			t.Errorf("%s: skills %q, want %q; problems %q, want %q", tt.what, skills, tt.skills, problems, tt.problems)
		}
	}
	files{"home/.git/HEAD": ""}.write(t, root)
	skills, problems := list(sources.Options{WorkDir: filepath.Join(root, "home", "proj")})
	if want := []string{"home/proj/skills/lib outside-project"}; !slices.Equal(problems, want) || !slices.Equal(skills, []string{"secret"}) {
		t.Errorf("below a home directory that is a repository: skills %q, problems %q, want %q", skills, problems, want)
	}
}

// Code may write to directories of dependencies without the user's consent, so
// a working directory in one has only the skills above it.
func TestNoSkillsInDependencies(t *testing.T) {
	root := t.TempDir()
	repo := filepath.Join(root, "node_modules", "repo") // what is above the repository does not matter
	write := func(dir, name string) {
		t.Helper()
		dir = filepath.Join(repo, filepath.FromSlash(dir), ".agents", "skills", name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte(skillText(name, "x")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("", "own")
	write("sub", "below")
	write("sub/node_modules", "planted")
	write("sub/node_modules/x", "planted-too")
	if err := os.Mkdir(filepath.Join(repo, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string][]string{
		"":                   {"project.agents/own"},
		"sub":                {"project.agents/below", "project.up1.agents/own"},
		"sub/node_modules":   {"project.up1.agents/below", "project.up2.agents/own"},
		"sub/node_modules/x": {"project.up2.agents/below", "project.up3.agents/own"},
	} {
		got := skillNames(t, sources.Options{WorkDir: filepath.Join(repo, filepath.FromSlash(dir)), NoHome: true, NoBundled: true})
		if !slices.Equal(got, want) {
			t.Errorf("in %q: skills %q, want %q", dir, got, want)
		}
	}
}
