package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/terminal"
	"github.com/loadout-dev/loadout/llm"
)

// chatFlags are the flags of loadout chat.
type chatFlags struct {
	prompt              string
	model, baseURL, key string
	session, workspace  string
	preload             []string
	approve, profile    string
	files               []string

	confirm   func(ctx context.Context, question string) (bool, error) // of who is there, nil where nobody is
	confirmTo io.Writer                                                // where they read
	unwanted  []string                                                 // projects whose skills are left out
}

func (a *app) chatCommand() *cobra.Command {
	var o chatFlags
	cmd := &cobra.Command{
		Use:   "chat [-p PROMPT]",
		Short: "Talk to an agent that loads skills when they fit",
		Long: `Talk to an agent that loads skills when they fit, calls the tools that they bring and
your MCP servers have, and runs their scripts in the sandbox. Without a model it is a
demonstration that is no language model: name one with --model, and put its key into
ANTHROPIC_API_KEY, OPENAI_API_KEY or a secret.

With -p, or without a terminal, it answers once and prints that; calls that a person
would have to approve are then denied where no rule allows them. A conversation is kept,
and goes on with --session. In a conversation, /help says what else can be typed.`,
		Example: `  loadout chat
  loadout chat -p "what is in sales.csv?" --workspace . --model anthropic:claude-sonnet-4-5
  loadout chat --model openai:qwen3 --base-url http://127.0.0.1:11434/v1
  loadout chat -p "make a CSV file with the first ten primes" --json`,
		Args: want(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.chat(cmd.Context(), &o)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.prompt, "prompt", "p", "", "say `PROMPT`, print the answer, and end")
	f.StringVar(&o.model, "model", "", "the language `MODEL`: anthropic:NAME, openai:NAME or demo")
	f.StringVar(&o.baseURL, "base-url", "", "the server of the model, where that is not its vendor's `URL`")
	f.StringVar(&o.key, "key", "", "the `NAME` of the secret or variable with the key for --base-url")
	f.StringVar(&o.session, "session", "", "go on with the conversation `ID`")
	f.StringVar(&o.workspace, "workspace", "", "work on the files of `DIR`, and ask before changing one")
	f.StringVar(&o.approve, "approve", "", "`WHO` is asked where no rule allows a call: ask (you) or rules (nobody)")
	f.StringVar(&o.profile, "profile", "", "with the skills, servers and instructions of the profile `NAME`")
	f.StringArrayVar(&o.preload, "preload", nil, "load the skill `NAME` first, for the whole conversation (repeatable)")
	f.StringArrayVar(&o.files, "mcp-config", nil, "also the MCP servers in `FILE`, of any client's form (repeatable)")
	return cmd
}

func (a *app) chat(ctx context.Context, o *chatFlags) error {
	c, err := a.settings(nil)
	if err != nil {
		return err
	}
	once := o.prompt != ""
	if !once && !isTerminal(a.stdin) {
		text, err := io.ReadAll(io.LimitReader(a.stdin, maxPrompt+1))
		if err != nil {
			return err
		}
		if len(text) > maxPrompt {
			return fail(exitUsage, "put it into a file, and name that", "what is said has more than %d bytes", maxPrompt)
		}
		o.prompt, once = strings.TrimSpace(string(text)), true
	}
	if once && strings.TrimSpace(o.prompt) == "" {
		return fail(exitUsage, "as: loadout chat -p \"what is in sales.csv?\"", "nothing is said")
	}
	switch o.approve {
	case "", "rules", "ask":
	default:
		return fail(exitUsage, "as --approve rules or --approve ask", "--approve is %q", o.approve)
	}
	model, given, err := a.model(ctx, c, o)
	if err != nil {
		return err
	}
	if !given {
		a.note("no model is configured; this is a demonstration, which is no language model")
	}
	if o.session != "" {
		if err := a.isConversation(o.session); err != nil {
			return err
		}
	}
	input := newTyped(a.stdin)
	defer input.close()
	if once {
		return a.converse(ctx, c, o, model, o.approve == "ask", func(t *conversation) error {
			return a.answer(ctx, t, o.prompt)
		}, input)
	}
	if o.approve != "rules" {
		o.confirm, o.confirmTo = a.confirm, a.stderr
	}
	for {
		err := a.interactive(ctx, c, o, model, input)
		next := (*reopen)(nil)
		if !errors.As(err, &next) {
			return err
		}
		o.session, o.preload = next.id, nil
		if model, _, err = a.model(ctx, c, o); err != nil {
			return err
		}
	}
}

// interactive has a person talk until they leave: on a screen, or line by line where
// there is no more than a line.
func (a *app) interactive(ctx context.Context, c *config.Config, o *chatFlags, model llm.Model, input *typed) error {
	asks := o.approve != "rules"
	if a.fullScreen() {
		notices := terminal.NewNotices(a.stderr)
		own := *a
		own.stderr, own.stdout = notices, notices // the screen is the conversation's
		return own.converse(ctx, c, o, model, asks, func(t *conversation) error {
			return (&talk{t, &own, c, o}).person(ctx, a.stdin, a.stdout, notices)
		}, nil)
	}
	return a.converse(ctx, c, o, model, asks, func(t *conversation) error {
		return a.repeat(ctx, &talk{t, a, c, o}, input)
	}, input)
}

// maxPrompt bounds what is said at once, in bytes.
const maxPrompt = 1 << 20

// answer is one turn, whose answer is printed.
func (a *app) answer(ctx context.Context, t *conversation, text string) error {
	show := a.tell
	if a.json {
		show = a.tellJSON
	}
	err := a.say(ctx, t, text, show)
	if err != nil && a.json {
		return errFound // the event has said it
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		fmt.Fprintln(a.stdout)
		return modelFailed(err, t.id)
	}
	return nil
}

// say takes what a person says in a turn: /NAME and arguments are the skill of that name,
// where a person may invoke it, and text where there is none.
func (a *app) say(ctx context.Context, t *conversation, text string, show func(agent.Event)) error {
	if name, args, ok := terminal.ParseCommand(text); ok {
		if e, err := t.runtime.Catalog().Resolve(ctx, name); err == nil && e.UserInvocable {
			return t.Invoke(ctx, e.Key(), args, show)
		}
	}
	return t.Turn(ctx, text, show)
}

// modelFailed says what to do about a turn that came to nothing.
func modelFailed(err error, id string) error {
	status := (*llm.StatusError)(nil)
	switch {
	case errors.As(err, &status) && (status.Code == 401 || status.Code == 403):
		return fail(exitRefused, "check the key and the name of the model: loadout chat --help", "%w", err)
	case errors.As(err, &status) && status.Code == 404:
		return fail(exitNotFound, "check the name of the model and --base-url", "%w", err)
	}
	return fail(exitFound, "go on with: loadout chat --session "+id, "%w", err)
}

// tell tells a person what happens.
func (a *app) tell(e agent.Event) {
	switch e.Type {
	case agent.Text:
		fmt.Fprint(a.stdout, safe(e.Text))
	case agent.ToolCall:
		fmt.Fprintln(a.stderr, a.style(a.stderr, "2", "· "+plain(e.Call.Name)+" "+clip(plain(e.Call.Arguments), 100)))
	case agent.SkillLoaded:
		fmt.Fprintln(a.stderr, a.style(a.stderr, "2", "· loaded the skill "+plain(e.Skill)))
	case agent.SkillUnloaded:
		fmt.Fprintln(a.stderr, a.style(a.stderr, "2", "· the skill "+plain(e.Skill)+" is no longer loaded: "+plain(e.Reason)))
	case agent.ToolResult:
		if e.Result.Error {
			fmt.Fprintln(a.stderr, a.style(a.stderr, "31", "· "+plain(e.Call.Name)+": "+clip(plain(e.Result.Text), 200)))
		}
	case agent.Done:
		fmt.Fprintln(a.stdout)
	}
}

// tellJSON prints an event as a line.
func (a *app) tellJSON(e agent.Event) {
	enc := json.NewEncoder(a.stdout)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(e) // who has gone reads no more
}

// repeat takes one line after the other until there are no more.
func (a *app) repeat(ctx context.Context, t *talk, input *typed) error {
	fmt.Fprintf(a.stderr, "%s, conversation %s. /help says what there is, Ctrl-D ends it.\n", plain(t.Model().Name()), t.id)
	for {
		fmt.Fprint(a.stderr, a.style(a.stderr, "1", "> "))
		line, err := input.next(ctx)
		if line = strings.TrimSpace(line); line != "" {
			err := a.line(ctx, t, line)
			if end, ok := errors.AsType[*terminal.End](err); ok {
				return end.With
			}
			if err != nil {
				if ctx.Err() != nil {
					return err
				}
				a.report(err)
			}
		}
		if errors.Is(err, io.EOF) {
			fmt.Fprintln(a.stderr)
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// line says a line, or runs the command that it is.
func (a *app) line(ctx context.Context, t *talk, line string) error {
	name, args, ok := terminal.ParseCommand(line)
	if !ok {
		return a.answer(ctx, t.conversation, line)
	}
	for _, k := range t.commands(ctx) {
		if k.Name != name {
			continue
		}
		show := a.tell
		if a.json {
			show = a.tellJSON
		}
		text, err := k.Run(ctx, args, show)
		if text != "" {
			fmt.Fprint(a.stdout, terminal.Render(text, a.width(), a.style(a.stdout, "1", "x") == "x"))
		}
		if status := (*llm.StatusError)(nil); errors.As(err, &status) {
			return modelFailed(err, t.id)
		}
		return err
	}
	return fail(exitUsage, "/help names those that there are", "there is no command /%s", name)
}
