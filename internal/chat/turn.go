package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/setup"
	"github.com/loadout-dev/loadout/internal/terminal"
	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/llm"
)

// turnPrinter prints the events of a turn: the response to standard output and
// the rest to standard error, or everything as lines of JSON.
type turnPrinter struct {
	*dialog
	answered bool         // whether part of the response was printed
	denied   []deniedCall // calls denied by policy
	failed   *agent.Event // the event of a failed turn; nil if none
}

// deniedCall is a tool call that was denied. rule is the rule that would allow
// the call, or "" if no rule would.
type deniedCall struct{ rule string }

// printEvents calls do and prints the events that it emits. The returned error
// has an exit code and a hint.
func (t *dialog) printEvents(ctx context.Context, do func(emit func(agent.Event)) error) error {
	s := &turnPrinter{dialog: t}
	err := do(s.handleEvent)
	if err != nil && s.answered && !t.host.JSON {
		fmt.Fprintln(t.host.Stdout) // end the line of a partial response
	}
	if err != nil && s.failed != nil {
		err = s.finishError(ctx, err)
	}
	s.printDenied()
	return err
}

// finishError returns the error of a turn with its exit code and hint. With
// JSON output it prints the error as an event.
func (s *turnPrinter) finishError(ctx context.Context, err error) error {
	again := "try again, or switch the model with /model"
	if s.once || ctx.Err() != nil {
		again = "continue with: " + s.resumeCommand()
	}
	described := s.classifyTurnError(err, again)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	} else {
		err = described
	}
	if !s.host.JSON {
		return err
	}
	line := failedEvent{Event: *s.failed, Hint: described.Hint}
	if status, ok := errors.AsType[*llm.StatusError](described); ok {
		line.Status = status.Code
	}
	s.host.PrintJSONLine(line)
	if ctx.Err() != nil {
		return err
	}
	return &exit.Error{Code: described.Code} // the event is already printed
}

// failedEvent is the JSON event for a failed turn.
type failedEvent struct {
	agent.Event
	Status int    `json:"status,omitempty"` // HTTP status, if the model server refused the request
	Hint   string `json:"hint,omitempty"`   // next step
}

func (s *turnPrinter) handleEvent(e agent.Event) {
	switch {
	case e.Type == agent.Error:
		s.failed = &e // printed later, together with its hint
		return
	case e.Type == agent.Text && e.Text != "":
		s.answered = true
	case e.Type == agent.ToolResult && e.Result.Denied:
		s.denied = append(s.denied, deniedCall{s.allowRule(e)})
	}
	if s.host.JSON {
		s.host.PrintJSONLine(e)
		return
	}
	s.printEvent(e)
}

func (s *turnPrinter) printEvent(e agent.Event) {
	a := s.host
	happens := func(colour, text string) { fmt.Fprintln(a.Stderr, a.Colorize(a.Stderr, colour, "· "+text)) }
	switch e.Type {
	case agent.Text:
		fmt.Fprint(a.Stdout, terminal.Safe(e.Text))
	case agent.ToolCall:
		happens("2", terminal.Plain(e.Call.Name)+" "+terminal.Clip(terminal.Plain(e.Call.Arguments), 100))
	case agent.SkillLoaded:
		happens("2", "loaded skill "+terminal.Plain(e.Skill))
	case agent.SkillUnloaded:
		happens("2", "unloaded skill "+terminal.Plain(e.Skill)+": "+terminal.Plain(e.Reason))
	case agent.SkillUpdated:
		text := " changed after it was loaded"
		if e.Restored {
			text = " was changed back to the loaded version"
		}
		happens("2", "skill "+terminal.Plain(e.Skill)+text)
	case agent.Notice:
		happens("2", terminal.Plain(e.Text))
	case agent.ToolResult:
		if e.Result.Error {
			happens("31", terminal.Plain(e.Call.Name)+": "+terminal.Clip(terminal.Plain(e.Result.Text), 200))
		}
	case agent.Done:
		if s.answered {
			fmt.Fprintln(a.Stdout)
		} else if e.Reason != "wait" {
			happens("2", "the model returned no answer")
		}
	}
}

// printPreloaded lists the skills loaded before the first turn.
func (t *dialog) printPreloaded() {
	var names []string
	for _, e := range slices.Backward(t.session.Events(0)) {
		if e.Message != nil || e.Result != nil {
			break
		}
		if e.Loaded != nil {
			names = append(names, e.Loaded.Skill.Name)
		}
	}
	s := &turnPrinter{dialog: t}
	for _, name := range slices.Backward(names) {
		s.handleEvent(agent.Event{Type: agent.SkillLoaded, Skill: name})
	}
}

// printDenied prints how to allow the denied calls, unless the user already
// answered prompts for them.
func (s *turnPrinter) printDenied() {
	if s.asks || len(s.denied) == 0 {
		return
	}
	var rules []string
	for _, d := range s.denied {
		if d.rule != "" && !slices.Contains(rules, d.rule) {
			rules = append(rules, d.rule)
		}
	}
	hint := "see the rules: loadout config show" + s.host.SkillFlags()
	if len(rules) > 0 {
		hint = "to allow them, add to policy.rules: " + strings.Join(rules, ", ") + "; to be asked on a terminal, use --approve ask"
	}
	verb := "were"
	if len(s.denied) == 1 {
		verb = "was"
	}
	fmt.Fprintf(s.host.Stderr, "loadout: %s %s denied\n  %s\n", console.Pluralize(len(s.denied), "call"), verb, terminal.Plain(hint))
}

// allowRule returns the rule that would permit a call that needs approval, or
// "".
func (s *turnPrinter) allowRule(e agent.Event) string {
	if e.Call == nil || !strings.Contains(e.Result.Text, " needs approval: ") {
		return "" // denied by a rule
	}
	name := upstream.ToolName(setup.BuiltinName, e.Call.Name)
	if e.Call.Name == toolname.CallTool {
		var through struct {
			Name string `json:"name"`
		}
		if json.Unmarshal([]byte(e.Call.Arguments), &through) != nil {
			return ""
		}
		name = through.Name
	}
	for _, server := range s.set.Servers() {
		if server.Listing == nil {
			continue
		}
		for _, tool := range server.Listing.Tools {
			if name == upstream.ToolName(server.Name, tool.Name) {
				return "allow mcp." + server.Name + "." + tool.Name
			}
		}
	}
	return ""
}

// printCommandOutput prints the Markdown output of a slash command.
func (h *Host) printCommandOutput(text string) {
	switch {
	case text == "":
	case h.JSON:
		h.PrintJSONLine(agent.Event{Type: agent.Notice, Text: strings.TrimSpace(terminal.Render(text, 0, true))})
	default:
		fmt.Fprint(h.Stdout, terminal.Render(text, h.TerminalWidth(), h.Colorize(h.Stdout, "1", "x") == "x"))
	}
}
