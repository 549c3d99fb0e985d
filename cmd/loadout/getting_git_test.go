package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/remote/remotetest"
)

// newTeam returns a repository with three skills, one of which has a script.
func newTeam(t *testing.T) (g *remotetest.Git, first string) {
	g = remotetest.NewGit(t)
	first = g.Commit(map[string]string{
		"skills/pdf/SKILL.md":        plainSkill("pdf", "Run scripts/fill.py."),
		"skills/pdf/scripts/fill.py": "print('one')\n",
		"skills/tides/SKILL.md":      plainSkill("tides", "Look it up."),
		"skills/notes/SKILL.md":      plainSkill("notes", "Write."),
	})
	return g, first
}

// Skills of a repository are listed and selected, and the lockfile has the hash of each
// file.
func TestB11RepositorySources(t *testing.T) {
	g, first := newTeam(t)
	p := newGetter(t)
	out := p.types(2, "add", g.URL)
	p.has(out.all(), "notes  Does what notes does.", "has 3 skills", "--skill NAME")
	if got := p.skills(); len(got) > 0 {
		t.Errorf("nothing was chosen, and there is %v", got)
	}
	out = p.types(0, "add", g.URL, "--skill", "pdf", "--skill", "tides")
	p.has(out.stdout, "pdf "+g.URL+"//skills/pdf ("+first[:12]+")", "scripts: scripts/fill.py", "Added 2 skills", "loadout approve pdf")
	if p.file("pdf/scripts/fill.py") != "print('one')\n" || p.file("notes/SKILL.md") != "" {
		t.Errorf("there is %v", p.skills())
	}
	p.has(p.file("loadout.lock"), first, "refs/heads/main", `"dir": "skills/tides"`)
	p.has(p.types(0, "verify").stdout, "all files of 2 skills")
	p.has(p.types(0, "list").stdout, "tides")
	p.types(0, "add", g.URL+"//skills/notes")
	var again addOutput
	p.reads(&again, 0, "add", g.URL, "--all")
	for _, s := range again.Skills {
		if s.State != "unchanged" {
			t.Errorf("%s is %s", s.Name, s.State)
		}
	}
	p.has(p.types(4, "add", g.URL+"//skils").all(), `directory "skils" not found`, "skills")
	p.has(p.types(4, "add", g.URL+"@nobranch").all(), "nobranch")
	p.types(0, "uninstall", "pdf")
	if p.file("pdf/SKILL.md") != "" {
		t.Error("pdf is still there")
	}
	p.types(4, "remove", "../../.loadout")
}

// One of two skills with the same name is selected by its directory. --all installs all
// except one, which is reported.
func TestDuplicateSkillNames(t *testing.T) {
	g := remotetest.NewGit(t)
	g.Commit(map[string]string{"a/SKILL.md": plainSkill("tides", "A."), "b/SKILL.md": plainSkill("tides", "B."), "c/SKILL.md": plainSkill("notes", "C.")})
	p := newGetter(t)
	p.has(p.types(2, "add", g.URL, "--skill", "tides").stderr, "2 skills at", "--skill a, or --skill b")
	p.types(0, "add", g.URL, "--skill", "b")
	p.has(p.file("tides/SKILL.md"), "B.")

	q := newGetter(t)
	out := q.types(1, "add", g.URL, "--all")
	q.has(out.all(), "Added 2 skills", "b: error: name tides is also used by the skill in a", "--skill b")
	q.has(q.file("tides/SKILL.md"), "A.")
	q.has(q.types(0, "update").stdout, "2 skills are up to date.")
}

// A skill whose name no directory can have answers to its name and to its directory's.
func TestNameUnusableAsDirectory(t *testing.T) {
	g := remotetest.NewGit(t)
	g.Commit(map[string]string{"notes/SKILL.md": plainSkill("Release: Notes?", "Write."), "x/SKILL.md": plainSkill("x", "X.")})
	p := newGetter(t)
	p.types(0, "add", g.URL, "--skill", "notes")
	p.types(0, "add", g.URL, "--skill", "Release: Notes?")
	p.has(p.types(0, "verify", "Release: Notes?").stdout, "1 skill")
	p.types(0, "update", "Release: Notes?")
	p.has(p.types(0, "remove", "Release: Notes?").stdout, "Removed notes")
}

