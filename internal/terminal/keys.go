package terminal

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/loadout-dev/loadout/agent"
)

// maxWaiting bounds what is typed while an answer comes.
const maxWaiting = 20

// key does what a key does where it is pressed.
func (m *model) key(k tea.KeyPressMsg) tea.Cmd {
	if m.leaving {
		return nil
	}
	now := m.now()
	defer func() { m.typed = now }()
	name, text := k.String(), k.Text
	switch name {
	case "ctrl+z":
		return tea.Suspend
	case "ctrl+o":
		m.details()
		return nil
	}
	if m.dialog != nil {
		return m.dialogKey(name, text, now)
	}
	if name != "ctrl+c" {
		m.armed = false
	}
	switch name {
	case "ctrl+c":
		m.interrupt()
	case "esc":
		if m.completion.offers != nil {
			m.completion.close()
		} else {
			m.stop()
		}
	case "enter":
		return m.enter()
	case "tab":
		if text, ok := m.completion.chosen(); ok {
			m.input.set(text)
			m.complete()
		}
	case "shift+tab", "ctrl+p", "up":
		m.upOrDown(-1)
	case "ctrl+n", "down":
		m.upOrDown(1)
	default:
		if name == "ctrl+d" && m.input.empty() {
			m.leave(nil)
			return nil
		}
		if m.input.key(name, text) {
			m.complete()
		}
	}
	return nil
}

func (m *model) complete() { m.completion.update(m.input.String(), m.opts.Commands) }

// interrupt is Ctrl-C: it stops what is under way, or empties the line, and on an empty
// line it leaves when it comes twice.
func (m *model) interrupt() {
	switch {
	case m.stop():
	case !m.input.empty():
		m.input.set("")
		m.complete()
	case m.armed:
		m.leave(nil)
	default:
		m.armed = true
	}
}

func (m *model) upOrDown(by int) {
	if m.completion.move(by) || m.input.vertical(by) {
		return
	}
	if text, ok := m.history.move(by, m.input.String()); ok {
		m.input.set(text)
		m.completion = completion{text: text} // the arrows go on in what was typed
	}
}

func (m *model) pasted(text string) {
	m.typed = m.now()
	if m.dialog != nil {
		m.dialog.paste(text)
		return
	}
	m.input.insert(text)
	m.complete()
}

// enter is the end of an input, but for a backslash at its end, and a command that is
// not typed to its end.
func (m *model) enter() tea.Cmd {
	text := m.input.String()
	if before, ok := strings.CutSuffix(text, `\`); ok && m.input.at == len(m.input.letters) {
		m.input.set(before + "\n")
		return nil
	}
	if name, args, behind := strings.Cut(text, " "); len(m.completion.offers) > 0 && !behind && args == "" {
		chosen := m.completion.offers[m.completion.at]
		if chosen.name != name {
			m.input.set(chosen.text)
			m.complete()
			if chosen.args != "" {
				return nil
			}
			text = chosen.name
		}
	}
	if strings.TrimSpace(text) == "" {
		return nil
	}
	m.input.set("")
	m.complete()
	if err := m.history.Add(strings.TrimRight(text, " \n")); err != nil {
		m.note(line{{Plain(err.Error()), faint}})
	}
	text = strings.TrimSpace(text)
	if m.turn != nil {
		if len(m.waiting) < maxWaiting {
			m.waiting = append(m.waiting, text)
		}
		return nil
	}
	return m.submit(text)
}

// submit says something, or runs a command.
func (m *model) submit(text string) tea.Cmd {
	m.person(text)
	name, args, ok := ParseCommand(text)
	if !ok {
		return m.start(func(ctx context.Context, tell func(agent.Event)) (string, error) {
			return "", m.talk.RunTurn(ctx, text, tell)
		})
	}
	var all []Command
	if m.opts.Commands != nil {
		all = m.opts.Commands()
	}
	if name == "details" {
		m.details()
		return m.nextWaiting()
	}
	k := find(all, name)
	if k == nil {
		m.wrong("there is no command /" + name + "; /help names those that there are")
		return m.nextWaiting()
	}
	return m.start(func(ctx context.Context, tell func(agent.Event)) (string, error) { return k.Run(ctx, args, tell) })
}

// ParseCommand takes an input apart that is a command: a slash, a name without another
// slash, and what is behind it.
func ParseCommand(text string) (name, args string, ok bool) {
	rest, slash := strings.CutPrefix(text, "/")
	end := strings.IndexAny(rest, " \t\n")
	if end < 0 {
		end = len(rest)
	}
	name, args = rest[:end], strings.TrimSpace(rest[end:])
	return name, args, slash && name != "" && !strings.Contains(name, "/")
}

// dialogKey gives a key to the question that is shown.
func (m *model) dialogKey(name, text string, now time.Time) tea.Cmd {
	if now.Before(m.deaf) {
		m.deaf = now.Add(pause) // the person is typing something else
		return nil
	}
	asked, isCall := m.dialog.(*approvalPrompt)
	switch {
	case name == "ctrl+c" && m.turn != nil:
		m.stop() // who asked takes the question back
		return nil
	case isCall && !asked.editing && text == "d", name == "ctrl+t":
		m.say(m.dialog.whole(m.textWidth()))
		return nil
	case isCall && asked.call() && !asked.editing && text == "e" && m.opts.Editor != nil:
		return m.editOutside(asked)
	}
	if a := m.dialog.key(name, text); a != nil {
		m.settle(*a)
	}
	return nil
}

// editOutside has the person edit the arguments of a call in their editor.
func (m *model) editOutside(a *approvalPrompt) tea.Cmd {
	f, err := os.CreateTemp("", "arguments-*.json") // 0600
	if err != nil {
		a.wrong = Plain(err.Error())
		return nil
	}
	path := f.Name()
	_, err = f.WriteString(indented(a.Arguments) + "\n")
	if err = errors.Join(err, f.Close()); err != nil {
		a.wrong = Plain(errors.Join(err, os.Remove(path)).Error())
		return nil
	}
	return tea.ExecProcess(m.opts.Editor(path), func(err error) tea.Msg {
		var text []byte
		if err == nil {
			text, err = os.ReadFile(path)
		}
		return editedMsg{text, errors.Join(err, os.Remove(path))}
	})
}

// edited takes what comes back from the editor.
func (m *model) edited(e editedMsg) {
	a, ok := m.dialog.(*approvalPrompt)
	switch {
	case !ok: // it was settled meanwhile
	case e.err != nil:
		a.wrong = "the editor: " + Plain(e.err.Error())
	default:
		if same(a.Arguments, e.text) {
			a.wrong = ""
			return
		}
		a.replace(e.text)
	}
}

// same says whether two JSON texts are the same but for blanks and escapes.
func same(a, b json.RawMessage) bool { return indented(a) == indented(b) }
