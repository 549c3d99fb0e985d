package terminal

import (
	"context"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/agent"
)

// attachError is returned for a message that was not sent because a file could
// not be attached.
type attachError struct {
	in  input
	err error
}

func (e *attachError) Error() string { return e.err.Error() }
func (e *attachError) Unwrap() error { return e.err }

// attach returns the text of the files that an input mentions. It emits a
// notice about each file that is not read because its path was pasted.
func (m *model) attach(ctx context.Context, in input, emit func(agent.Event)) (string, error) {
	const most = 5
	for i, name := range in.pastedFiles() {
		if i < most && m.opts.CompleteFile != nil && slices.ContainsFunc(m.opts.CompleteFile(name), func(c Choice) bool { return c.Name == name }) {
			emit(agent.Event{Type: agent.Notice, Text: "pasted @" + name + " is not attached; type the path to attach the file"})
		}
	}
	paths := in.files()
	if len(paths) == 0 || m.opts.Attach == nil {
		return "", nil
	}
	text, notes, err := m.opts.Attach(ctx, paths)
	if err != nil {
		return "", &attachError{in, err}
	}
	for _, n := range notes {
		if n.Warning {
			emit(agent.Event{Type: agent.Notice, Text: n.Text})
		} else {
			m.send(attachedMsg{n.Text})
		}
	}
	return text, nil
}

// filesMsg holds the completions of a path that was typed after an @.
type filesMsg struct {
	path  string
	files []Choice
}

// mention returns the path before the cursor that the user typed after an @, and
// the index of the @.
func (e *editor) mention() (path string, at int, ok bool) {
	for at = e.at - 1; at >= 0 && !e.letters[at].pasted && e.letters[at].text != "\n"; at-- {
		if e.letters[at].text == "@" && (at == 0 || e.isSpace(at-1) || e.letters[at-1].text == "(") {
			path = joinLetters(e.letters[at+1 : e.at])
			if quoted, ok := strings.CutPrefix(path, `"`); ok {
				return quoted, at, !strings.Contains(quoted, `"`)
			}
			return path, at, !strings.Contains(path, " ")
		}
	}
	return "", 0, false
}

// completeFile loads the completions of a path in the background.
func (m *model) completeFile(path string) {
	if text := m.input.String(); m.completion.path == nil || m.completion.text != text || *m.completion.path != path {
		m.completion = completion{text: text, path: &path}
		load := m.opts.CompleteFile
		m.running.Go(func() { m.send(filesMsg{path, load(path)}) })
	}
}

// setFiles shows completions if the path that they complete is still before the
// cursor.
func (m *model) setFiles(msg filesMsg) {
	path, at, ok := m.input.mention()
	if !ok || path != msg.path || m.completion.path == nil || *m.completion.path != path {
		return
	}
	m.completion.offers, m.completion.at = nil, 0
	rest := m.input.wordRest()
	for _, f := range msg.files {
		if strings.HasPrefix(f.Name, `"`) || strings.Contains(f.Name, `"`) && strings.Contains(f.Name, " ") {
			continue // it cannot be quoted
		}
		text, after := f.Name, " "
		if strings.HasSuffix(text, "/") {
			after = ""
		}
		if strings.Contains(text, " ") {
			text = `"` + text
			if after != "" {
				after = `" `
			}
		}
		m.completion.offers = append(m.completion.offers, completionItem{text: "@" + text + after, name: f.Name, help: f.Help, replaces: m.input.at - at, replacesAfter: rest})
	}
}

// isTyped reports whether a completion is already before the cursor.
func (e *editor) isTyped(o *completionItem) bool {
	return joinLetters(e.letters[max(e.at-o.replaces, 0):min(e.at+o.replacesAfter, len(e.letters))]) == strings.TrimSpace(o.text)
}

// wordRest returns the number of typed letters between the cursor and the end of
// the word.
func (e *editor) wordRest() int {
	n := 0
	for e.at+n < len(e.letters) && !e.letters[e.at+n].pasted && !e.isSpace(e.at+n) {
		n++
	}
	return n
}
