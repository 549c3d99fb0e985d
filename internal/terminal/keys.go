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

// maxWaiting is the maximum number of messages queued during a response.
const maxWaiting = 20

// key handles a key press.
func (m *model) key(k tea.KeyPressMsg) tea.Cmd {
	if m.leaving {
		return nil
	}
	now := m.now()
	defer func() { m.lastKey = now }()
	name, text := k.String(), k.Text
	switch name {
	case "ctrl+z":
		return tea.Suspend
	case "ctrl+o":
		m.printDetails()
		return nil
	}
	if m.dialog != nil {
		return m.dialogKey(name, text, now)
	}
	if m.picker != nil {
		return m.pickerKey(name, text)
	}
	if name != "ctrl+c" {
		m.quitArmed = false
	}
	if shown := m.showKeys; shown || text == "?" && m.input.empty() {
		m.showKeys = !shown
		if !shown || name == "esc" { // a second question mark is typed
			return nil
		}
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
		return m.handleEnter()
	case "tab":
		if len(m.completion.offers) > 0 {
			m.accept(&m.completion.offers[m.completion.at])
		} else if m.input.unfold() {
			m.complete()
		}
	case "ctrl+r":
		m.searchHistory()
	case "shift+tab", "ctrl+p", "up":
		m.upOrDown(-1)
	case "ctrl+n", "down":
		m.upOrDown(1)
	default:
		if name == "ctrl+d" && m.input.empty() {
			m.quit(nil)
			return nil
		}
		if m.input.key(name, text) {
			m.complete()
		}
	}
	return nil
}

// complete updates the completions for the text before the cursor.
func (m *model) complete() {
	if path, _, ok := m.input.mention(); ok && m.opts.CompleteFile != nil {
		m.completeFile(path)
		return
	}
	m.completion.update(m.input.String(), m.opts.Commands)
}

// accept puts a completion into the input.
func (m *model) accept(o *completionItem) {
	if o.replaces > 0 {
		m.input.remove(m.input.at-o.replaces, m.input.at+o.replacesAfter)
		m.input.insert(o.text)
	} else {
		m.input.set(o.text)
	}
	m.complete()
}

// interrupt handles Ctrl-C. It cancels the running turn or clears the input.
// Pressing Ctrl-C twice with an empty input quits.
func (m *model) interrupt() {
	switch {
	case m.stop():
	case !m.input.empty():
		m.input.set("")
		m.complete()
	case m.quitArmed:
		m.quit(nil)
	default:
		m.quitArmed = true
	}
}

func (m *model) upOrDown(by int) {
	if m.completion.move(by) || m.input.moveVertically(by) {
		return
	}
	if in, ok := m.history.move(by, m.input.value()); ok {
		m.input.restore(in)
		m.completion = completion{text: m.input.String()} // arrow keys now move within the recalled text
	}
}

func (m *model) handlePaste(text string) {
	m.lastKey, m.showKeys = m.now(), false
	if m.dialog != nil {
		m.dialog.paste(text)
		return
	}
	if m.picker != nil {
		m.picker.paste(text)
		return
	}
	m.input.paste(text)
	m.complete()
}

