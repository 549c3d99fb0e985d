//go:build linux

package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/bench/internal/measure"
	"github.com/loadout-dev/loadout/internal/evaluation"
	"github.com/loadout-dev/loadout/internal/llm/demo"
	"github.com/loadout-dev/loadout/internal/llm/replay"
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
	evaluation.Choice
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
		c, err := evaluation.Ask(ctx, m, rt, q.Ask)
		if err != nil {
			return nil, fmt.Errorf("ask %q: %w", q.Ask, err)
		}
		out = append(out, choice{q, c})
	}
	return out, nil
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
		steps += c.Steps
		u = u.Add(c.Usage)
		switch {
		case c.Want == "":
			without++
			if c.Loaded != "" {
				loads++
			}
			continue
		case c.Loaded == c.Want:
			right++
		case c.Loaded == "":
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
		if c.Loaded != c.Want {
			rows = append(rows, []string{c.Ask, c.Want, c.Loaded})
		}
	}
	return rows
}
