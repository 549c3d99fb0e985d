//go:build linux

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/llm/replay"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func bundledSkills(t *testing.T) *loadout.Runtime {
	t.Helper()
	rt, err := openRuntime(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	return rt
}

func allQuestions(t *testing.T) []question {
	t.Helper()
	all, err := readQuestions("")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Every bundled skill has enough questions in several languages. There are questions without a
// skill, and no question is asked twice.
func TestQuestionsCoverTheBundledSkills(t *testing.T) {
	of, languages, seen := map[string]int{}, map[string]int{}, map[string]bool{}
	for _, q := range allQuestions(t) {
		of[q.Want]++
		languages[q.Language]++
		if seen[q.Ask] {
			t.Errorf("%q is asked twice", q.Ask)
		}
		seen[q.Ask] = true
	}
	known := map[string]bool{"": true}
	for _, e := range bundledSkills(t).Catalog().Snapshot().ForModel() {
		known[e.Name] = true
		if of[e.Name] < 10 {
			t.Errorf("%s has %d questions, want 10", e.Name, of[e.Name])
		}
	}
	for name := range of {
		if !known[name] {
			t.Errorf("question for an unknown skill %s", name)
		}
	}
	if of[""] < 15 || languages["zh"] < 10 || len(languages) < 4 {
		t.Errorf("%d questions without a skill, by language %v", of[""], languages)
	}
}

// The limits are a little below the figures, so that words of a description may change.
func TestSearchFindsTheBundledSkills(t *testing.T) {
	all, err := askSearch(t.Context(), bundledSkills(t), allQuestions(t))
	if err != nil {
		t.Fatal(err)
	}
	var english []searchResult
	for _, f := range all {
		if f.Language == "en" {
			english = append(english, f)
		}
	}
	q, en := measureQuality(all), measureQuality(english)
	if float64(q.hit1) < 0.7*float64(q.asked) || float64(en.hit1) < 0.75*float64(en.asked) || float64(en.hit3) < 0.9*float64(en.asked) {
		t.Errorf("of %d questions %d hit@1; of %d in English %d hit@1, %d hit@3", q.asked, q.hit1, en.asked, en.hit1, en.hit3)
	}
}

// A replayed run gives the same answers and fails on unknown questions.
func TestReplay(t *testing.T) {
	rt, dir := bundledSkills(t), t.TempDir()
	var asked []question
	for i, q := range allQuestions(t) {
		if i%4 == 0 {
			asked = append(asked, q)
		}
	}
	run := func(o modelFlags) []choice {
		t.Helper()
		m, err := o.openModel()
		if err != nil {
			t.Fatal(err)
		}
		all, err := askModel(t.Context(), m, rt, asked)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	want := run(modelFlags{model: "demo", record: dir})
	got := run(modelFlags{model: "replay:" + dir})
	if d := cmp.Diff(want, got, cmp.AllowUnexported(choice{})); d != "" {
		t.Errorf("replayed (-recorded +replayed):\n%s", d)
	}
	if right := tallyRow("", want)[1]; right == "0.00" {
		t.Error("demo model loads no right skill")
	}
	m, err := (&modelFlags{model: "replay:" + dir}).openModel()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := askModel(t.Context(), m, rt, []question{{Ask: "Who was never asked?"}}); !errors.As(err, new(*replay.UnknownError)) {
		t.Errorf("error for an unrecorded question is %v", err)
	}
}

func TestModelFlags(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "")
	for _, tt := range []struct {
		o    modelFlags
		want string
	}{
		{modelFlags{model: "gpt"}, "unknown model"},
		{modelFlags{model: "openai:"}, "unknown model"},
		{modelFlags{model: "anthropic:claude-x"}, "ANTHROPIC_API_KEY"},
		{modelFlags{model: "replay:" + filepath.Join(t.TempDir(), "none")}, "no such file"},
	} {
		if _, err := tt.o.openModel(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v", tt.o, err)
		}
	}
	m, err := (&modelFlags{model: "openai:small", baseURL: "http://127.0.0.1:1/v1"}).openModel()
	if err != nil || !strings.HasSuffix(m.Name(), ":small") {
		t.Errorf("%v, %v", m, err)
	}
}

func TestReadQuestions(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{`[{"ask":"Hello?"}]`: "", `[{"want":"pdf"}]`: "missing text in question 1", `{`: "unexpected end"} {
		file := filepath.Join(dir, "questions.json")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		all, err := readQuestions(file)
		if want == "" && (err != nil || len(all) != 1) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, %v", text, all, err)
		}
	}
}
