package chat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/setup"
	"github.com/loadout-dev/loadout/internal/terminal"
)

// Flags holds the flags of the chat command.
type Flags struct {
	Prompt string
	setup.ModelFlags
	Session, Workspace string
	Preload            []string
	Approve, Profile   string
	Files              []string

	confirm          func(ctx context.Context, question string) (bool, error) // asks the user; nil if no user can answer
	confirmTo        io.Writer                                                // where confirm prints
	excludedProjects []string                                                 // projects whose skills are excluded
	left             string                                                   // conversation that the user left for this one, or ""
	clear            bool                                                     // whether the screen is cleared first
	unsent           terminal.Unsent                                          // typed in the previous conversation but not sent
}

// Run chats until the user quits. With a prompt or without a terminal, it
// prints one answer and returns. Its error has an exit code and a hint.
func (h *Host) Run(ctx context.Context, o *Flags) error {
	c, err := h.LoadConfig(nil)
	if err != nil {
		return err
	}
	switch o.Approve {
	case "", "rules", "ask":
	default:
		return exit.Errorf(exit.Usage, "use --approve rules or --approve ask", "unknown value %q of --approve", o.Approve)
	}
	once := o.Prompt != "" || !console.IsTerminal(h.Stdin)
	if once {
		if err := h.readPrompt(ctx, o); err != nil {
			return err
		}
	}
	who, err := h.selectModel(ctx, c, o)
	if err != nil {
		return err
	}
	if o.Session != "" {
		if err := h.checkConversation(o.Session); err != nil {
			return err
		}
	}
	input := terminal.NewLineReader(h.Stdin)
	defer input.Close()
	if once {
		t, err := h.openChat(ctx, conversationOptions{config: c, flags: o, asks: o.Approve == "ask" && h.canAsk(), input: input}, who)
		if err != nil {
			return err
		}
		defer t.close()
		t.once = true
		t.printPreloaded()
		return t.printTurn(ctx, o.Prompt)
	}
	h.Backends = &setup.Backends{}
	defer h.Backends.Close()
	asks := o.Approve != "rules" && h.canAsk()
	if asks {
		o.confirm, o.confirmTo = h.Confirm, h.Stderr
	}
	preload := o.Preload
	for {
		err := h.runInteractive(ctx, c, o, who, input, asks)
		next := (*reopenError)(nil)
		if !errors.As(err, &next) {
			return err
		}
		o.Session, o.Preload, o.Workspace = next.id, nil, next.folder
		o.left, o.clear = next.left, next.clear
		if next.id == "" {
			o.Preload = preload
		}
	}
}

// canAsk reports whether answers to prompts come from the user. If an agent
// runs the chat, canAsk prints a note and returns false. The chat then shows no
// prompts, as with --approve rules.
func (h *Host) canAsk() bool {
	c := h.Caller()
	if c.Agent != "" {
		h.Note("calls that need approval are denied: %s", c.Reason())
	}
	return c.Agent == ""
}

// selectModel returns the model selected by the flags or the configuration.
// Without either, it returns the built-in demo and prints a note.
func (h *Host) selectModel(ctx context.Context, c *config.Config, o *Flags) (*setup.ActiveModel, error) {
	k := setup.ChooseModel(c, o.ModelFlags)
	for _, f := range []struct{ name, value string }{{"base-url", o.BaseURL}, {"key", o.Key}} {
		if f.value != "" && k.IsDemo() {
			return nil, exit.Errorf(exit.Usage, "loadout chat --model openai:NAME --base-url URL", "--%s needs --model openai:NAME", f.name)
		}
	}
	m, err := h.NewModel(ctx, c, k)
	if err != nil {
		return nil, err
	}
	if k.Name == "" {
		h.Note("no model configured; the built-in demo answers")
	}
	return &setup.ActiveModel{Began: k, Now: k, Model: m}, nil
}

