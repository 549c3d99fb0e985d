package evaluation

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/evalfile"
	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/llm"
)

// Model says for which prompts a model loads a skill.
type Model struct {
	Name   string  `json:"name"`
	Passed bool    `json:"passed"`
	Cases  []Asked `json:"cases"`
	Share          // of the cases without an error
	// Invalid counts the cases with an error, which neither passed nor failed.
	Invalid int   `json:"invalid"`
	Steps   int   `json:"steps"` // number of responses
	Tokens  int64 `json:"tokens"`
	Cached  int64 `json:"cached"` // of Tokens
}

// Asked is a case with the model's answer.
type Asked struct {
	evalfile.Case
	Passed bool   `json:"passed"`
	Loaded string `json:"loaded"` // first skill loaded; "" if none
	Error  string `json:"error,omitempty"`
}

// askAll asks a model all prompts, each in a conversation of its own.
func askAll(ctx context.Context, m llm.Model, rt *loadout.Runtime, e *catalog.Entry, cases []evalfile.Case) (*Model, error) {
	out := &Model{Name: m.Name(), Cases: make([]Asked, len(cases))}
	var passed tally
	for i, one := range cases {
		c, err := Ask(ctx, m, rt, one.Prompt)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		out.Steps += c.Steps
		out.Tokens += int64(c.Usage.Prompt() + c.Usage.Output)
		out.Cached += int64(c.Usage.CacheRead)
		a := Asked{Case: one, Loaded: c.Loaded}
		if err != nil {
			a.Error = printable.OneLine(err.Error())
			out.Invalid++
		} else {
			isOwn := c.Loaded == path.Base(e.Name)
			a.Passed = isOwn == one.Trigger || one.Trigger && slices.Contains(one.Accept, c.Loaded)
			passed.add(a.Passed)
		}
		out.Cases[i] = a
	}
	out.Passed, out.Share = passed.all() && out.Invalid == 0, passed.share()
	return out, nil
}

// Failure describes why a case did not pass, or returns "".
func (a *Asked) Failure() string {
	switch {
	case a.Passed:
		return ""
	case a.Error != "":
		return "not measured: " + a.Error
	case a.Loaded == "":
		return "the model loads no skill"
	}
	return "the model loads " + a.Loaded
}

// Choice is a model's answer to a prompt.
type Choice struct {
	Loaded string    // name of the first skill loaded; "" if none
	Usage  llm.Usage // of all responses
	Steps  int       // number of responses
}

const maxSteps = 4 // maximum number of responses; a search and a load take two

var errLoaded = errors.New("stopped after the skill was loaded")

// Ask sends a prompt to a model in a conversation of its own, which lists the skills of
// rt as `loadout chat` does, and returns which skill the model loads. It stops there. The
// model can search and load skills, and nothing else.
func Ask(ctx context.Context, m llm.Model, rt *loadout.Runtime, prompt string) (Choice, error) {
	var c Choice
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
	tools = slices.DeleteFunc(tools, func(t agent.Tool) bool { return t.Name != toolname.LoadSkill && t.Name != toolname.SearchSkills })
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	a := agent.New(m, s, &agent.Options{Instructions: instructions(rt), Tools: tools, MaxSteps: maxSteps})
	err = a.RunTurn(ctx, prompt, func(e agent.Event) {
		switch {
		case e.Type == agent.Usage:
			c.Steps++
			c.Usage = c.Usage.Add(llm.Usage{Input: e.Usage.Input, CacheRead: e.Usage.CacheRead, CacheWrite: e.Usage.CacheWrite, Output: e.Usage.Output})
		case e.Type == agent.ToolResult && e.Call.Name == toolname.LoadSkill:
			stop(errLoaded) // the answer is known
		}
	})
	c.Loaded = firstLoad(s)
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

// instructions returns the system prompt with the list of skills, as `loadout chat`
// sends it.
func instructions(rt *loadout.Runtime) string {
	return "You help the person you talk to. Skills are instructions for kinds of tasks: before a task that one of them is for, load it with load_skill and go by it. Load none where none is for the task.\n\nSkills:\n" +
		rt.CatalogText(4000)
}
