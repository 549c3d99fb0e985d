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
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/llm/anthropic"
	"github.com/loadout-dev/loadout/llm/demo"
	"github.com/loadout-dev/loadout/llm/openai"
	"github.com/loadout-dev/loadout/llm/replay"
	"github.com/loadout-dev/loadout/mcpserver"
)

// modelFlags say which model is asked.
type modelFlags struct{ model, record, baseURL, key string }

// open returns the model of the flags. The key of a vendor goes to the vendor alone:
// another server gets the one that is named for it, or none.
func (o *modelFlags) open() (llm.Model, error) {
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
		err = fmt.Errorf("%q names no model; give anthropic:NAME, openai:NAME, demo or replay:DIR", o.model)
	}
	if err != nil {
		return nil, err
	}
	if m = llm.Retry(m, nil); o.record == "" {
		return m, nil
	}
	return replay.Record(m, o.record, &replay.Options{Secrets: []string{key}})
}

// choice is what a model did with a question.
type choice struct {
	question
	loaded string // first, "" for nothing
	usage  llm.Usage
	steps  int // answers of the model
}

func byModel(ctx context.Context, o *modelFlags, questions []question, dirs []string, verbose bool) error {
	m, err := o.open()
	if err != nil {
		return err
	}
	rt, err := open(ctx, dirs)
	if err != nil {
		return err
	}
	defer rt.Close()
	all, err := askModel(ctx, m, rt, questions)
	if err != nil {
		return err
	}
	fmt.Printf("\n%s, %d skills, %d questions; the answer is the skill that it loads first:\n\n", m.Name(), len(rt.Catalog().Snapshot().Offered()), len(all))
	measure.Markdown(os.Stdout, choices(all))
	if verbose {
		fmt.Println()
		measure.Markdown(os.Stdout, mistaken(all))
	}
	return nil
}

// askModel asks each question once, in a conversation of its own.
func askModel(ctx context.Context, m llm.Model, rt *loadout.Runtime, questions []question) ([]choice, error) {
	server := mcpserver.New(rt, nil)
	defer server.Close()
	client, err := agent.Connect(ctx, server, nil)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	var out []choice
	for _, q := range questions {
		c, err := ask(ctx, m, rt, client, q)
		if err != nil {
			return nil, fmt.Errorf("asking %q: %w", q.Ask, err)
		}
		out = append(out, c)
	}
	return out, nil
}

const maxSteps = 4 // answers of the model; a search and a load take two

var errLoaded = errors.New("a skill is loaded")

func ask(ctx context.Context, m llm.Model, rt *loadout.Runtime, client *agent.Connection, q question) (choice, error) {
	c := choice{question: q}
	tools, err := client.Tools(ctx, "load_skill")
	if err != nil {
		return c, err
	}
	s, err := rt.NewSession(ctx, nil)
	if err != nil {
		return c, err
	}
	defer s.Close()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	a := agent.New(m, s, &agent.Options{Instructions: instructions(rt), Tools: tools, MaxSteps: maxSteps})
	err = a.Turn(ctx, q.Ask, func(e agent.Event) {
		switch {
		case e.Type == agent.Usage:
			c.steps++
			c.usage = c.usage.Add(llm.Usage{Input: e.Usage.Input, CacheRead: e.Usage.CacheRead, CacheWrite: e.Usage.CacheWrite, Output: e.Usage.Output})
		case e.Type == agent.ToolResult && e.Call.Name == "load_skill":
			stop(errLoaded) // all that is asked is known
		}
	})
	c.loaded = firstLoad(s)
	if err != nil && !errors.Is(err, agent.ErrSteps) && !errors.Is(context.Cause(ctx), errLoaded) {
		return c, err
	}
	return c, nil
}

// firstLoad is the skill that the first load of a conversation names, in the order of
// the model, "" where there was none.
func firstLoad(s *loadout.Session) string {
	for _, e := range s.Events(0) {
		if e.Message == nil {
			continue
		}
		for _, call := range e.Message.Calls {
			var args struct{ Name string }
			if call.Name == "load_skill" && json.Unmarshal([]byte(call.Arguments), &args) == nil {
				name, _, _ := strings.Cut(args.Name, "@")
				return cmp.Or(path.Base(name), "?")
			}
		}
	}
	return ""
}

// instructions are what a model is told first, as loadout chat does.
func instructions(rt *loadout.Runtime) string {
	return "You help the person you talk to. Skills are instructions for kinds of tasks: before a task that one of them is for, load it with load_skill and go by it. Load none where none is for the task.\n\nSkills:\n" +
		rt.CatalogText(loadout.TextOptions{Tokens: 4000})
}

// choices is the table of what a model did, all together and by language.
func choices(all []choice) [][]string {
	rows := [][]string{{"questions", "right skill", "another", "none", "loads where no skill is for it", "answers a question", "prompt tokens a question", "output"}}
	rows = append(rows, tally("all", all))
	byLanguage := map[string][]choice{}
	for _, c := range all {
		byLanguage[c.Language] = append(byLanguage[c.Language], c)
	}
	for _, l := range slices.Sorted(maps.Keys(byLanguage)) {
		rows = append(rows, tally(l, byLanguage[l]))
	}
	return rows
}

func tally(name string, all []choice) []string {
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
	return []string{fmt.Sprintf("%s, %d", name, len(all)), share(right, with), share(another, with), share(idle, with), share(loads, without),
		fmt.Sprintf("%.1f", float64(steps)/n), measure.Number(float64(u.Prompt()) / n), measure.Number(float64(u.Output) / n)}
}

// mistaken are the questions with another skill than is for them.
func mistaken(all []choice) [][]string {
	rows := [][]string{{"question", "skill", "loaded"}}
	for _, c := range all {
		if c.loaded != c.Want {
			rows = append(rows, []string{c.Ask, c.Want, c.loaded})
		}
	}
	return rows
}
