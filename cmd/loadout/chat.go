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
and goes on with --session.`,
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
	input := newTyped(a.stdin)
	defer input.close()
	return a.converse(ctx, c, o, model, o.approve == "ask" || o.approve == "" && !once, func(t *conversation) error {
		if once {
			return a.answer(ctx, t, o.prompt)
		}
		return a.repeat(ctx, t, model, input)
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
	err := t.Turn(ctx, text, show)
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
func (a *app) repeat(ctx context.Context, t *conversation, model llm.Model, input *typed) error {
	fmt.Fprintf(a.stderr, "%s, conversation %s. Ctrl-D ends it.\n", model.Name(), t.id)
	for {
		fmt.Fprint(a.stderr, a.style(a.stderr, "1", "> "))
		line, err := input.next(ctx)
		if line = strings.TrimSpace(line); line != "" {
			if err := a.answer(ctx, t, line); err != nil {
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
