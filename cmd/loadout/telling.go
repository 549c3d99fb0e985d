package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/internal/terminal"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/upstream"
)

// telling prints what happens in a turn: the answer to standard output and the rest to
// standard error, or all of it as lines of JSON.
type telling struct {
	*talk
	said   bool         // something of an answer
	denied []deniedCall // that policy did not let be made
	failed *agent.Event // why the turn ended before its time
}

// deniedCall is a call that was not made, and the rule that would have allowed it, ""
// where none would.
type deniedCall struct{ rule string }

// shown does something as a turn whose events are printed. The error is that of the
// program: its exit code, and what to do next.
func (t *talk) shown(ctx context.Context, do func(tell func(agent.Event)) error) error {
	s := &telling{talk: t}
	err := do(s.event)
	if err != nil && s.said && !t.app.json {
		fmt.Fprintln(t.app.stdout) // behind what came of the answer
	}
	if err != nil && s.failed != nil {
		err = s.end(ctx, err)
	}
	s.tellDenied()
	return err
}

// end is the error of a turn, which was told as an event where events are printed.
func (s *telling) end(ctx context.Context, err error) error {
	again := "say it again, or choose another model with /model"
	if s.once || ctx.Err() != nil {
		again = "go on with: " + s.command()
	}
	described := s.describe(err, again)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	} else {
		err = described
	}
	if !s.app.json {
		return err
	}
	line := failedEvent{Event: *s.failed, Hint: described.hint}
	if status, ok := errors.AsType[*llm.StatusError](described); ok {
		line.Status = status.Code
	}
	s.app.printLine(line)
	if ctx.Err() != nil {
		return err
	}
	return &exitError{code: described.code} // the event has said it
}

// failedEvent is an error of a turn as a line of JSON.
type failedEvent struct {
	agent.Event
	Status int    `json:"status,omitempty"` // of HTTP, where the vendor refused
	Hint   string `json:"hint,omitempty"`   // what to do next
}

func (s *telling) event(e agent.Event) {
	switch {
	case e.Type == agent.Error:
		s.failed = &e // told with its hint
		return
	case e.Type == agent.Text && e.Text != "":
		s.said = true
	case e.Type == agent.ToolResult && e.Result.Denied:
		s.denied = append(s.denied, deniedCall{s.ruleFor(e)})
	}
	if s.app.json {
		s.app.printLine(e)
		return
	}
	s.text(e)
}

// text tells a person what happens.
func (s *telling) text(e agent.Event) {
	a := s.app
	happens := func(colour, text string) { fmt.Fprintln(a.stderr, a.style(a.stderr, colour, "· "+text)) }
	switch e.Type {
	case agent.Text:
		fmt.Fprint(a.stdout, safe(e.Text))
	case agent.ToolCall:
		happens("2", plain(e.Call.Name)+" "+clip(plain(e.Call.Arguments), 100))
	case agent.SkillLoaded:
		happens("2", "loaded the skill "+plain(e.Skill))
	case agent.SkillUnloaded:
		happens("2", "the skill "+plain(e.Skill)+" is no longer loaded: "+plain(e.Reason))
	case agent.Notice:
		happens("2", plain(e.Text))
	case agent.ToolResult:
		if e.Result.Error {
			happens("31", plain(e.Call.Name)+": "+clip(plain(e.Result.Text), 200))
		}
	case agent.Done:
		if s.said {
			fmt.Fprintln(a.stdout)
		} else if e.Reason != "wait" {
			happens("2", "the model ended without saying anything")
		}
	}
}

// tellPreloaded tells of the skills that were loaded before the first turn.
func (t *talk) tellPreloaded() {
	var names []string
	for _, e := range slices.Backward(t.session.Events(0)) {
		if e.Message != nil || e.Result != nil {
			break
		}
		if e.Loaded != nil {
			names = append(names, e.Loaded.Skill.Name)
		}
	}
	s := &telling{talk: t}
	for _, name := range slices.Backward(names) {
		s.event(agent.Event{Type: agent.SkillLoaded, Skill: name})
	}
}

// tellDenied says how the calls that were denied could be made, where no person was
// asked about them.
func (s *telling) tellDenied() {
	if s.asks || len(s.denied) == 0 {
		return
	}
	var rules []string
	for _, d := range s.denied {
		if d.rule != "" && !slices.Contains(rules, d.rule) {
			rules = append(rules, d.rule)
		}
	}
	hint := "see which rules deny them: loadout config show" + s.app.flags()
	if len(rules) > 0 {
		hint = "to allow them, put into policy.rules: " + strings.Join(rules, ", ") + "; or be asked, on a terminal: --approve ask"
	}
	verb := "were"
	if len(s.denied) == 1 {
		verb = "was"
	}
	fmt.Fprintf(s.app.stderr, "loadout: %s %s denied\n  %s\n", counted(len(s.denied), "call"), verb, plain(hint))
}

// ruleFor is the rule that would allow a call for which a person is needed.
func (s *telling) ruleFor(e agent.Event) string {
	if e.Call == nil || !strings.HasPrefix(e.Result.Text, "a person has to approve") {
		return "" // a rule denies it
	}
	name := upstream.ToolName(builtinName, e.Call.Name)
	if e.Call.Name == "call_tool" {
		var through struct {
			Name string `json:"name"`
		}
		if json.Unmarshal([]byte(e.Call.Arguments), &through) != nil {
			return ""
		}
		name = through.Name
	}
	for _, server := range s.set.Servers() {
		if server.Known == nil {
			continue
		}
		for _, tool := range server.Known.Tools {
			if name == upstream.ToolName(server.Name, tool.Name) {
				return "allow mcp." + server.Name + "." + tool.Name
			}
		}
	}
	return ""
}

// printLine prints a line of JSON.
func (a *app) printLine(v any) {
	enc := json.NewEncoder(a.stdout)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // who has gone reads no more
}

// printCommand prints what a command has to say, which is Markdown.
func (a *app) printCommand(text string) {
	switch {
	case text == "":
	case a.json:
		a.printLine(agent.Event{Type: agent.Notice, Text: strings.TrimSpace(terminal.Render(text, 0, true))})
	default:
		fmt.Fprint(a.stdout, terminal.Render(text, a.width(), a.style(a.stdout, "1", "x") == "x"))
	}
}
