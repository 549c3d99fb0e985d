package evalfile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/loadout-dev/loadout/internal/configfile"
	"github.com/loadout-dev/loadout/internal/evalfile"
)

// summary describes a suite in one line for each part.
func summary(s *evalfile.Suite) []string {
	var out []string
	for _, c := range s.Cases {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s:%d %s %q %t %s", c.File, c.Line, c.ID, c.Prompt, c.Trigger, strings.Join(c.Accept, " "))))
	}
	for _, p := range s.Problems {
		out = append(out, fmt.Sprintf("problem %s:%d: %s", p.File, p.Line, p.Message))
	}
	return out
}

func TestReadsEachForm(t *testing.T) {
	for name, tt := range map[string]struct {
		files map[string]string
		want  []string
		not   map[string]int
	}{
		"own": {map[string]string{"evals/test.yaml": `version: 1
cases:
  - id: form
    prompt: Fill in the form
    rubric: [It is complete.]
  - {prompt: What time is it?, trigger: false}
  - {prompt: Read the PDF, accept: [ocr, pdf]}
`}, []string{`evals/test.yaml:3 form "Fill in the form" true`, `evals/test.yaml:6 6 "What time is it?" false`, `evals/test.yaml:7 7 "Read the PDF" true ocr`},
			map[string]int{"rubric": 1}},
		"own, of a newer version": {map[string]string{"evals/test.yaml": "version: 2\ncases: []\n"},
			[]string{`problem evals/test.yaml:1: version is "2", want 1; upgrade Loadout if the file is newer`}, nil},
		"evals.json of skill-creator": {map[string]string{"evals/evals.json": `{"skill_name": "pdf", "evals": [
{"id": 1, "prompt": "Fill it in", "expected_output": "A form", "files": ["evals/files/a.pdf"], "expectations": ["a", "b"]},
{"id": 2, "prompt": "Read it", "assertions": ["c"]}]}`},
			[]string{`evals/evals.json:2 1 "Fill it in" true`, `evals/evals.json:3 2 "Read it" true`},
			map[string]int{"expected_output": 1, "file": 1, "expectation": 2, "assertion": 1}},
		"eval_queries.json of skill-creator": {map[string]string{"eval_queries.json": "[{\"query\": \"Fill it in\", \"should_trigger\": true},\n{\"query\": \"Sing\", \"should_trigger\": false}]"},
			[]string{`eval_queries.json:1 1 "Fill it in" true`, `eval_queries.json:2 2 "Sing" false`}, nil},
		"scenarios of dotnet/skills": {map[string]string{"eval.yaml": `scenarios:
  - name: fill
    prompt: Fill it in
    setup: {files: [{path: a, content: b}]}
    assertions: [{type: output_contains, value: x}, {type: file_exists, path: y}, {type: output_contains, value: z}]
    timeout: 60
  - name: idle
    prompt: Sing
    expect_activation: false
`}, []string{`eval.yaml:2 fill "Fill it in" true`, `eval.yaml:7 idle "Sing" false`},
			map[string]int{"setup": 1, "assertion output_contains": 2, "assertion file_exists": 1, "timeout": 1}},
		"stimuli of Vally, with anchors": {map[string]string{"tests/pdf/fill.eval.yaml": `name: pdf
type: capability
defaults: {runs: 3}
shared: &env {skills: [pdf]}
stimuli:
  - name: fill
    prompt: Fill it in
    environment: *env
    graders: [{type: run-command, config: {command: ls}}, {type: prompt}]
  - {name: idle, prompt: Sing, expect_activation: false, environment: *env}
`}, []string{`tests/pdf/fill.eval.yaml:6 fill "Fill it in" true`, `tests/pdf/fill.eval.yaml:10 idle "Sing" false`},
			map[string]int{"defaults": 1, "shared": 1, "environment": 2, "grader run-command": 1, "grader prompt": 1}},
		"waza, with tasks and trigger tests": {map[string]string{
			"evals/eval.yaml":          "name: pdf\nskill: pdf\nconfig: {trials_per_task: 3}\ntasks: [tasks/*.yaml, none/*.yaml]\n",
			"evals/tasks/fill.yaml":    "id: fill\ninputs: {prompt: Fill it in, files: [{path: a}]}\ngraders: [{type: code}]\n",
			"evals/trigger_tests.yaml": "skill: pdf\nshould_trigger_prompts:\n  - {prompt: Read the form, reason: r, confidence: high}\nshould_not_trigger_prompts:\n  - Sing\n",
		}, []string{`evals/tasks/fill.yaml:1 fill "Fill it in" true`, `evals/trigger_tests.yaml:3 3 "Read the form" true`, `evals/trigger_tests.yaml:5 5 "Sing" false`,
			`problem evals/eval.yaml:4: no file matches "none/*.yaml"`},
			map[string]int{"config": 1, "file": 1, "grader code": 1}},
		"queries of skill-reach": {map[string]string{"evals/queries.jsonl": `{"id": "a", "text": "Fill it in", "kind": "implicit", "expected_skill": "pdf"}

{"id": "b", "query": "Scan it", "kind": "neighbor_negative", "expected_skill": "ocr", "acceptable_skills": ["scan"]}
{"id": "c", "text": "Sing", "kind": "out_of_scope", "expected_skill": null}
{"id": "d", "text": "Read it", "kind": "contextual", "expected_skill": "ocr", "acceptable_skills": ["pdf"]}
`}, []string{`evals/queries.jsonl:1 a "Fill it in" true`, `evals/queries.jsonl:3 b "Scan it" false scan ocr`, `evals/queries.jsonl:4 c "Sing" false`, `evals/queries.jsonl:5 d "Read it" true ocr`}, nil},
		"invalid": {map[string]string{"evals/evals.json": `{"evals": [1, {"id": "x"}, {"prompt": "a", "should_trigger": "maybe"}]}`, "evals/eval.yaml": "a: [", "evals/queries.json": `{"b": 1}`, "evals/readme.md": "x"},
			[]string{`evals/evals.json:1 1 "a" true`, `problem evals/eval.yaml:2: not valid YAML: while parsing a flow node: did not find expected node content`,
				`problem evals/evals.json:1: want a case, got a number`, `problem evals/evals.json:1: a case has no prompt`, `problem evals/evals.json:1: should_trigger is not true or false`,
				`problem evals/queries.json:1: not an evaluation file of a known form: it has none of cases, evals, scenarios, stimuli, should_trigger_prompts, tasks and queries`}, nil},
		"documents of another file named test.yaml": {map[string]string{"tests/test.yaml": "a: 1\n---\nb: 2\n", "eval_queries.json": `[{"query": "Read it"}]`},
			[]string{`eval_queries.json:1 1 "Read it" true`}, nil},
		"values of other types": {map[string]string{"evals/eval.yaml": "tasks: [{prompt: x}, '*.yaml']\n", "evals/trigger_tests.yaml": "should_trigger_prompts: x\nshould_not_trigger_prompts: [Sing]\n", "evals/a.eval.yaml": "tasks: a.yaml\n"},
			[]string{`evals/trigger_tests.yaml:2 2 "Sing" false`, `problem evals/a.eval.yaml:1: tasks: want a list of paths, got a text`, `problem evals/eval.yaml:1: tasks: want the path of a file, got a map`,
				`problem evals/trigger_tests.yaml:1: should_trigger_prompts: want a list, got a text`}, nil},
		"another file named test.yaml": {map[string]string{"tests/test.yaml": "job: lint\n"}, nil, nil},
		"none":                         {map[string]string{"SKILL.md": "x"}, nil, nil},
	} {
		fsys := fstest.MapFS{}
		for path, text := range tt.files {
			fsys[path] = &fstest.MapFile{Data: []byte(text)}
		}
		got := evalfile.Read(fsys, "pdf")
		if diff := cmp.Diff(tt.want, summary(got)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
		if diff := cmp.Diff(tt.not, got.NotMeasured, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: not measured (-want +got)\n%s", name, diff)
		}
	}
}

func TestFilesAndPromptsAreBounded(t *testing.T) {
	fsys := fstest.MapFS{"evals/large.eval.yaml": {Data: make([]byte, configfile.MaxBytes+1)},
		"evals/long.eval.yaml": {Data: []byte("scenarios: [{prompt: " + strings.Repeat("a", evalfile.MaxPrompt+1) + "}]")}, "evals/a/b/c/d/deep.eval.yaml": {Data: []byte("x")}}
	for i := range evalfile.MaxFiles + 2 {
		fsys[fmt.Sprintf("tests/%03d.eval.yaml", i)] = &fstest.MapFile{Data: []byte("scenarios: [" + strings.Repeat("{prompt: a}, ", 60) + "]")}
	}
	got := evalfile.Read(fsys, "pdf")
	if len(got.Files) != evalfile.MaxFiles || len(got.Cases) != evalfile.MaxCases {
		t.Errorf("read %d files and %d cases", len(got.Files), len(got.Cases))
	}
	text := strings.Join(summary(got), "\n")
	for _, want := range []string{"problem evals/large.eval.yaml:0: cannot be read: file too large", "prompt too long (20001 bytes, limit 20000)", "too many evaluation files (limit 200)", "too many cases (limit 10000)"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q", want)
		}
	}
	if strings.Contains(text, "deep") {
		t.Error("a file five levels below is read")
	}
}

