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
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/setup"
	"github.com/loadout-dev/loadout/internal/terminal"
)

// chatFlags are the flags of loadout chat.
type chatFlags struct {
	prompt string
	setup.ModelFlags
	session, workspace string
	preload            []string
	approve, profile   string
	files              []string

	confirm          func(ctx context.Context, question string) (bool, error) // asks the user; nil if nobody can answer
	confirmTo        io.Writer                                                // output of confirm
	excludedProjects []string                                                 // projects whose skills are not used
}

func (a *app) chatCommand() *cobra.Command {
	var o chatFlags
	cmd := &cobra.Command{
		Use:   "chat [-p PROMPT]",
		Short: "Chat with an agent that uses your skills",
		Long: `Chat with an agent that loads skills when they fit, calls their tools and your MCP
servers, and runs scripts in the sandbox. Without a model, a built-in demo answers.
Choose a model with --model, and put its key into ANTHROPIC_API_KEY, OPENAI_API_KEY
or a secret.

With -p, or without a terminal, chat prints one answer and exits. Calls that need an
approval are then denied unless a rule allows them. Piped input is appended to PROMPT.
Conversations are saved; continue one with --session. Type /help in a conversation
for its commands.`,
		Example: `  loadout chat
  loadout chat -p "what is in sales.csv?" --workspace . --model anthropic:claude-sonnet-4-5
  loadout chat --model openai:qwen3 --base-url http://127.0.0.1:11434/v1
  loadout chat -p "make a CSV file with the first ten primes" --json`,
		Args: argCount(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.runChat(cmd.Context(), &o)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.prompt, "prompt", "p", "", "send `PROMPT`, print the answer, and exit")
	f.StringVar(&o.Model, "model", "", "language `MODEL`: anthropic:NAME, openai:NAME or demo")
	f.StringVar(&o.BaseURL, "base-url", "", "`URL` of the model server; default: the vendor's own")
	f.StringVar(&o.Key, "key", "", "`NAME` of the secret or variable with the key for --base-url")
	f.StringVar(&o.session, "session", "", "continue the conversation `ID`")
	f.StringVar(&o.workspace, "workspace", "", "work on the files in `DIR`; changes need approval")
	f.StringVar(&o.approve, "approve", "", "`WHO` approves calls that no rule decides: ask (you) or rules (nobody)")
	f.StringVar(&o.profile, "profile", "", "use the skills, servers and instructions of the profile `NAME`")
	f.StringArrayVar(&o.preload, "preload", nil, "load the skill `NAME` for the whole conversation (repeatable)")
	f.StringArrayVar(&o.files, "mcp-config", nil, "add the MCP servers in `FILE`, in the format of any client (repeatable)")
	return cmd
}

func (a *app) runChat(ctx context.Context, o *chatFlags) error {
	c, err := a.LoadConfig(nil)
	if err != nil {
		return err
	}
	switch o.approve {
	case "", "rules", "ask":
	default:
		return exit.Errorf(exit.Usage, "use --approve rules or --approve ask", "unknown value %q of --approve", o.approve)
	}
	once := o.prompt != "" || !console.IsTerminal(a.Stdin)
	if once {
		if err := a.readPrompt(ctx, o); err != nil {
			return err
		}
	}
	who, err := a.selectModel(ctx, c, o)
	if err != nil {
		return err
	}
	if o.session != "" {
		if err := a.checkConversation(o.session); err != nil {
			return err
		}
	}
	input := terminal.NewLineReader(a.Stdin)
	defer input.Close()
	if once {
		t, err := a.openChat(ctx, conversationOptions{config: c, flags: o, asks: o.approve == "ask", input: input}, who)
		if err != nil {
			return err
		}
		defer t.close()
		t.once = true
		t.printPreloaded()
		return t.printTurn(ctx, o.prompt)
	}
	if o.approve != "rules" {
		o.confirm, o.confirmTo = a.Confirm, a.Stderr
	}
	for {
		err := a.runInteractive(ctx, c, o, who, input)
		next := (*reopenError)(nil)
		if !errors.As(err, &next) {
			return err
		}
		o.session, o.preload, o.workspace = next.id, nil, "" // it has its own working directory
	}
}

// selectModel returns the model that the flags or the configuration name.
// Without either it returns the built-in demo, and prints a note.
func (a *app) selectModel(ctx context.Context, c *config.Config, o *chatFlags) (*setup.ActiveModel, error) {
	k := setup.ChooseModel(c, o.ModelFlags)
	for _, f := range []struct{ name, value string }{{"base-url", o.BaseURL}, {"key", o.Key}} {
		if f.value != "" && k.IsDemo() {
			return nil, exit.Errorf(exit.Usage, "loadout chat --model openai:NAME --base-url URL", "--%s needs --model openai:NAME", f.name)
		}
	}
	m, err := a.NewModel(ctx, c, k)
	if err != nil {
		return nil, err
	}
	if k.Name == "" {
		a.Note("no model configured; the built-in demo answers")
	}
	return &setup.ActiveModel{k, k, m}, nil
}

// runInteractive runs a conversation until the user leaves: on a full screen,
// or line by line on a simple terminal.
func (a *app) runInteractive(ctx context.Context, c *config.Config, o *chatFlags, who *setup.ActiveModel, input *terminal.LineReader) error {
	options := conversationOptions{config: c, flags: o, asks: o.approve != "rules", input: input}
	if a.canUseScreen() {
		notices := terminal.NewNotices(a.Stderr)
		own := *a
		own.Stderr, own.Stdout = notices, notices // the conversation owns the screen
		options.input = nil
		t, err := own.openChat(ctx, options, who)
		if err != nil {
			return err
		}
		defer t.close()
		return t.runScreen(ctx, a.Stdin, a.Stdout, notices)
	}
	t, err := a.openChat(ctx, options, who)
	if err != nil {
		return err
	}
	defer t.close()
	return a.readLoop(ctx, t, input)
}

// openChat opens a conversation with the chosen model. The caller closes it.
func (a *app) openChat(ctx context.Context, o conversationOptions, who *setup.ActiveModel) (*chatSession, error) {
	o.model = who.Model
	t, err := a.openConversation(ctx, o)
	if err != nil {
		return nil, err
	}
	return &chatSession{conversation: t, app: a, config: o.config, flags: o.flags, answering: who, asks: o.asks}, nil
}

// printTurn runs one turn and prints the answer.
func (t *chatSession) printTurn(ctx context.Context, text string) error {
	return t.printEvents(ctx, func(tell func(agent.Event)) error { return t.sendMessage(ctx, text, tell) })
}

// sendMessage sends the text of the user. /NAME ARGS invokes the skill NAME if
// the user may invoke it; anything else is a message.
func (t *chatSession) sendMessage(ctx context.Context, text string, tell func(agent.Event)) error {
	if name, args, ok := terminal.ParseCommand(text); ok {
		if e, err := t.runtime.Catalog().Resolve(ctx, name); err == nil && e.UserInvocable {
			return t.InvokeSkill(ctx, e.Key(), args, tell)
		}
	}
	return t.RunTurn(ctx, text, tell)
}

// readLoop handles one line after the other until the input ends.
func (a *app) readLoop(ctx context.Context, t *chatSession, input *terminal.LineReader) error {
	fmt.Fprintf(a.Stderr, "%s, conversation %s. /help lists the commands, Ctrl-D exits.\n", plain(t.Model().Name()), t.id)
	t.printPreloaded()
	for {
		fmt.Fprint(a.Stderr, a.Colorize(a.Stderr, "1", "> "))
		line, err := input.ReadLine(ctx)
		if line = strings.TrimSpace(line); line != "" {
			err := a.runLine(ctx, t, line)
			if end, ok := errors.AsType[*terminal.End](err); ok {
				return end.With
			}
			if err != nil {
				if ctx.Err() != nil {
					return err
				}
				a.reportError(err)
			}
		}
		if errors.Is(err, io.EOF) {
			fmt.Fprintln(a.Stderr)
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// runLine runs a slash command, or sends the line as a message.
func (a *app) runLine(ctx context.Context, t *chatSession, line string) error {
	name, args, ok := terminal.ParseCommand(line)
	if !ok {
		return t.printTurn(ctx, line)
	}
	for _, k := range t.slashCommands(ctx) {
		if k.Name == name {
			return t.printEvents(ctx, func(tell func(agent.Event)) error {
				text, err := k.Run(ctx, args, tell)
				a.printCommandOutput(text)
				return err
			})
		}
	}
	return exit.Errorf(exit.Usage, "list the commands: /help", "unknown command /%s", name)
}
