package evaluation

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/bundled"
	"github.com/loadout-dev/loadout/internal/evalfile"
	"github.com/loadout-dev/loadout/llm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func bundledSkills(t *testing.T) *loadout.Runtime {
	t.Helper()
	rt, err := loadout.New(t.Context(), &loadout.Options{Sources: []catalog.Source{catalog.NewFS("bundled", catalog.Bundled, bundled.FS())}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	return rt
}

// script is a model that returns its answers in order.
type script []llm.Answer

func (script) Name() string { return "script:1" }

func (s *script) Stream(context.Context, *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		if len(*s) == 0 {
			yield(nil, errors.New("no answer left in the script"))
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

// The answer of a model is the first skill it loads. The model is not asked again after that.
func TestFirstLoadIsTheAnswer(t *testing.T) {
	rt := bundledSkills(t)
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
		{name: "a missing skill", script: script{calls(load("1", `{"name":"drawing"}`))}, want: "drawing", steps: 1},
		{name: "another tool, which is not offered", script: script{calls(llm.Call{ID: "r", Name: "run_skill_script", Arguments: `{"skill":"csv-analysis","script":"x.py"}`}), words}, steps: 2},
		{name: "nothing", script: script{words}, steps: 1},
		{name: "searching for ever", script: script{search, search, search, search, search}, steps: maxSteps},
		{name: "a model that fails", script: script{}, fails: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := Ask(t.Context(), &tt.script, rt, "Draw it.")
			if tt.fails {
				if err == nil {
					t.Error("no error")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if c.Loaded != tt.want || c.Steps != tt.steps || c.Usage.Input != 10*tt.steps {
				t.Errorf("loaded %q after %d responses, usage %+v", c.Loaded, c.Steps, c.Usage)
			}
		})
	}
}

// byPrompt is a model that returns an answer for each prompt.
type byPrompt map[string]llm.Answer

func (byPrompt) Name() string { return "byPrompt:1" }

func (m byPrompt) Stream(_ context.Context, r *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		prompt, _ := r.Messages[0].Parts[0].(llm.Text)
		a, ok := m[string(prompt)]
		if !ok {
			yield(nil, errors.New("no answer"))
			return
		}
		yield(llm.Done{Answer: a}, nil)
	}
}

// A case for which the model does not answer neither passes nor fails.
func TestCasesWithAnErrorAreInvalid(t *testing.T) {
	rt := bundledSkills(t)
	e := rt.Catalog().Snapshot().ByName("csv-analysis")
	words := llm.Answer{Stop: llm.StopEnd, Message: llm.Message{Role: llm.Assistant, Parts: []llm.Part{llm.Text("No.")}}}
	other := calls(load("2", `{"name":"skill-creator"}`))
	m := byPrompt{"a": calls(load("1", `{"name":"csv-analysis"}`)), "b": words, "c": other, "d": other}
	got, err := askAll(t.Context(), m, rt, e, []evalfile.Case{{Prompt: "a", Trigger: true}, {Prompt: "b"}, {Prompt: "c", Trigger: true, Accept: []string{"skill-creator"}}, {Prompt: "d", Trigger: true}, {Prompt: "e", Trigger: true}})
	if err != nil {
		t.Fatal(err)
	}
	var failures []string
	for _, c := range got.Cases {
		failures = append(failures, c.Failure())
	}
	if text := strings.Join(failures, "|"); text != "|||the model loads skill-creator|not measured: no answer" {
		t.Error(text)
	}
	if got.Invalid != 1 || got.Rate != 0.75 || got.Passed || got.Name != "byPrompt:1" {
		t.Errorf("%+v", got)
	}
}