// Pipes, which could block, and symlinks that lead out of the directory are not read.
func TestOnlyRegularFilesOfTheSkillAreRead(t *testing.T) {
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "evals.json")
	if err := os.WriteFile(outside, []byte(`{"evals": [{"prompt": "a"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "evals", "tasks"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, link := range []string{"evals.json", "evals/queries.json", "evals/tasks/a.yaml"} {
		if err := os.Symlink(outside, filepath.Join(dir, link)); err != nil {
			t.Skip(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "evals", "eval.yaml"), []byte("tasks: [tasks/*.yaml, ../../*]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	got := evalfile.Read(root.FS(), "pdf")
	if len(got.Cases) > 0 || !strings.Contains(strings.Join(summary(got), "\n"), "problem evals/tasks/a.yaml:0: cannot be read") {
		t.Errorf("read %q", summary(got))
	}
}

// Whatever a file contains, each case has a prompt within the limit and a position.
func FuzzRead(f *testing.F) {
	f.Add("evals/evals.json", `{"evals": [{"id": 1, "prompt": "Fill it in", "files": [{"type": "a"}]}]}`)
	f.Add("evals/test.yaml", "version: 1\ncases: [&a {prompt: x, accept: [b]}, *a]\n")
	f.Add("eval.yaml", "stimuli: [{prompt: a, graders: [{type: b}]}]")
	f.Add("evals/eval.yaml", "tasks: ['*.yaml', '[', '../x']")
	f.Add("evals/queries.jsonl", "{\"query\": \"a\"}\n[]\n1\n")
	f.Add("trigger_tests.yaml", "should_trigger_prompts: [a, {prompt: b}, [c]]\nshould_not_trigger_prompts: 1\n")
	f.Fuzz(func(t *testing.T, name, text string) {
		if !evalfile.IsFileName(name[strings.LastIndexByte(name, '/')+1:]) {
			return
		}
		s := evalfile.Read(fstest.MapFS{name: {Data: []byte(text)}}, "pdf")
		for _, c := range s.Cases {
			if c.Prompt == "" || len(c.Prompt) > evalfile.MaxPrompt || c.Line < 1 || c.File == "" || c.ID == "" {
				t.Fatalf("case %+v", c)
			}
		}
		for kind, n := range s.NotMeasured {
			if kind == "" || n < 1 {
				t.Fatalf("%d of %q are not measured", n, kind)
			}
		}
	})
}