// runInteractive runs a conversation until the user quits: full-screen, or line
// by line on a simple terminal.
func (h *Host) runInteractive(ctx context.Context, c *config.Config, o *Flags, who *setup.ActiveModel, input *terminal.LineReader, asks bool) error {
	options := conversationOptions{config: c, flags: o, asks: asks, input: input}
	if h.canUseScreen() {
		notices := terminal.NewNotices(h.Stderr)
		own := *h
		own.Stderr, own.Stdout = notices, notices // the conversation owns the screen
		options.input = nil
		t, err := own.openChat(ctx, options, who)
		if err != nil {
			return err
		}
		defer t.close()
		err = t.runScreen(ctx, h.Stdin, h.Stdout, notices)
		h.printResume(t, err)
		return err
	}
	t, err := h.openChat(ctx, options, who)
	if err != nil {
		return err
	}
	defer t.close()
	err = h.readLoop(ctx, t, input)
	h.printResume(t, err)
	return err
}

// printResume prints how to continue a conversation that ended with err. It
// prints nothing if the user sent no message or opened another conversation.
func (h *Host) printResume(t *dialog, err error) {
	if hasType[*reopenError](err) || !t.hasMessages() || h.JSON {
		return
	}
	fmt.Fprintf(h.Stderr, "Resume this conversation with: %s\n", t.resumeCommand())
}

// openChat opens a conversation with the selected model. The caller must close
// it.
func (h *Host) openChat(ctx context.Context, o conversationOptions, who *setup.ActiveModel) (*dialog, error) {
	o.model = who.Model
	t, err := h.openConversation(ctx, o)
	if err != nil {
		return nil, err
	}
	return &dialog{conversation: t, host: h, config: o.config, price: setup.Prices(o.config), flags: o.flags, answering: who, asks: o.asks}, nil
}

// readLoop processes input line by line until the input ends.
func (h *Host) readLoop(ctx context.Context, t *dialog, input *terminal.LineReader) error {
	fmt.Fprintf(h.Stderr, "%s, conversation %s. /help lists the commands, Ctrl-D exits.\n", terminal.Plain(t.Model().Name()), t.id)
	if text := t.formatLeft(); text != "" {
		fmt.Fprint(h.Stderr, terminal.Render(text, h.TerminalWidth(), true))
	}
	t.printPreloaded()
	for {
		fmt.Fprint(h.Stderr, h.Colorize(h.Stderr, "1", "> "))
		line, err := input.ReadLine(ctx)
		if line = strings.TrimSpace(line); line != "" {
			err := h.runLine(ctx, t, line)
			if end, ok := errors.AsType[*terminal.End](err); ok {
				return end.With
			}
			if err != nil {
				if ctx.Err() != nil {
					return err
				}
				h.ReportError(err)
			}
		}
		if errors.Is(err, io.EOF) {
			fmt.Fprintln(h.Stderr)
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// runLine runs a slash command or sends the line as a message.
func (h *Host) runLine(ctx context.Context, t *dialog, line string) error {
	name, args, ok := terminal.ParseCommand(line)
	if !ok {
		return t.printEvents(ctx, func(emit func(agent.Event)) error {
			attached, err := t.attach(ctx, line, emit)
			if err != nil {
				return err
			}
			return t.RunTurn(ctx, line+attached, emit)
		})
	}
	if k := terminal.FindCommand(t.slashCommands(ctx), name); k != nil {
		return t.printEvents(ctx, func(emit func(agent.Event)) error {
			if k.Files {
				attached, err := t.attach(ctx, args, emit)
				if err != nil {
					return err
				}
				args += attached
			}
			text, err := k.Run(ctx, args, emit)
			h.printCommandOutput(text)
			return err
		})
	}
	return exit.Errorf(exit.Usage, "list the commands: /help", "unknown command /%s", name)
}

// printTurn runs one turn and prints its events.
func (t *dialog) printTurn(ctx context.Context, text string) error {
	return t.printEvents(ctx, func(emit func(agent.Event)) error { return t.sendMessage(ctx, text, emit) })
}

// sendMessage sends the user's text as a message. /NAME ARGS invokes the skill
// NAME instead, if the user may invoke it.
func (t *dialog) sendMessage(ctx context.Context, text string, emit func(agent.Event)) error {
	if name, args, ok := terminal.ParseCommand(text); ok {
		if e, err := t.runtime.Catalog().Resolve(ctx, name); err == nil && e.UserInvocable {
			return t.InvokeSkill(ctx, e.Key(), args, emit)
		}
	}
	return t.RunTurn(ctx, text, emit)
}
