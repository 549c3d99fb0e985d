//go:build linux

package main

import (
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/llm/replay"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func bundledSkills(t *testing.T) *loadout.Runtime {
	t.Helper()
	rt, err := open(t.Context(), nil)
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

// Every bundled skill is asked for often enough, in several languages, and there are
// questions that none is for; each of them once.
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
	for _, e := range bundledSkills(t).Catalog().Snapshot().Offered() {
		known[e.Name] = true
		if of[e.Name] < 10 {
			t.Errorf("%s is asked for %d times", e.Name, of[e.Name])
		}
	}
	for name := range of {
		if !known[name] {
			t.Errorf("there is no skill %s", name)
		}
	}
	if of[""] < 15 || languages["zh"] < 10 || len(languages) < 4 {
		t.Errorf("%d questions without a skill, by language %v", of[""], languages)
	}
}

// Search finds the bundled skill for what people ask. A little below what it does, so
// that a word in a description may change.
func TestSearchFindsTheBundledSkills(t *testing.T) {
	all, err := askSearch(t.Context(), bundledSkills(t), allQuestions(t))
	if err != nil {
		t.Fatal(err)
	}
	var english []found
	for _, f := range all {
		if f.Language == "en" {
			english = append(english, f)
		}
	}
	q, en := quality(all), quality(english)
	if float64(q.hit1) < 0.7*float64(q.asked) || float64(en.hit1) < 0.75*float64(en.asked) || float64(en.hit3) < 0.9*float64(en.asked) {
		t.Errorf("of %d at the first place %d; of %d in English at the first %d, among three %d", q.asked, q.hit1, en.asked, en.hit1, en.hit3)
	}
}

// What a model did is the same from its recording, which is asked nothing that it does
// not know.
func TestARunIsReplayed(t *testing.T) {
	rt, dir := bundledSkills(t), t.TempDir()
	var asked []question
	for i, q := range allQuestions(t) {
		if i%4 == 0 {
			asked = append(asked, q)
		}
	}
	run := func(o modelFlags) []choice {
		t.Helper()
		m, err := o.open()
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
	if right := tally("", want)[1]; right == "0.00" {
		t.Error("the demonstration loads nothing right")
	}
	m, err := (&modelFlags{model: "replay:" + dir}).open()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := askModel(t.Context(), m, rt, []question{{Ask: "Who was never asked?"}}); !errors.As(err, new(*replay.UnknownError)) {
		t.Errorf("of a question that was not recorded it says %v", err)
	}
}

// script is a model that gives answers in their order.
type script []llm.Answer

func (script) Name() string { return "script:1" }

func (s *script) Stream(context.Context, *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		if len(*s) == 0 {
			yield(nil, errors.New("the script is over"))
			return
		}
		a := (*s)[0]
		*s = (*s)[1:]
		yield(llm.Done{Answer: a}, nil)
	}
}

func calls(all ...llm.Call) llm.Answer {
	a := llm.Answer{Stop: llm.StopTools, Message: llm.Message{Role: llm.Assistant}, Usage: llm.Usage{Input: 10, Output: 1}}
	for _, c := range all {
		a.Message.Parts = append(a.Message.Parts, c)
	}
	return a
}

func load(id, arguments string) llm.Call {
	return llm.Call{ID: id, Name: "load_skill", Arguments: arguments}
}

// The answer of a model is what it loads first, in its own order; nothing is asked
// after that.
func TestTheFirstLoadIsTheAnswer(t *testing.T) {
	search := calls(llm.Call{ID: "s", Name: "search_skills", Arguments: `{"query":"draw"}`})
	words := llm.Answer{Stop: llm.StopEnd, Message: llm.Message{Role: llm.Assistant, Parts: []llm.Part{llm.Text("I know that.")}}, Usage: llm.Usage{Input: 10, Output: 3}}
	for _, tt := range []struct {
		name   string
		script script
		want   string
		steps  int
		fails  bool
	}{
		{name: "at once", script: script{calls(load("1", `{"name":"mermaid-diagrams"}`))}, want: "mermaid-diagrams", steps: 1},
		{name: "after a search", script: script{search, calls(load("1", `{"name":"mermaid-diagrams"}`))}, want: "mermaid-diagrams", steps: 2},
		{name: "two at once", script: script{calls(load("1", `{"name":"skill-creator"}`), load("2", `{"name":"mermaid-diagrams"}`))}, want: "skill-creator", steps: 1},
		{name: "with origin and version", script: script{calls(load("1", `{"name":"bundled/csv-analysis@^1.0"}`))}, want: "csv-analysis", steps: 1},
		{name: "what is not there", script: script{calls(load("1", `{"name":"drawing"}`))}, want: "drawing", steps: 1},
		{name: "nothing", script: script{words}, steps: 1},
		{name: "searching for ever", script: script{search, search, search, search, search}, steps: maxSteps},
		{name: "a model that fails", script: script{}, fails: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			all, err := askModel(t.Context(), &tt.script, bundledSkills(t), []question{{Ask: "Draw it."}})
			if tt.fails {
				if err == nil || !strings.Contains(err.Error(), `asking "Draw it."`) {
					t.Errorf("it says %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if c := all[0]; c.loaded != tt.want || c.steps != tt.steps || c.usage.Input != 10*tt.steps {
				t.Errorf("loaded %q after %d answers, usage %+v", c.loaded, c.steps, c.usage)
			}
		})
	}
}

func TestModelFlags(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "")
	for _, tt := range []struct {
		o    modelFlags
		want string
	}{
		{modelFlags{model: "gpt"}, "names no model"},
		{modelFlags{model: "openai:"}, "names no model"},
		{modelFlags{model: "anthropic:claude-x"}, "ANTHROPIC_API_KEY"},
		{modelFlags{model: "replay:" + filepath.Join(t.TempDir(), "none")}, "no such file"},
	} {
		if _, err := tt.o.open(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v", tt.o, err)
		}
	}
	m, err := (&modelFlags{model: "openai:small", baseURL: "http://127.0.0.1:1/v1"}).open()
	if err != nil || !strings.HasSuffix(m.Name(), ":small") {
		t.Errorf("%v, %v", m, err)
	}
}

func TestReadQuestions(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{`[{"ask":"Hello?"}]`: "", `[{"want":"pdf"}]`: "question 1 asks nothing", `{`: "unexpected end"} {
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
