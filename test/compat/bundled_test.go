//go:build linux

package compat

import (
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/bundled"
	"github.com/loadout-dev/loadout/internal/sandbox/sandboxtest"
	"github.com/loadout-dev/loadout/internal/script"
	"github.com/loadout-dev/loadout/sandbox"
)

const patch = `diff --git a/a.py b/a.py
--- a/a.py
+++ b/a.py
@@ -1 +1,2 @@
 x = 1
+y = 2
`

// bundledRuns lists runs of the scripts of the bundled skills: their input and parts of
// their output. Each script has at least one.
var bundledRuns = []struct {
	skill, script string
	args          []string
	stdin         string
	give          []string // files of the skill, as inputs
	code          int
	want          []string
	told          string // part of standard error
}{
	{skill: "csv-analysis", script: "scripts/profile_csv.py", args: []string{"/work/in/sample.csv"}, give: []string{"assets/sample.csv"}, want: []string{"region", "unit_price"}},
	{skill: "csv-analysis", script: "scripts/profile_csv.py", args: []string{"-"}, stdin: "a;b\n1;x\n2;y\n", want: []string{"integer"}},
	{skill: "csv-analysis", script: "scripts/aggregate_csv.py", args: []string{"/work/in/sample.csv", "--by", "region", "--sum", "quantity"}, give: []string{"assets/sample.csv"}, want: []string{"region,", "North,5,417"}, told: "1 cells left out"},
	{skill: "csv-analysis", script: "scripts/aggregate_csv.py", args: []string{"/skill/assets/sample.csv", "--json", "--strict", "--mean", "unit_price"}, code: 1, told: "refused because of --strict"},
	{skill: "git-commit-review", script: "scripts/diff_summary.py", stdin: patch, want: []string{"a.py"}},
	{skill: "git-commit-review", script: "scripts/diff_summary.py", args: []string{"--json"}, stdin: "3\t1\tdocs/x.md\n", want: []string{"docs"}},
	{skill: "mermaid-diagrams", script: "scripts/lint_mermaid.py", args: []string{"/work/in/flowchart.mmd", "/skill/assets/er.mmd"}, give: []string{"assets/flowchart.mmd"}, told: "diagrams: 2, findings: 0"},
	{skill: "mermaid-diagrams", script: "scripts/lint_mermaid.py", stdin: "flowchart TD\n  a --> end\n", code: 1, want: []string{"-:2:9: a reserved word"}, told: "findings: 1"},
	{skill: "skill-creator", script: "scripts/check_links.py", args: []string{"/skill"}, told: " 0 broken"},
	{skill: "skill-creator", script: "scripts/check_links.py", args: []string{"/work/in", "--json"}, give: []string{"SKILL.md"}, code: 1, want: []string{"references/format.md"}},
}

func TestBundled(t *testing.T) {
	if sandboxtest.AsUser(t) {
		return
	}
	testBundled(t)
}

func TestBundledAsRoot(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("not root")
	}
	testBundled(t)
}

func testBundled(t *testing.T) {
	needs(t, "python3")
	rt, err := loadout.New(t.Context(), &loadout.Options{
		Sources: []catalog.Source{catalog.NewFS("bundled", catalog.Bundled, bundled.FS())},
		Scripts: &loadout.Scripts{Sandbox: backend(t)},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	tried := map[string]bool{}
	for _, r := range bundledRuns {
		tried[r.skill+" "+r.script] = true
		t.Run(strings.Join(append([]string{r.skill, r.script}, r.args...), "_"), func(t *testing.T) {
			run := loadout.Run{Skill: r.skill, Script: r.script, Args: r.args, Stdin: strings.NewReader(r.stdin)}
			for _, f := range r.give {
				run.Inputs = append(run.Inputs, loadout.Input{Name: f[strings.LastIndex(f, "/")+1:], FS: bundled.FS(), Path: r.skill + "/" + f})
			}
			ran, err := rt.Run(t.Context(), run)
			if err != nil {
				t.Fatal(err)
			}
			if ran.ExitCode != r.code || ran.Killed || ran.Tier < int(sandbox.Isolated) || !strings.Contains(ran.Stderr, r.told) || (r.told == "") != (ran.Stderr == "") {
				t.Errorf("exit code %d, want %d; %s %s, tier %d: %s%s", ran.ExitCode, r.code, ran.Reason, ran.Detail, ran.Tier, ran.Stdout, ran.Stderr)
			}
			for _, w := range r.want {
				if !strings.Contains(ran.Stdout, w) {
					t.Errorf("no %q in %q", w, ran.Stdout)
				}
			}
		})
	}
	for _, e := range rt.Catalog().Snapshot().Skills() {
		m, err := rt.Catalog().Manifest(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		sub, err := fs.Sub(bundled.FS(), e.Name)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range script.Scripts(sub, m) {
			if !tried[e.Name+" "+s] {
				t.Errorf("%s of %s has no run here", s, e.Name)
			}
		}
	}
}