// handleEnter submits the input. If the input ends in a backslash, it starts a
// new line instead. If a completion is selected, it completes the command.
func (m *model) handleEnter() tea.Cmd {
	text := m.input.String()
	if n := len(m.input.letters); n > 0 && m.input.at == n && m.input.letters[n-1].text == `\` {
		m.input.remove(n-1, n)
		m.input.insert("\n")
		return nil
	}
	if len(m.completion.offers) > 0 && m.completion.offers[0].replaces > 0 {
		if o := &m.completion.offers[m.completion.at]; !m.input.isTyped(o) {
			m.accept(o)
			return nil
		}
	}
	if name, args, behind := strings.Cut(text, " "); len(m.completion.offers) > 0 && !behind && args == "" {
		chosen := m.completion.offers[m.completion.at]
		if chosen.name != name {
			m.accept(&chosen)
			if chosen.args != "" {
				return nil
			}
			text = chosen.name
		}
	}
	if strings.TrimSpace(text) == "" {
		return nil
	}
	in := m.input.value()
	m.input.set("")
	m.complete()
	if err := m.history.add(in.trim("", " \n")); err != nil {
		m.printBelow(line{{Plain(err.Error()), faint}})
	}
	return m.enter(in.trim(" \n", " \n"))
}

// enter submits an input, or queues it if a turn is running.
func (m *model) enter(in input) tea.Cmd {
	if m.turn != nil {
		if len(m.waiting) < maxWaiting {
			m.waiting = append(m.waiting, in)
		}
		return nil
	}
	return m.submit(in)
}

// submit sends a message or runs a slash command.
func (m *model) submit(in input) tea.Cmd {
	text := in.text
	name, args, ok := ParseCommand(text)
	if _, _, typed := ParseCommand(in.shown()); !typed {
		ok = false // a folded text is no command
	}
	var all []Command
	if ok && m.opts.Commands != nil {
		all = m.opts.Commands()
	}
	k := FindCommand(all, name)
	if k != nil && k.Pick != nil && args == "" {
		m.pickArgument(k)
		return nil
	}
	m.printUserText(in.shown())
	if !ok {
		return m.start(func(ctx context.Context, emit func(agent.Event)) (string, error) {
			attached, err := m.attach(ctx, in, emit)
			if err != nil {
				return "", err
			}
			return "", m.talk.RunTurn(ctx, text+attached, emit)
		})
	}
	if name == "details" {
		m.printDetails()
		return m.nextWaiting()
	}
	if k == nil {
		m.printProblem("unknown command /" + name + "; /help lists the commands")
		return m.nextWaiting()
	}
	return m.start(func(ctx context.Context, emit func(agent.Event)) (string, error) {
		attached := ""
		if k.Files {
			var err error
			if attached, err = m.attach(ctx, in, emit); err != nil {
				return "", err
			}
		}
		return k.Run(ctx, args+attached, emit)
	})
}

// ParseCommand splits a slash command into its name and arguments. ok is false
// if text does not start with a slash, or if the name contains another.
func ParseCommand(text string) (name, args string, ok bool) {
	rest, slash := strings.CutPrefix(text, "/")
	end := strings.IndexAny(rest, " \t\n")
	if end < 0 {
		end = len(rest)
	}
	name, args = rest[:end], strings.TrimSpace(rest[end:])
	return name, args, slash && name != "" && !strings.Contains(name, "/")
}

// dialogKey passes a key press to the current prompt.
func (m *model) dialogKey(name, text string, now time.Time) tea.Cmd {
	if now.Before(m.ignoreKeysUntil) {
		m.ignoreKeysUntil = now.Add(promptPause) // the user is still typing a message
		return nil
	}
	asked, isCall := m.dialog.(*approvalPrompt)
	switch {
	case name == "ctrl+c" && m.turn != nil:
		m.stop() // cancelling the turn also cancels the request
		return nil
	case isCall && !asked.editing && text == "d", name == "ctrl+t":
		m.printBlock(m.dialog.render(m.textWidth()))
		return nil
	case isCall && asked.isCall() && !asked.editing && text == "e" && m.opts.Editor != nil:
		return m.openEditor(asked)
	}
	if a := m.dialog.key(name, text); a != nil {
		m.resolvePrompt(*a)
	}
	return nil
}

// openEditor opens a call's arguments in the user's editor.
func (m *model) openEditor(a *approvalPrompt) tea.Cmd {
	f, err := os.CreateTemp("", "arguments-*.json") // created with mode 0600
	if err != nil {
		a.problem = Plain(err.Error())
		return nil
	}
	path := f.Name()
	_, err = f.WriteString(indentJSON(a.Arguments) + "\n")
	if err = errors.Join(err, f.Close()); err != nil {
		a.problem = Plain(errors.Join(err, os.Remove(path)).Error())
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

// applyEdited applies the user's changes from the editor.
func (m *model) applyEdited(e editedMsg) {
	a, ok := m.dialog.(*approvalPrompt)
	switch {
	case !ok: // the request was resolved meanwhile
	case e.err != nil:
		a.problem = "the editor: " + Plain(e.err.Error())
	default:
		if equalJSON(a.Arguments, e.text) {
			a.problem = ""
			return
		}
		a.replace(e.text)
	}
}

// equalJSON reports whether two JSON texts are equal, ignoring white space and
// escapes.
func equalJSON(a, b json.RawMessage) bool { return indentJSON(a) == indentJSON(b) }
