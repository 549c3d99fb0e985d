package setup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/console"
)

// listedProject is a project whose skills are listed with the state in home.
type listedProject struct{ home, dir string }

func newListedProject(t *testing.T, home string) listedProject {
	t.Helper()
	p := listedProject{home, t.TempDir()}
	if err := os.Mkdir(filepath.Join(p.dir, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p listedProject) setup(t *testing.T) *Setup {
	t.Helper()
	t.Chdir(p.dir)
	return &Setup{Console: console.Console{Stderr: t.Output(), Getenv: func(name string) string {
		return map[string]string{"HOME": p.home, "USERPROFILE": p.home}[name]
	}}}
}

func (p listedProject) add(t *testing.T, folder, name string) {
	t.Helper()
	dir := filepath.Join(p.dir, ".agents", "skills", folder)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte("---\nname: \""+name+"\"\ndescription: Does things.\n---\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// pending lists the skills of the project and returns the names of those that are
// pending.
func (p listedProject) pending(t *testing.T) []string {
	t.Helper()
	rt, err := p.setup(t).OpenRuntime(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	out := []string{}
	for _, r := range rt.Catalog().Snapshot().Pending() {
		out = append(out, r.Entry.Name)
	}
	return out
}

func (p listedProject) wantPending(t *testing.T, want ...string) {
	t.Helper()
	if got := p.pending(t); !slices.Equal(got, want) {
		t.Errorf("pending: %q, want %q", got, want)
	}
}

// skillKeys returns n keys of the given length.
func skillKeys(n, length int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%0*d", length, i)
	}
	return out
}

// Another path to a project is the same project, and another directory in its place
// is not a new one.
func TestPathsOfProjectHaveOneList(t *testing.T) {
	p := newListedProject(t, t.TempDir())
	p.add(t, "own", "own")
	p.wantPending(t)
	p.add(t, "planted", "planted")
	p.wantPending(t, "planted")
	other := p
	other.dir = filepath.Join(t.TempDir(), "link")
	inside := filepath.Join(p.dir, "again")
	if err := errors.Join(os.Symlink(p.dir, other.dir), os.Symlink(".", inside)); err != nil {
		t.Fatal(err)
	}
	other.wantPending(t, "planted")
	other.dir = inside
	other.wantPending(t, "planted")
	skills := filepath.Join(p.dir, ".agents", "skills")
	if err := errors.Join(os.Rename(skills, skills+"2"), os.Symlink("skills2", skills)); err != nil {
		t.Fatal(err)
	}
	p.wantPending(t, "planted")
}

// in returns the subdirectory of a project.
func (p listedProject) in(t *testing.T, name string) listedProject {
	t.Helper()
	p.dir = filepath.Join(p.dir, name)
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return p
}

// Once a project is listed, a skill in one of its subdirectories may have been
// added, also if nobody started there before.
func TestSubdirectoryOfListedProject(t *testing.T) {
	p := newListedProject(t, t.TempDir())
	p.add(t, "own", "own")
	p.wantPending(t)
	sub := p.in(t, "sub/deep")
	sub.add(t, "planted", "planted")
	sub.wantPending(t, "planted")
	sub.wantPending(t, "planted")
	above := p.in(t, "sub")
	above.add(t, "planted2", "planted2")
	sub.wantPending(t, "planted", "planted2")
	p.wantPending(t)

	skills := filepath.Join(p.in(t, "mine").dir, ".agents", "skills")
	p.in(t, "mine").add(t, "mine", "mine")
	p.setup(t).RecordListed(t.Context(), skills, []string{"mine"})
	p.in(t, "mine").wantPending(t)
}

// A clone in which Loadout starts first in a subdirectory has the skills of that
// subdirectory and of those above. Other projects in it are listed by themselves.
func TestCloneListedFirstInSubdirectory(t *testing.T) {
	p := newListedProject(t, t.TempDir())
	sub, other, nested := p.in(t, "sub"), p.in(t, "other"), p.in(t, "nested/clone")
	for _, p := range []listedProject{p, sub, other, nested} {
		p.add(t, filepath.Base(p.dir), strings.ToLower(filepath.Base(p.dir)))
	}
	if err := os.Mkdir(filepath.Join(nested.dir, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	nested.wantPending(t)
	sub.wantPending(t)
	p.wantPending(t)
	other.wantPending(t, "other")
}

// A configuration file in a listed project can name more directories, wherever
// they are in the project. An agent may have added both.
func TestConfiguredDirectoryOfListedProject(t *testing.T) {
	p := newListedProject(t, t.TempDir())
	p.add(t, "own", "own")
	p.wantPending(t)
	hidden := p
	hidden.dir = filepath.Join(p.dir, ".hidden")
	hidden.add(t, "planted", "planted")
	if err := errors.Join(os.Rename(filepath.Join(hidden.dir, ".agents", "skills"), filepath.Join(hidden.dir, "skills")),
		os.WriteFile(filepath.Join(p.dir, "loadout.yaml"), []byte("skills:\n  dirs: [.hidden/skills]\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	p.wantPending(t, "planted")
	p.wantPending(t, "planted")
}

// A repository that is listed in a directory of another one does not make the other
// one listed.
func TestProjectAroundListedProject(t *testing.T) {
	p := newListedProject(t, t.TempDir())
	p.add(t, "own", "own")
	p.in(t, "sub").add(t, "below", "below")
	nested := p.in(t, ".wiki")
	if err := os.Mkdir(filepath.Join(nested.dir, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	nested.wantPending(t)
	p.in(t, "sub").wantPending(t)
}

// A home directory that is a repository is not the project of the directories
// below it.
func TestProjectsInListedHome(t *testing.T) {
	home := newListedProject(t, t.TempDir())
	home.home = home.dir
	home.add(t, "own", "own")
	home.wantPending(t)
	sub := home.in(t, "work/sub")
	sub.add(t, "theirs", "theirs")
	sub.wantPending(t)
	sub.add(t, "planted", "planted")
	sub.wantPending(t, "planted")
}

// A directory that could not be listed completely with its project is listed the
// next time.
func TestUnreadDirectoryIsListedLater(t *testing.T) {
	p := newListedProject(t, t.TempDir())
	sub := p.in(t, "sub")
	unread := filepath.Join(sub.dir, ".agents", "skills")
	if _, err := p.setup(t).storeListedSkills(t.Context(), map[string][]string{filepath.Join(p.dir, "skills"): nil}, unread); err != nil {
		t.Fatal(err)
	}
	sub.add(t, "own", "own")
	p.setup(t).RecordListed(t.Context(), unread, []string{"mine"})
	sub.wantPending(t)
	sub.add(t, "planted", "planted")
	sub.wantPending(t, "planted")
}

// A clone with long names, of which many fill the file, does not keep the
// skills of other projects out of it.
func TestCloneDoesNotFillListedSkills(t *testing.T) {
	home := t.TempDir()
	honest := newListedProject(t, home)
	honest.add(t, "own", "own")
	hostile := map[string][]string{}
	for level := range 40 {
		hostile[fmt.Sprintf("/hostile%s/skills", strings.Repeat("/a", level))] = skillKeys(2000, 1500)
	}
	if _, err := honest.setup(t).storeListedSkills(t.Context(), hostile); err != nil {
		t.Error(err)
	}
	honest.wantPending(t)
	honest.add(t, "planted", "planted")
	honest.wantPending(t, "planted")
}

// The file keeps the directories used last. A directory whose skills had to be
// removed from it is not listed anew: one of its skills may have been added since.
func TestSkillsRemovedFromListArePending(t *testing.T) {
	home := t.TempDir()
	old, recent := newListedProject(t, home), newListedProject(t, home)
	old.add(t, "own", "own")
	old.wantPending(t)
	fill := func(name string) {
		for i := range 2 {
			project := map[string][]string{}
			for j := range 2 {
				project[fmt.Sprintf("/%s/%d/%d", name, i, j)] = skillKeys(250, 1000)
			}
			if _, err := old.setup(t).storeListedSkills(t.Context(), project); err != nil {
				t.Fatal(err)
			}
		}
	}
	fill("a")
	recent.add(t, "own", "own")
	recent.wantPending(t)
	for i := range 4 {
		fill(fmt.Sprint("b", i))
		// As if the project was used a day later.
		if _, err := recent.setup(t).storeListedSkills(t.Context(), map[string][]string{filepath.Join(recent.dir, ".agents", "skills"): nil}); err != nil {
			t.Fatal(err)
		}
	}
	recent.add(t, "planted", "planted")
	recent.wantPending(t, "planted")
	old.add(t, "planted", "planted")
	old.wantPending(t, "own", "planted")
}

// A directory has more skills than are stored: the others are pending, also when
// the directory is listed for the first time.
func TestSkillsBeyondLimitArePending(t *testing.T) {
	p := newListedProject(t, t.TempDir())
	long := strings.Repeat("x", 245)
	above := filepath.Join(long, long, long)
	for i := range maxListedDirBytes/len(above) + 1 {
		p.add(t, filepath.Join(above, fmt.Sprintf("s%04d", i)), fmt.Sprintf("s%04d", i))
	}
	first := p.pending(t)
	if len(first) == 0 || len(first) > 20 || first[0] < "s0300" {
		t.Errorf("pending: %q, want a few, the last ones by name", first)
	}
	p.wantPending(t, first...)
}

func TestListedKeysDiffer(t *testing.T) {
	keys := map[string]string{}
	for _, e := range []catalog.Entry{{Dir: "x", Name: "y"}, {Dir: "x:y", Name: "x:y"}, {Dir: "x/y", Name: "y"}, {Dir: "x", Name: "/y"},
		{Dir: "x", Name: "x"}, {Dir: "x/y", Name: "x/y"}, {Dir: ".", Name: "x//y"}, {Dir: ".", Name: "x"}, {Dir: "x", Name: "y//z"}} {
		key := listedKey(&e)
		if keys[key] != "" {
			t.Errorf("%s and the skill %s in %s have the key %q", keys[key], e.Name, e.Dir, key)
		}
		keys[key] = fmt.Sprintf("the skill %s in %s", e.Name, e.Dir)
	}
}

// In version 1, a folder and a name could be mistaken for another folder.
func TestListedSkillsOfVersion1(t *testing.T) {
	home := t.TempDir()
	p := newListedProject(t, home)
	p.add(t, "own", "own")
	p.add(t, "folder", "other")
	p.add(t, "new", "new")
	state := filepath.Join(home, ".local", "state", "loadout")
	if err := os.MkdirAll(state, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(state, "project-skills.json")
	before := fmt.Sprintf(`{"version":1,"dirs":[{"dir":%q,"listed":"2026-01-02T03:04:05Z","skills":["folder:other","own","a:b:c"]}]}`, filepath.Join(p.dir, ".agents", "skills"))
	if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	p.wantPending(t, "new")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if s := string(data); !strings.Contains(s, `"version":2`) || !strings.Contains(s, `["folder//other","own"]`) {
		t.Errorf("the file is %s", s)
	}
	p.wantPending(t, "new")
}

// If the content of the file is unknown, each skill may have been added.
func TestSkillsArePendingIfListIsUnreadable(t *testing.T) {
	for _, content := range []string{`{"version":3}`, `{`, `{"version":2,"dirs":7}`} {
		home := t.TempDir()
		p := newListedProject(t, home)
		p.add(t, "own", "own")
		state := filepath.Join(home, ".local", "state", "loadout")
		if err := os.MkdirAll(state, 0o700); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(state, "project-skills.json")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		p.wantPending(t, "own")
		if data, err := os.ReadFile(file); err != nil || string(data) != content {
			t.Errorf("the file with %.20q was changed", content)
		}
	}
}
