package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/terminal"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/policy"
)

// talk is a conversation with a person: what they see of it, and the commands that
// they type.
type talk struct {
	*conversation
	app       *app
	config    *config.Config
	flags     *chatFlags
	answering *answering
	asks      bool // a person is asked about calls
	once      bool // it is over after a turn
}

var _ terminal.Conversation = (*talk)(nil)

// fullScreen says whether the person has a terminal that can do more than print lines.
func (a *app) fullScreen() bool {
	term := a.getenv("TERM")
	return !a.json && isTerminal(a.stdin) && isTerminal(a.stdout) && term != "dumb" && term != ""
}

// Status implements [terminal.Conversation].
func (t *talk) Status() terminal.Status {
	s := terminal.Status{Model: t.Model().Name(), Folder: t.place()}
	for _, k := range t.session.Active() {
		left, bounded := t.session.Left(k.Skill)
		s.Skills = append(s.Skills, terminal.Skill{Name: k.Skill.Name, Left: left, Bounded: bounded})
	}
	for name, used := range t.Spent() {
		s.Tokens += used.Prompt() + used.Output
		if p, known := t.price(name); known {
			cost, _ := p.Cost(used)
			s.Cost += cost
		}
	}
	return s
}

// price is what a model costs, where the configuration says.
func (t *talk) price(model string) (llm.Price, bool) {
	p, known := t.config.Models.Price(model)
	return llm.Price(p), known
}

// place is the folder of the person that is worked on; that of the conversation itself
// needs no mention.
func (t *talk) place() string {
	if t.flags.workspace == "" {
		return ""
	}
	return t.app.shortPath(t.folder)
}

// shortPath is a path with ~ in the place of the home directory.
func (a *app) shortPath(path string) string {
	if home := a.home(); home != "" {
		if rest, ok := strings.CutPrefix(path, home+string(filepath.Separator)); ok {
			return "~" + string(filepath.Separator) + rest
		}
	}
	return path
}

// person has the person talk in their terminal until they leave.
func (t *talk) person(ctx context.Context, from, to any, notices *terminal.Notices) error {
	a := t.app
	in, isFile := file(from)
	out, isFileToo := file(to)
	if !isFile || !isFileToo {
		return errors.New("there is no terminal")
	}
	history := &terminal.History{}
	if dir := a.stateDir(); dir != "" {
		h, err := terminal.OpenHistory(filepath.Join(dir, "chat-history"))
		if err != nil {
			a.note("%v", err)
		}
		history = h
	}
	root, err := os.OpenRoot(t.folder)
	if err != nil {
		return err
	}
	defer root.Close()
	return terminal.Run(ctx, t, &terminal.Options{
		Input: in, Output: out, Env: a.terminalEnv(), Plain: a.getenv("NO_COLOR") != "",
		Greeting: t.greeting(), Past: t.session.Events(0), Commands: func() []terminal.Command { return t.commands(ctx) },
		Desk: t.desk, Session: t.id, Who: policy.Local(), History: history, Editor: a.editor(),
		Before: func(path string) (string, bool) { return textIn(root, path) }, Notices: notices, Describe: t.described,
	})
}

// greeting is what there is to see first.
func (t *talk) greeting() string {
	return "**" + literal(t.Model().Name()) + "**, conversation " + t.id + "  \n`/help` says what there is, Ctrl-D leaves."
}

// terminalEnv are the variables that say what the terminal can do.
func (a *app) terminalEnv() []string {
	var out []string
	for _, name := range []string{"TERM", "COLORTERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "TMUX", "STY", "SSH_TTY", "WT_SESSION", "NO_COLOR", "LANG", "LC_ALL", "LC_CTYPE"} {
		if v := a.getenv(name); v != "" {
			out = append(out, name+"="+v)
		}
	}
	return out
}

// editor is the editor of the person, nil where they named none.
func (a *app) editor() func(string) *exec.Cmd {
	words := strings.Fields(a.getenv("VISUAL"))
	if len(words) == 0 {
		words = strings.Fields(a.getenv("EDITOR"))
	}
	if len(words) == 0 {
		return nil
	}
	return func(path string) *exec.Cmd {
		return exec.Command(words[0], append(words[1:len(words):len(words)], path)...)
	}
}

// maxBefore bounds a file whose changes are shown.
const maxBefore = 1 << 20

// textIn is a file of a folder; false is that it is none, or too long to compare.
func textIn(root *os.Root, path string) (string, bool) {
	info, err := root.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxBefore {
		return "", false
	}
	f, err := root.Open(path)
	if err != nil {
		return "", false
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxBefore))
	return string(b), err == nil
}
