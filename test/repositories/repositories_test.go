//go:build linux

// Package repositories_test calls what the skills of other systems provide, with
// the real program: it migrates each repository into a fresh home directory,
// approves the skills, and uses each one. Skills with a SKILL.md are migrated
// unchanged. Those of local-llm-provider are Python classes, which are converted
// to instructions that name their tools. LOADOUT_TEST_REPOSITORIES names a
// directory with bare clones of the repositories:
//
//	git clone --bare https://github.com/OWNER/NAME.git DIR/OWNER+NAME/repo
//
// Services that the tools need are fakes on loopback, and Python packages are
// stand-ins where no package index can be reached. Run it with -v for a table of
// the calls and their results.
package repositories_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

// repository is a repository with skills.
type repository struct {
	name   string // OWNER/NAME
	system string // as loadout migrate names it
	// without lists large files that are not extracted, because a clone may lack
	// them.
	without   []string
	documents string           // file of documents for a hub, or ""
	packages  bool             // its skills require Python packages
	usable    int              // minimum number of skills that must be usable
	uses      map[string][]use // of each skill
}

func TestSkillsOfRepositories(t *testing.T) {
	clones := os.Getenv("LOADOUT_TEST_REPOSITORIES")
	if clones == "" {
		t.Skip("LOADOUT_TEST_REPOSITORIES names no directory with clones: see the package comment")
	}
	for _, r := range repositories {
		t.Run(path.Base(r.name), func(t *testing.T) {
			from := filepath.Join(clones, strings.Replace(r.name, "/", "+", 1), "repo")
			if _, err := os.Stat(from); err != nil {
				t.Skipf("no clone of %s: git clone --bare https://github.com/%s.git %s", r.name, r.name, from)
			}
			testRepository(t, r, from)
		})
	}
}

// testRepository uses all skills of a repository and prints a table of the
// results. A skill is usable if its uses give the wanted results and not all of
// them are refused.
func testRepository(t *testing.T, r repository, from string) {
	u := newUser(t, r.packages)
	checkout := filepath.Join(u.home, "checkout")
	extract(t, from, checkout, r.without)
	skills := u.migrate(r.system, checkout)
	for name := range r.uses {
		if !slices.Contains(skills, name) {
			t.Errorf("the skill %s was not migrated", name)
		}
	}
	for _, name := range skills {
		u.approve(name, r.uses[name])
	}
	if r.documents != "" {
		u.checkDocuments(filepath.Join(checkout, r.documents))
	}
	u.connect()
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "repository\tskill\tcalled\tresult")
	usable := 0
	for _, name := range skills {
		uses := r.uses[name]
		failed := !slices.ContainsFunc(uses, func(c use) bool { return !c.refused })
		if failed {
			t.Errorf("this test has no use of the skill %s", name)
		}
		for _, c := range uses {
			result, err := u.use(name, c)
			if err != nil {
				failed = true
				t.Errorf("%s: %s: %v", name, c, err)
				result = "FAILED"
			} else if c.refused {
				result = "refused: " + result
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", path.Base(r.name), name, c, summarize(result))
		}
		if !failed {
			usable++
		}
	}
	w.Flush()
	t.Logf("%s: %d of %d skills are usable, at least %d expected\n%s", r.name, usable, len(skills), r.usable, table.String())
	if usable < r.usable {
		t.Errorf("%d skills are usable, want %d", usable, r.usable)
	}
}

// summarize returns the beginning of a result, on one line.
func summarize(result string) string {
	const most = 70
	s := []rune(strings.Join(strings.Fields(result), " "))
	if len(s) > most {
		return string(s[:most-1]) + "…"
	}
	return string(s)
}

// extract writes the files of a bare clone to a directory.
func extract(t *testing.T, from, to string, without []string) {
	t.Helper()
	if err := os.Mkdir(to, 0o755); err != nil {
		t.Fatal(err)
	}
	args := []string{"-c", "safe.directory=*", "-C", from, "archive", "HEAD", "--", "."}
	for _, p := range without {
		args = append(args, ":(exclude)"+p)
	}
	git, tar := exec.CommandContext(t.Context(), "git", args...), exec.CommandContext(t.Context(), "tar", "-x", "--no-same-owner", "-C", to)
	var err error
	if tar.Stdin, err = git.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder // git also complains about absent files that are left out
	git.Stderr, tar.Stderr = &stderr, &stderr
	for _, step := range []func() error{tar.Start, git.Run, tar.Wait} {
		if err := step(); err != nil {
			t.Fatalf("extract %s: %v\n%s", from, err, stderr.String())
		}
	}
}

// migrate migrates a checkout, and returns the names of the user's skills.
func (u *user) migrate(system, checkout string) []string {
	u.t.Helper()
	stdout, stderr, err := u.loadout("", "migrate", system, checkout, "--yes", "--json")
	var out struct {
		Done  bool
		Items []struct{ Kind, Name, From, Outcome string }
	}
	if jsonErr := json.Unmarshal([]byte(stdout), &out); jsonErr != nil || !out.Done {
		u.t.Fatalf("migrate %s: %v, %v\n%s%s", system, err, jsonErr, stdout, stderr)
	}
	for _, i := range out.Items {
		switch {
		case i.Kind != "skill":
		case i.Outcome == "lost":
			u.t.Errorf("migrate lost the skill %s: %s", i.Name, stdout)
		case i.Outcome == "kept":
			u.checkUnchanged(i.Name, filepath.Join(checkout, i.From))
		}
	}
	var list struct {
		Skills []struct{ Name, Scope string }
	}
	stdout, stderr, err = u.loadout("", "list", "--json")
	if jsonErr := json.Unmarshal([]byte(stdout), &list); jsonErr != nil {
		u.t.Fatalf("list: %v, %v\n%s%s", err, jsonErr, stdout, stderr)
	}
	var names []string
	for _, s := range list.Skills {
		if s.Scope == "user" {
			names = append(names, s.Name)
		}
	}
	return names
}

// checkUnchanged checks that an installed skill has exactly the files of the
// repository.
func (u *user) checkUnchanged(dir, from string) {
	u.t.Helper()
	want, got := readTree(u.t, from), readTree(u.t, filepath.Join(u.home, ".loadout", "skills", dir))
	for p, text := range want {
		if got[p] != text {
			u.t.Errorf("skill %s: %s differs from the repository", dir, p)
		}
	}
	if len(got) != len(want) {
		u.t.Errorf("skill %s: %d files, want %d", dir, len(got), len(want))
	}
}

// readTree returns the contents of all files in a directory, by path.
func readTree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	fsys := os.DirFS(dir)
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(fsys, p)
		files[p] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// limit bounds the time of one command or call.
const limit = 5 * time.Minute