func TestB12ConflictWithAnotherSource(t *testing.T) {
	g, _ := newTeam(t)
	other := remotetest.NewGit(t)
	other.Commit(map[string]string{"SKILL.md": plainSkill("pdf", "Another.")})
	p := newGetter(t)
	p.writes(".loadout/skills/tides/SKILL.md", plainSkill("tides", "My own."))
	p.types(0, "add", g.URL, "--skill", "pdf")
	before := p.skills()
	p.has(p.types(1, "add", other.URL).stderr, "pdf is already installed, from "+g.URL+"//skills/pdf", "--force", "loadout remove pdf")
	p.has(p.types(1, "add", g.URL, "--skill", "tides").stderr, "not installed by loadout add", "--force")
	if diff := cmp.Diff(before, p.skills()); diff != "" {
		t.Errorf("after conflicts it is another:\n%s", diff)
	}
	p.has(p.types(1, "add", g.URL, "--all").all(), "Added 1 skill", "not installed by loadout add")
	p.has(p.file("tides/SKILL.md"), "My own.")
	p.types(0, "add", other.URL, "--force")
	p.has(p.file("pdf/SKILL.md"), "Another.")
}

// A private repository is read with the token that was named for its host, which is in no
// output, file, lock or argument of a process.
func TestB12PrivateToken(t *testing.T) {
	g, _ := newTeam(t)
	const token = "tok-5e1f0c3a9d7b"
	g.Private(token)
	p := newGetter(t)
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	bin, log := t.TempDir(), filepath.Join(t.TempDir(), "arguments")
	wrapper := "#!/bin/sh\nprintf '%s\\n' \"$@\" >> " + log + "\nexec " + real + " \"$@\"\n"
	if err := os.WriteFile(filepath.Join(bin, "git"), []byte(wrapper), 0o755); err != nil {
		t.Skipf("no script can stand for git here: %v", err)
	}
	p.env = append(p.env, "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "LOADOUT_SECRETS_KEYRING=", "TEAM_TOKEN="+token)

	p.has(p.types(4, "add", g.URL, "--all").stderr, "if it is private", g.Host(), "sources.tokens")
	p.env = append(p.env, "LOADOUT_SOURCES_TOKENS="+g.Host()+"=TEAM_TOKEN")
	p.has(p.types(5, "add", g.URL, "--all").stderr, "TEAM_TOKEN", "loadout secret set TEAM_TOKEN")
	secret := exec.CommandContext(t.Context(), "loadout", "secret", "set", "TEAM_TOKEN")
	secret.Dir, secret.Env, secret.Stdin = p.home, p.env, strings.NewReader("wrong-"+token[:6])
	if out, err := secret.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out := p.types(3, "add", g.URL, "--all")
	p.has(out.stderr, "rejected the credential")
	secret = exec.CommandContext(t.Context(), "loadout", "secret", "set", "TEAM_TOKEN")
	secret.Dir, secret.Env, secret.Stdin = p.home, p.env, strings.NewReader(token)
	if out, err := secret.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, args := range [][]string{{"add", g.URL, "--all", "--verbose"}, {"update", "--verbose", "--json"}, {"verify"}} {
		if out := p.types(0, args...); strings.Contains(out.all(), token) {
			t.Errorf("loadout %v shows the token:\n%s", args, out.all())
		}
	}
	g.Cut(20)
	g.Push(remotetest.Change{Files: map[string]string{"skills/pdf/SKILL.md": plainSkill("pdf", "Two.")}})
	if out := p.types(1, "update"); strings.Contains(out.all(), token) {
		t.Errorf("an error shows the token:\n%s", out.all())
	}
	for path, text := range p.tree(p.home) {
		if strings.Contains(text, token) && !strings.Contains(path, "secrets") {
			t.Errorf("%s has the token", path)
		}
	}
	args, err := os.ReadFile(log)
	if err != nil || len(args) == 0 || strings.Contains(string(args), token) {
		t.Errorf("git was run with %s, %v", args, err)
	}
}

// What a moved branch has is shown, file by file, and then installed; an approval was for
// the bytes of before.
func TestW29UpdateOfMovedBranch(t *testing.T) {
	g, first := newTeam(t)
	p := newGetter(t)
	p.types(0, "add", g.URL, "--all")
	p.types(0, "approve", "pdf", "--yes")
	p.has(p.types(0, "update").stdout, "3 skills are up to date.")
	second := g.Push(remotetest.Change{
		Files: map[string]string{"skills/pdf/SKILL.md": strings.Replace(plainSkill("pdf", "Run scripts/fill.py, then scripts/merge.py."), "---\nRun", "allowed-tools: Bash(curl:*)\n---\nRun", 1),
			"skills/pdf/scripts/merge.py": "print('merge')\n"},
	})
	check := p.types(1, "update", "--check")
	p.has(check.all(), "pdf  newer  "+first[:12]+" → "+second[:12], "loadout update")
	if strings.Contains(check.all(), "tides") {
		t.Errorf("tides is not newer:\n%s", check.all())
	}
	p.has(p.types(0, "list").stderr, "1 update is available: pdf.")
	p.has(p.types(0, "doctor").stdout, "pdf: update found on ", first[:12]+" → "+second[:12])
	before := p.skills()
	p.has(p.types(0, "update", "--dry-run").all(), "added   scripts/merge.py script", "new permission: tool Bash(curl:*)", "+Run scripts/fill.py, then scripts/merge.py.", "Dry run")
	if diff := cmp.Diff(before, p.skills()); diff != "" {
		t.Errorf("a dry run changes\n%s", diff)
	}
	p.has(p.types(0, "approve", "pdf", "--dry-run").all(), "fill.py")
	p.has(p.types(0, "update", "pdf").stdout, "changed SKILL.md", "Updated 1 skill", "loadout approve pdf")
	p.has(p.file("loadout.lock"), second, first)
	if p.file("pdf/scripts/merge.py") == "" {
		t.Error("the new script is missing")
	}
	if out := p.types(0, "list"); strings.Contains(out.all(), "newer") {
		t.Errorf("it is said of what is up to date:\n%s", out.all())
	}
	p.types(0, "verify")
	p.types(0, "update", "--check")
}

// A tag that moved to another commit is reported and not followed. A pinned skill stays,
// and a higher version is named.
func TestForcePushedTag(t *testing.T) {
	g, first := newTeam(t)
	g.Annotate("v1.0.0", first)
	p := newGetter(t)
	p.types(0, "add", g.URL+"@v1.0.0", "--skill", "pdf")
	p.types(0, "add", g.URL+"@"+first, "--skill", "tides")
	second := g.Push(remotetest.Change{Files: map[string]string{"skills/pdf/SKILL.md": plainSkill("pdf", "Two."), "skills/tides/SKILL.md": plainSkill("tides", "Two.")}})
	g.Tag("v1.2.0", second)
	g.Tag("v1.10.0-rc.1", second)
	got := p.states(0)
	if got["pdf"].State != "pinned" || got["pdf"].Reason != "to v1.0.0; available: v1.2.0" || got["tides"].State != "pinned" || got["tides"].Reason != "to a commit" {
		t.Errorf("pinned are %+v", got)
	}
	p.has(got["pdf"].Fix, "loadout add "+g.URL+"//skills/pdf@v1.2.0 --scope user")
	p.types(0, "update", "--check")
	p.has(p.types(1, "add", g.URL, "--skill", "pdf").all(), "pdf is pinned to @v1.0.0", "--force")
	g.Annotate("v1.0.0", second)
	p.has(p.types(3, "add", g.URL+"//skills/pdf@v1.0.0").all(), "the tag v1.0.0 moved after pdf was installed", "--force")
	before := p.skills()
	out := p.types(1, "update")
	p.has(out.all(), "pdf    moved   the tag v1.0.0 moved to another commit ("+first[:12]+" → "+second[:12]+")", "find out why")
	if diff := cmp.Diff(before, p.skills()); diff != "" {
		t.Errorf("it was followed:\n%s", diff)
	}
	p.types(0, "add", g.URL+"//skills/pdf@v1.2.0")
	p.has(p.file("pdf/SKILL.md"), "Two.")
}

// Changes of the sources of skills are reported, and the installed skills stay.
func TestMovedSkills(t *testing.T) {
	g, _ := newTeam(t)
	g.Commit(map[string]string{"skills/sums/SKILL.md": plainSkill("sums", "Add.")})
	p := newGetter(t)
	p.types(0, "add", g.URL, "--all")
	g.Push(remotetest.Change{Branch: "side", Files: map[string]string{"only/SKILL.md": plainSkill("only", "Here.")}})
	p.types(0, "add", g.URL+"@side", "--all")
	g.Delete("refs/heads/side")
	g.Push(remotetest.Change{Remove: []string{"skills/notes", "skills/tides"}, Files: map[string]string{
		"skills/pdf/SKILL.md": plainSkill("pdf-tools", "Run."), "sea/tides/SKILL.md": plainSkill("tides", "Look it up.")}})
	before := p.skills()
	got := p.states(1)
	for name, want := range map[string]string{"notes": "gone", "only": "gone", "pdf": "renamed", "tides": "renamed", "sums": "current"} {
		if got[name].State != want {
			t.Errorf("%s is %s (%s), want %s", name, got[name].State, got[name].Reason, want)
		}
	}
	if diff := cmp.Diff(before, p.skills()); diff != "" {
		t.Errorf("an update changed\n%s", diff)
	}
	p.has(got["only"].Reason, "side")
	p.has(got["pdf"].Reason, "pdf-tools")
	// The suggested command works.
	fix := func(name string) {
		command := got[name].Fix[strings.Index(got[name].Fix, "loadout ")+len("loadout "):]
		for command := range strings.SplitSeq(command, "; then: loadout ") {
			p.types(0, strings.Fields(command)...)
		}
	}
	for _, name := range []string{"notes", "pdf", "tides"} {
		fix(name)
	}
	p.types(0, "remove", "only")
	after := p.states(0)
	if len(after) != 3 || after["pdf-tools"].State != "current" || after["tides"].State != "current" {
		t.Errorf("then there is %+v", after)
	}
}

func TestW29EditedSkillIsKept(t *testing.T) {
	g, _ := newTeam(t)
	p := newGetter(t)
	p.types(0, "add", g.URL, "--all")
	p.writes(".loadout/skills/tides/SKILL.md", plainSkill("tides", "Mine."))
	g.Commit(map[string]string{"README": "Other files.\n"})
	if got := p.states(0)["tides"]; got.State != "current" {
		t.Errorf("for an edited one that has nothing newer got %+v", got)
	}
	g.Commit(map[string]string{"skills/tides/SKILL.md": plainSkill("tides", "Two."), "skills/pdf/SKILL.md": plainSkill("pdf", "Two.")})
	out := p.types(1, "update")
	p.has(out.all(), "tides  edited  your edits to SKILL.md are kept", "loadout verify tides", "Updated 1 skill")
	p.has(p.file("tides/SKILL.md"), "Mine.")
	p.has(p.file("pdf/SKILL.md"), "Two.")
	p.has(p.types(1, "verify").stdout, "tides  changed  SKILL.md")
	p.has(p.types(0, "update", "tides", "--force").stdout, "-Mine.", "+Two.")
	p.types(0, "verify")
	// A skill whose directory is missing is not edited, and is installed again.
	if err := os.RemoveAll(p.installed("tides")); err != nil {
		t.Fatal(err)
	}
	p.has(p.types(1, "verify").stdout, "tides  absent")
	p.types(0, "add", g.URL, "--skill", "tides")
	p.types(0, "verify")
}

// An interrupted connection changes nothing. An unreachable server is reported.
func TestInterruptedConnection(t *testing.T) {
	g, _ := newTeam(t)
	p := newGetter(t)
	g.Cut(300)
	p.types(1, "add", g.URL, "--all")
	if got := p.skills(); len(got) > 0 {
		t.Errorf("there is %v", got)
	}
	g.Cut(0)
	p.types(0, "add", g.URL, "--all")
	before := p.skills()
	g.Commit(map[string]string{"skills/tides/SKILL.md": plainSkill("tides", strings.Repeat("Two.\n", 2000))})
	g.Cut(300)
	if got := p.states(1)["tides"]; got.State != "unknown" || got.Reason == "" || got.Fix == "" {
		t.Errorf("for a cut connection got %+v", got)
	}
	g.Forbid(true)
	if got := p.states(1, "--check")["tides"]; got.State != "unknown" {
		t.Errorf("for a server that forbids got %+v", got)
	}
	gone := newGetter(t)
	gone.writes(".loadout/skills/loadout.lock", strings.ReplaceAll(p.file("loadout.lock"), g.URL, "http://127.0.0.1:1/repo.git"))
	if got := gone.states(1)["tides"]; got.State != "unknown" {
		t.Errorf("for a server that is gone got %+v", got)
	}
	gone.has(gone.types(1, "add", "--frozen").stderr, "127.0.0.1:1", "try again")
	if diff := cmp.Diff(before, p.skills()); diff != "" {
		t.Errorf("after cut connections it is another:\n%s", diff)
	}
	p.types(0, "verify")
}

func TestAddFrozenFromRepository(t *testing.T) {
	g, first := newTeam(t)
	p := newGetter(t)
	p.types(0, "add", g.URL, "--all")
	want, lock := p.skills(), p.file("loadout.lock")
	g.Push(remotetest.Change{Anew: true, Files: map[string]string{"skills/pdf/SKILL.md": plainSkill("pdf", "Two.")}})

	ci := newGetter(t)
	ci.writes("repo/.git/HEAD", "")
	ci.writes("repo/.loadout/skills/loadout.lock", lock)
	cmd := []string{"add", "--frozen", "--dir", "repo/.loadout/skills"}
	ci.has(ci.types(0, cmd...).stdout, "Added 3 skills")
	got := ci.tree(filepath.Join(ci.home, "repo", ".loadout", "skills"))
	maps.DeleteFunc(got, func(path, _ string) bool { return strings.HasPrefix(path, ".") })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the lock brings\n%s", diff)
	}
	ci.has(ci.types(0, cmd...).stderr, "3 skills are already up to date")

	digest := lock[strings.Index(lock, `"digest": "sha256:`)+len(`"digest": "sha256:`):][:64]
	file := lock[strings.Index(lock, `"SKILL.md": "`)+len(`"SKILL.md": "`):][:64]
	other := newGetter(t)
	other.writes(".loadout/skills/loadout.lock", strings.Replace(strings.Replace(lock, digest, strings.Repeat("0", 64), 1), file, strings.Repeat("1", 64), 1))
	if out := other.types(1, "add", "--frozen"); !strings.Contains(out.stderr, "loadout.lock") {
		t.Errorf("of a lock whose digest does not fit its files it says\n%s", out.all())
	}
	gone := newGetter(t)
	gone.writes(".loadout/skills/loadout.lock", strings.ReplaceAll(lock, first, strings.Repeat("a", 40)))
	gone.types(4, "add", "--frozen")
	if got := gone.skills(); len(got) != 1 {
		t.Errorf("there is %v", got)
	}
}

// The skills of a repository are migrated by its URL, and not again.
func TestMigrationByURL(t *testing.T) {
	g, _ := newTeam(t)
	p := newGetter(t)
	p.has(p.types(0, "migrate", "wegent", g.URL, "--dry-run").stdout, "skill pdf: new", "loadout migrate wegent "+g.URL+" --yes")
	if got := p.skills(); len(got) > 0 {
		t.Errorf("a dry run installed %v", got)
	}
	p.types(0, "migrate", "wegent", g.URL, "--yes")
	if p.file("pdf/scripts/fill.py") != "print('one')\n" || p.file("tides/SKILL.md") == "" {
		t.Errorf("there is %v", p.skills())
	}
	p.has(p.types(0, "migrate", "wegent", g.URL, "--yes").stdout, "skill pdf: already there", "Nothing to do.")
}
