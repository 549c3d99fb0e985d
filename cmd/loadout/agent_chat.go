package main

import (
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/loadout-dev/loadout/internal/chat"
	"github.com/loadout-dev/loadout/internal/setup"
)

func (a *app) chatCommand() *cobra.Command {
	var o chat.Flags
	cmd := &cobra.Command{
		Use:   "chat [-p PROMPT]",
		Short: "Chat with an agent that uses your skills",
		Long: `Chat with an agent that loads relevant skills, calls their tools and those of your MCP
servers, and runs scripts in the sandbox. Without a model, a built-in demo answers.
Choose a model with --model, and put its key into ANTHROPIC_API_KEY, OPENAI_API_KEY
or a secret.

With -p, or without a terminal, chat prints one response and exits. Calls that need
approval are then denied unless a rule allows them. Piped input is appended to PROMPT.
Conversations are saved; continue one with --session. Type /help in a conversation
for its commands, ? for its keys, and @FILE to attach a file.`,
		Example: `  loadout chat
  loadout chat -p "what is in sales.csv?" --workspace . --model anthropic:claude-sonnet-4-5
  loadout chat --model openai:qwen3 --base-url http://127.0.0.1:11434/v1
  loadout chat -p "make a CSV file with the first ten primes" --json`,
		Args: argCount(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.chatHost().Run(cmd.Context(), &o)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.Prompt, "prompt", "p", "", "send `PROMPT`, print the answer, and exit")
	addModelFlags(f, &o.ModelFlags)
	f.StringVar(&o.Session, "session", "", "continue the conversation `ID`")
	f.StringVar(&o.Workspace, "workspace", "", "work on the files in `DIR`; changes need approval")
	f.StringVar(&o.Approve, "approve", "", "use `MODE` for calls that match no rule: ask (prompt you) or rules (deny)")
	f.StringVar(&o.Profile, "profile", "", "use the skills, servers and instructions of the profile `NAME`")
	f.StringArrayVar(&o.Preload, "preload", nil, "load the skill `NAME` for the whole conversation (repeatable)")
	f.StringArrayVar(&o.Files, "mcp-config", nil, "add the MCP servers in `FILE`, in the format of any client (repeatable)")
	return cmd
}

// addModelFlags adds the flags that select a model.
func addModelFlags(f *pflag.FlagSet, o *setup.ModelFlags) {
	f.StringVar(&o.Model, "model", "", "use the language model `MODEL`: anthropic:NAME, openai:NAME or demo")
	f.StringVar(&o.BaseURL, "base-url", "", "`URL` of the model server; default: the vendor's own")
	f.StringVar(&o.Key, "key", "", "`NAME` of the secret or variable with the key for --base-url")
}

// chatHost returns the [chat.Host] for a chat with the user's setup.
func (a *app) chatHost() *chat.Host {
	return &chat.Host{Setup: a.Setup, ReportError: a.reportError, FormatReview: a.plainReview()}
}

// plainReview returns a variant of formatReview without colors, for approval
// requests.
func (a *app) plainReview() setup.FormatReview {
	uncolored := *a
	uncolored.Stdout = io.Discard
	return uncolored.formatReview
}
