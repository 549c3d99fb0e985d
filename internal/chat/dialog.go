package chat

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/setup"
	"github.com/loadout-dev/loadout/internal/terminal"
	"github.com/loadout-dev/loadout/internal/usage"
	"github.com/loadout-dev/loadout/policy"
)

// dialog connects a conversation to the user: it prints the output and runs
// slash commands.
type dialog struct {
	*conversation
	host      *Host
	config    *config.Config
	price     func(model string) (price usage.Price, known bool) // as configured
	flags     *Flags
	model     sync.Mutex // guards answering, which lists of models read in the background
	answering *setup.ActiveModel
	asks      bool // whether calls need the user's approval
	once      bool // whether the chat ends after one turn
	screen    bool // whether the conversation runs on a screen, with keys
}

var _ terminal.Conversation = (*dialog)(nil)

// activeModel returns a copy of the current model.
func (t *dialog) activeModel() *setup.ActiveModel {
	t.model.Lock()
	defer t.model.Unlock()
	now := *t.answering
	return &now
}

// canUseScreen reports whether the terminal supports a full-screen interface.
func (h *Host) canUseScreen() bool {
	term := h.Getenv("TERM")
	return !h.JSON && console.IsTerminal(h.Stdin) && console.IsTerminal(h.Stdout) && term != "dumb" && term != ""
}

// Status implements [terminal.Conversation].
func (t *dialog) Status() terminal.Status {
	s := terminal.Status{Model: t.Model().Name(), Folder: t.folderLabel()}
	for _, k := range t.session.Active() {
		left, bounded := t.session.TurnsLeft(k.Skill)
		s.Skills = append(s.Skills, terminal.Skill{Name: k.Skill.Name, Left: left, Bounded: bounded})
	}
	for name, used := range t.UsageByModel() {
		s.Tokens += used.Prompt() + used.Output
		if p, known := t.price(name); known {
			cost, _ := p.Cost(used)
			s.Cost += cost
		}
	}
	return s
}

// folderLabel returns the working directory for display. It returns "" if the
// user did not choose one.
func (t *dialog) folderLabel() string {
	if t.flags.Workspace == "" {
		return ""
	}
	return t.host.shortPath(t.folder)
}

// shortPath replaces the home directory in a path with ~.
func (h *Host) shortPath(path string) string {
	if home := h.Home(); home != "" {
		if rest, ok := strings.CutPrefix(path, home+string(filepath.Separator)); ok {
			return "~" + string(filepath.Separator) + rest
		}
	}
	return path
}

// runScreen runs the conversation in a full-screen terminal until the user
// quits.
func (t *dialog) runScreen(ctx context.Context, from, to any, notices *terminal.Notices) error {
	t.screen = true
	a := t.host
	in, isFile := console.AsFile(from)
	out, isFileToo := console.AsFile(to)
	if !isFile || !isFileToo {
		return errors.New("not a terminal")
	}
	history := &terminal.History{}
	if dir := a.StateDir(); dir != "" {
		h, err := terminal.OpenHistory(filepath.Join(dir, "chat-history"))
		if err != nil {
			a.Note("%v", err)
		}
		history = h
	}
	root, err := os.OpenRoot(t.folder)
	if err != nil {
		return err
	}
	defer root.Close()
	files, err := t.attacher()
	if err != nil {
		return err
	}
	return terminal.Run(ctx, t, &terminal.Options{
		Input: in, Output: out, Env: a.terminalEnv(), Plain: a.Getenv("NO_COLOR") != "",
		Greeting: t.greeting(), Clear: t.flags.clear, Unsent: &t.flags.unsent, Past: t.session.Events(0), Commands: func() []terminal.Command { return t.slashCommands(ctx) },
		CompleteFile: files.complete, Attach: files.attach,
		Approvals: t.queue, Session: t.id, Who: policy.LocalUser(), History: history, Editor: a.editorCommand(),
		Before: func(path string) (string, bool) { return readTextFile(root, path) }, Notices: notices, Describe: t.describeError,
	})
}

// greeting returns the text printed above the first screen.
func (t *dialog) greeting() string {
	text := "**" + literal(t.Model().Name()) + "**, conversation " + t.id + "  \n`/help` lists the commands, Ctrl-D exits."
	if left := t.formatLeft(); left != "" {
		text += "\n\n" + left
	}
	return text
}

// terminalEnv returns the environment variables that describe the terminal.
func (h *Host) terminalEnv() []string {
	var out []string
	for _, name := range []string{"TERM", "COLORTERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "TMUX", "STY", "SSH_TTY", "WT_SESSION", "NO_COLOR", "LANG", "LC_ALL", "LC_CTYPE"} {
		if v := h.Getenv(name); v != "" {
			out = append(out, name+"="+v)
		}
	}
	return out
}

// editorCommand returns a function that opens a file in the user's editor, or
// nil if no editor is configured.
func (h *Host) editorCommand() func(string) *exec.Cmd {
	words := strings.Fields(h.Getenv("VISUAL"))
	if len(words) == 0 {
		words = strings.Fields(h.Getenv("EDITOR"))
	}
	if len(words) == 0 {
		return nil
	}
	return func(path string) *exec.Cmd {
		return exec.Command(words[0], append(words[1:len(words):len(words)], path)...)
	}
}

// maxCompareBytes is the maximum size of a file whose changes are shown as a
// diff.
const maxCompareBytes = 1 << 20

// readTextFile reads a file in a directory. It returns false if the file does
// not exist or is too large for a diff.
func readTextFile(root *os.Root, path string) (string, bool) {
	info, err := root.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxCompareBytes {
		return "", false
	}
	f, err := root.Open(path)
	if err != nil {
		return "", false
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxCompareBytes))
	return string(b), err == nil
}
