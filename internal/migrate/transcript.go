package migrate

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// titleLength is the maximum length, in characters, of a title that is taken from
// the first line of a message.
const titleLength = 60

// addText adds the text of a message without its tool calls.
func (e *exported) addText(role llm.Role, text string, at time.Time) {
	if role != llm.User && role != llm.Assistant {
		return
	}
	text = e.clean(text)
	if text != "" && !e.add(PastMessage{PastMessage: session.PastMessage{Role: role, Text: text}, Time: validTime(at)}) {
		e.further++
	}
}

// addOwn adds a Loadout conversation. active lists the skills that were active
// at its end.
func (r *reader) addOwn(e *exported, active []string) {
	for _, i := range slices.Backward(e.currentBranch()) {
		if m := &e.Messages[i]; m.Role == llm.Assistant {
			m.LoadedSkills = active[:min(len(active), maxCalls)]
			break
		}
	}
	if e.Title == "" {
		e.Title, e.TitleSource = e.messageTitle(), "message"
	}
	r.addConversation(e.conversation())
}

// messageTitle returns a title from the first line of the user's first message.
func (e *exported) messageTitle() string {
	i := slices.IndexFunc(e.Messages, func(m PastMessage) bool { return m.Role == llm.User })
	if i < 0 {
		return ""
	}
	line, _, _ := strings.Cut(cmp.Or(e.Messages[i].Text, e.imageName), "\n")
	if all := []rune(line); len(all) > titleLength {
		line = string(all[:titleLength-1]) + "…"
	}
	return clip(line)
}

// Lines of a conversation that package transcript rendered.
var (
	userLine   = lazyregexp.New(`^## You, ([0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2})$`)
	modelLine  = lazyregexp.New(`^## (?:[a-z0-9][a-z0-9-]*:\S+)?$`)
	callLine   = lazyregexp.New(`^Called \S+:$`)
	resultLine = lazyregexp.New(`^(?:Result|Error):$`)
	loadLine   = lazyregexp.New(`^The skill (\S+) was (loaded\.|unloaded: .*)$`)
	fenceLine  = lazyregexp.New("^\\s*(`{3,})[^`]*$")
)

// markdown holds the state of parsing a conversation in Markdown.
type markdown struct {
	exported
	role   llm.Role
	at     time.Time
	text   strings.Builder
	fence  string // that ends the code block, or ""
	called bool   // results can follow
	skip   bool   // the next code block belongs to a call
	active []string
}

// parseMarkdown adds a Loadout conversation that was exported as Markdown. A
// message that itself contains such an export may be split.
func (r *reader) parseMarkdown(p string, data []byte) {
	m := markdown{exported: exported{PastConversation: PastConversation{From: p}}}
	first := true
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, "\r\n")
		if first {
			title, ok := strings.CutPrefix(line, "# ")
			if !ok {
				return
			}
			m.Title, first = clip(unescape(title)), false
			continue
		}
		m.addLine(line)
	}
	m.endMessage()
	r.addOwn(&m.exported, m.active)
}

// addLine adds a line to the current message, or starts another message.
func (m *markdown) addLine(line string) {
	fence := ""
	if f := fenceLine.FindStringSubmatch(line); f != nil {
		fence = f[1]
	}
	switch {
	case m.fence != "" && !m.skip && userLine.MatchString(line): // the message does not end its code block
		m.fence = ""
		m.startUser(line)
	case m.fence != "":
		ends := strings.TrimSpace(line) == fence && len(fence) >= len(m.fence)
		if !m.skip {
			m.write(line)
		}
		if ends {
			m.fence, m.skip = "", false
		}
	case fence != "":
		if m.fence = fence; !m.skip {
			m.write(line)
		}
	case userLine.MatchString(line):
		m.startUser(line)
	case m.role != "" && modelLine.MatchString(line):
		m.endMessage()
		m.role = llm.Assistant
	case m.role != "" && callLine.MatchString(line):
		m.calls++
		m.called, m.skip = true, true
	case m.called && resultLine.MatchString(line):
		m.skip = true
	case loadLine.MatchString(line):
		part := loadLine.FindStringSubmatch(line)
		m.setActive(unescape(part[1]), part[2] == "loaded.")
	case line == "The earlier conversation was compacted.":
	default:
		m.write(line)
	}
}

// startUser starts the user message whose heading is line.
func (m *markdown) startUser(line string) {
	m.endMessage()
	m.role = llm.User
	m.at, _ = time.Parse("2006-01-02 15:04", userLine.FindStringSubmatch(line)[1])
}

func (m *markdown) write(line string) { m.text.WriteString(line + "\n") }

// setActive records that a skill was loaded or unloaded.
func (m *markdown) setActive(name string, active bool) {
	m.active = slices.DeleteFunc(m.active, func(s string) bool { return s == name })
	if active && len(m.active) < maxCalls {
		m.active = appendName(m.active, name)
	}
}

// endMessage adds the current message to the conversation.
func (m *markdown) endMessage() {
	if m.role != "" {
		m.addText(m.role, m.text.String(), m.at)
	}
	m.text.Reset()
	m.called, m.skip = false, false
}

// unescape removes the backslashes with which package transcript escapes Markdown
// characters.
func unescape(s string) string { return strings.ReplaceAll(s, `\`, "") }
