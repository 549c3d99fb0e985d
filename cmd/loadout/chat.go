package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/terminal"
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
would have to approve are then denied where no rule allows them. What comes by a pipe is
added to PROMPT. A conversation is kept, and goes on with --session. In a conversation,
/help says what else can be typed.`,
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
	f.StringVar(&o.baseURL, "base-url", "", "the address `URL` of the model's server, where that is not its vendor's")
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
	switch o.approve {
	case "", "rules", "ask":
	default:
		return fail(exitUsage, "as --approve rules or --approve ask", "--approve is %q", o.approve)
	}
	once := o.prompt != "" || !isTerminal(a.stdin)
	if once {
		if err := a.readPrompt(ctx, o); err != nil {
			return err
		}
	}
	who, err := a.answering(ctx, c, o)
	if err != nil {
		return err
	}
	if o.session != "" {
		if err := a.isConversation(o.session); err != nil {
			return err
		}
	}
	input := newTyped(a.stdin)
	defer input.close()
	if once {
		asks := o.approve == "ask"
		return a.converse(ctx, c, o, who.model, asks, func(t *conversation) error {
			person := &talk{conversation: t, app: a, config: c, flags: o, answering: who, asks: asks, once: true}
			person.tellPreloaded()
			return person.answer(ctx, o.prompt)
		}, input)
	}
	if o.approve != "rules" {
		o.confirm, o.confirmTo = a.confirm, a.stderr
	}
	for {
		err := a.interactive(ctx, c, o, who, input)
		next := (*reopen)(nil)
		if !errors.As(err, &next) {
			return err
		}
		o.session, o.preload, o.workspace = next.id, nil, "" // it has its own folder
	}
}

// answering is the model that the flags or the configuration name. Without any it is
// the demonstration, which is said.
func (a *app) answering(ctx context.Context, c *config.Config, o *chatFlags) (*answering, error) {
	k := chosenModel(c, o)
	for _, f := range []struct{ name, value string }{{"base-url", o.baseURL}, {"key", o.key}} {
		if f.value != "" && k.isDemo() {
			return nil, fail(exitUsage, "as: loadout chat --model openai:NAME --base-url URL", "--%s needs --model openai:NAME", f.name)
		}
	}
	m, err := a.model(ctx, c, k)
	if err != nil {
		return nil, err
	}
	if k.name == "" {
		a.note("no model is configured; this is a demonstration, which is no language model")
	}
	return &answering{k, k, m}, nil
}

// interactive has a person talk until they leave: on a screen, or line by line where
// there is no more than a line.
func (a *app) interactive(ctx context.Context, c *config.Config, o *chatFlags, who *answering, input *typed) error {
	asks := o.approve != "rules"
	if a.fullScreen() {
		notices := terminal.NewNotices(a.stderr)
		own := *a
		own.stderr, own.stdout = notices, notices // the screen is the conversation's
		return own.converse(ctx, c, o, who.model, asks, func(t *conversation) error {
			return (&talk{conversation: t, app: &own, config: c, flags: o, answering: who, asks: asks}).person(ctx, a.stdin, a.stdout, notices)
		}, nil)
	}
	return a.converse(ctx, c, o, who.model, asks, func(t *conversation) error {
		return a.repeat(ctx, &talk{conversation: t, app: a, config: c, flags: o, answering: who, asks: asks}, input)
	}, input)
}

// answer is one turn, whose answer is printed.
func (t *talk) answer(ctx context.Context, text string) error {
	return t.shown(ctx, func(tell func(agent.Event)) error { return t.say(ctx, text, tell) })
}

// say takes what a person says in a turn: /NAME and arguments are the skill of that name,
// where a person may invoke it, and text where there is none.
func (t *talk) say(ctx context.Context, text string, tell func(agent.Event)) error {
	if name, args, ok := terminal.ParseCommand(text); ok {
		if e, err := t.runtime.Catalog().Resolve(ctx, name); err == nil && e.UserInvocable {
			return t.Invoke(ctx, e.Key(), args, tell)
		}
	}
	return t.Turn(ctx, text, tell)
}

// repeat takes one line after the other until there are no more.
func (a *app) repeat(ctx context.Context, t *talk, input *typed) error {
	fmt.Fprintf(a.stderr, "%s, conversation %s. /help says what there is, Ctrl-D ends it.\n", plain(t.Model().Name()), t.id)
	t.tellPreloaded()
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
		return t.answer(ctx, line)
	}
	for _, k := range t.commands(ctx) {
		if k.Name == name {
			return t.shown(ctx, func(tell func(agent.Event)) error {
				text, err := k.Run(ctx, args, tell)
				a.printCommand(text)
				return err
			})
		}
	}
	return fail(exitUsage, "/help names those that there are", "there is no command /%s", name)
}
