package chat

import (
	"context"
	"errors"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/setup"
	"github.com/loadout-dev/loadout/internal/terminal"
	"github.com/loadout-dev/loadout/llm"
)

// classifyTurnError returns a turn's error with its exit code and hint. again
// is the hint for a temporary error.
func (t *dialog) classifyTurnError(err error, again string) *exit.Error {
	status, refused := errors.AsType[*llm.StatusError](err)
	switch {
	case errors.Is(err, context.Canceled):
		return &exit.Error{Code: exit.Failure, Err: err, Hint: again}
	case refused && (status.Code == 401 || status.Code == 403):
		return &exit.Error{Code: exit.Refused, Err: err, Hint: t.activeModel().Now.KeyHint()}
	case refused && status.Code == 404:
		return &exit.Error{Code: exit.NotFound, Err: err, Hint: "check the name of the model" + t.activeModel().Now.ServerHint(" and the address given with --base-url")}
	case refused && !status.Temporary():
		return &exit.Error{Code: exit.Failure, Err: err, Hint: "a retry would be refused too: check the message" + t.activeModel().Now.ServerHint(", and the address given with --base-url")}
	case hasType[*url.Error](err) && !hasType[*llm.CutError](err):
		return &exit.Error{Code: exit.Failure, Err: err, Hint: "check " + t.activeModel().Now.ServerHint("that the server runs, and the address given with --base-url", "that this machine is online")}
	}
	return &exit.Error{Code: exit.Failure, Err: err, Hint: again}
}

// describeError formats the error of a turn or command for the screen.
func (t *dialog) describeError(err error) string {
	if e, ok := errors.AsType[*exit.Error](err); ok && e.Err != nil {
		return terminal.Plain(e.Error()) + "\n" + terminal.OneLine(e.Hint)
	}
	const another = "switch the model with /model"
	_, refused := errors.AsType[*llm.StatusError](err)
	switch {
	case errors.Is(err, agent.ErrTooManySteps), errors.Is(err, agent.ErrTooManyTokens):
		return terminal.Plain(err.Error()) + "\nAsk the agent to continue."
	case !refused && !hasType[*llm.CutError](err) && !hasType[*url.Error](err):
		return terminal.Plain(err.Error())
	}
	e := t.classifyTurnError(err, "Try again, or "+another+".")
	if !strings.Contains(e.Hint, another) {
		e.Hint = strings.ToUpper(e.Hint[:1]) + e.Hint[1:] + "; or " + another + "."
	}
	return terminal.Plain(err.Error()) + "\n" + terminal.OneLine(e.Hint)
}

// resumeCommand returns the shell command that continues the conversation with
// the same model, server, working directory, MCP servers and skills, from any
// directory. It omits values that cannot be printed.
func (t *dialog) resumeCommand() string {
	o, now := t.flags, t.activeModel().Now
	words := "loadout chat --session " + t.id
	add := func(flag, value string) {
		if value != "" && terminal.Printable(value) {
			words += " " + flag + " " + console.ShellQuote(value)
		}
	}
	usual := setup.ChooseModel(t.config, setup.ModelFlags{Model: now.Requested})
	add("--model", now.Requested)
	if now.Server != usual.Server {
		add("--base-url", now.Server)
	}
	if now.Key != usual.Key {
		add("--key", now.Key)
	}
	add("--workspace", t.named)
	add("--approve", o.Approve)
	add("--profile", o.Profile)
	for _, file := range o.Files {
		add("--mcp-config", absolutePath(file))
	}
	for flag := range slices.Chunk(t.host.SkillArgs(), 2) {
		add(flag[0], absolutePath(flag[1]))
	}
	return words
}

// absolutePath returns the absolute form of a path, or "" if there is none.
func absolutePath(path string) string {
	out, err := filepath.Abs(path)
	if err != nil {
		return ""
	}
	return out
}

// hasType reports whether err is or wraps an error of type E.
func hasType[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
