//go:build linux

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/bench/internal/measure"
	"github.com/loadout-dev/loadout/internal/llm/demo"
	"github.com/loadout-dev/loadout/internal/llm/replay"
	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/llm/anthropic"
	"github.com/loadout-dev/loadout/llm/openai"
)

// modelFlags holds the flags that select the model.
type modelFlags struct{ model, record, baseURL, key string }

// openModel returns the model selected by the flags. It sends a vendor's key only to that
// vendor. Another server gets the key specified by -key, or none.
func (o *modelFlags) openModel() (llm.Model, error) {
	vendor, name, _ := strings.Cut(o.model, ":")
	variable := map[string]string{"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}[vendor]
	if o.baseURL != "" {
		variable = ""
	}
	key := os.Getenv(cmp.Or(o.key, variable))
	var m llm.Model
	var err error
	switch {
	case o.model == "demo":
		m = demo.New(nil)
	case vendor == "replay" && name != "":
		m, err = replay.Open(name)
	case vendor == "anthropic" && name != "":
		m, err = anthropic.New(name, &anthropic.Options{Key: key, BaseURL: o.baseURL})
	case vendor == "openai" && name != "":
		m, err = openai.New(name, &openai.Options{Key: key, BaseURL: o.baseURL})
	default:
		err = fmt.Errorf("unknown model %q: want anthropic:NAME, openai:NAME, demo or replay:DIR", o.model)
	}
	if err != nil {
		return nil, err
	}
	if m = llm.Retry(m, nil); o.record == "" {
		return m, nil
	}
	return replay.Record(m, o.record, &replay.Options{Secrets: []string{key}})
}

// choice is a model's answer to a question: the skill that it loaded.
type choice struct {
	question
	loaded string // first skill loaded; "" if none
	usage  llm.Usage
	steps  int // number of model responses
}

func runModel(ctx context.Context, o *modelFlags, questions []question, dirs []string, verbose bool) error {
	m, err := o.openModel()
	if err != nil {
		return err
	}
	rt, err := openRuntime(ctx, dirs)
	if err != nil {
		return err
	}
	defer rt.Close()
	all, err := askModel(ctx, m, rt, questions)
	if err != nil {
		return err
	}
	fmt.Printf("\n%s, %d skills, %d questions; the answer is the first skill loaded:\n\n", m.Name(), len(rt.Catalog().Snapshot().ForModel()), len(all))
	measure.WriteMarkdown(os.Stdout, choiceRows(all))
	if verbose {
		fmt.Println()
		measure.WriteMarkdown(os.Stdout, wrongRows(all))
	}
	return nil
}

// askModel asks each question once, in a separate conversation.
func askModel(ctx context.Context, m llm.Model, rt *loadout.Runtime, questions []question) ([]choice, error) {
	var out []choice
	for _, q := range questions {
		c, err := askOne(ctx, m, rt, q)
		if err != nil {
			return nil, fmt.Errorf("ask %q: %w", q.Ask, err)
		}
		out = append(out, c)
	}
	return out, nil
}

const maxSteps = 4 // maximum number of model responses; a search and a load take two

var errLoaded = errors.New("stopped after the skill was loaded")

// askOne asks the model one question and stops when the model loads a skill.
func askOne(ctx context.Context, m llm.Model, rt *loadout.Runtime, q question) (choice, error) {
	c := choice{question: q}
	s, err := rt.NewSession(ctx, nil)
	if err != nil {
		return c, err
	}
	defer s.Close()
	tools, closeTools, err := agent.SkillTools(ctx, rt, s, nil)
	if err != nil {
		return c, err
	}
	defer closeTools()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	a := agent.New(m, s, &agent.Options{Instructions: instructions(rt), Tools: tools, MaxSteps: maxSteps})
	err = a.RunTurn(ctx, q.Ask, func(e agent.Event) {
		switch {
		case e.Type == agent.Usage:
			c.steps++
			c.usage = c.usage.Add(llm.Usage{Input: e.Usage.Input, CacheRead: e.Usage.CacheRead, CacheWrite: e.Usage.CacheWrite, Output: e.Usage.Output})
		case e.Type == agent.ToolResult && e.Call.Name == toolname.LoadSkill:
			stop(errLoaded) // stop the turn, because the answer is known
		}
	})
	c.loaded = firstLoad(s)
	if err != nil && !errors.Is(err, agent.ErrTooManySteps) && !errors.Is(context.Cause(ctx), errLoaded) {
		return c, err
	}
	return c, nil
}

// firstLoad returns the skill named in a conversation's first load_skill call, or "".
func firstLoad(s *loadout.Session) string {
	for _, e := range s.Events(0) {
		if e.Message == nil {
			continue
		}
		for _, call := range e.Message.Calls {
			var args struct{ Name string }
			if call.Name == toolname.LoadSkill && json.Unmarshal([]byte(call.Arguments), &args) == nil {
				name, _, _ := strings.Cut(args.Name, "@")
				return cmp.Or(path.Base(name), "?")
			}
		}
	}
	return ""
}

// instructions returns the system prompt with the list of skills, as `loadout chat` sends
// it.
func instructions(rt *loadout.Runtime) string {
	return "You help the person you talk to. Skills are instructions for kinds of tasks: before a task that one of them is for, load it with load_skill and go by it. Load none where none is for the task.\n\nSkills:\n" +
		rt.CatalogText(4000)
}

// choiceRows returns a table of a model's answers, in total and by language.
func choiceRows(all []choice) [][]string {
	rows := [][]string{{"questions", "right skill", "wrong skill", "none", "loads for questions without a skill", "responses per question", "prompt tokens per question", "output"}}
	rows = append(rows, tallyRow("all", all))
	byLanguage := map[string][]choice{}
	for _, c := range all {
		byLanguage[c.Language] = append(byLanguage[c.Language], c)
	}
	for _, l := range slices.Sorted(maps.Keys(byLanguage)) {
		rows = append(rows, tallyRow(l, byLanguage[l]))
	}
	return rows
}

// tallyRow returns a table row with the proportion of each kind of answer.
func tallyRow(name string, all []choice) []string {
	var with, right, another, idle, without, loads, steps int
	var u llm.Usage
	for _, c := range all {
		steps += c.steps
		u = u.Add(c.usage)
		switch {
		case c.Want == "":
			without++
			if c.loaded != "" {
				loads++
			}
			continue
		case c.loaded == c.Want:
			right++
		case c.loaded == "":
			idle++
		default:
			another++
		}
		with++
	}
	n := float64(len(all))
	return []string{fmt.Sprintf("%s, %d", name, len(all)), formatShare(right, with), formatShare(another, with), formatShare(idle, with), formatShare(loads, without),
		fmt.Sprintf("%.1f", float64(steps)/n), measure.FormatNumber(float64(u.Prompt()) / n), measure.FormatNumber(float64(u.Output) / n)}
}

// wrongRows returns a table of the questions answered incorrectly.
func wrongRows(all []choice) [][]string {
	rows := [][]string{{"question", "skill", "loaded"}}
	for _, c := range all {
		if c.loaded != c.Want {
			rows = append(rows, []string{c.Ask, c.Want, c.loaded})
		}
	}
	return rows
}
