package migrate

import (
	"bytes"
	"encoding/json"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// titleLength is the maximum length, in bytes, of a title that is taken from the
// first line of a message.
const titleLength = 60

// parseEvents adds a Loadout conversation that was exported as JSON lines. It
// ignores the skill texts and permissions in the export: the skills that were
// active at the end are loaded again from the user's own skills. Of a conversation
// with branches, it adds the current one.
func (r *reader) parseEvents(p string, data []byte) {
	e := exported{PastConversation: PastConversation{From: p}}
	var state session.State
	var branch []session.Event // later events of the current branch
	branched := bytes.Contains(data, []byte(`"branched"`))
	if branched {
		ok := true
		if branch, ok = currentBranch(data); !ok {
			r.plan.addLost(File, path.Base(p), p, "too many events of a conversation with branches (limit %d)", maxBranchedEvents)
			return
		}
	}
	n, loads := int64(0), 0
	for line := range bytes.Lines(data) {
		var event session.Event
		n++
		if hasManyValues(line) {
			r.plan.addLost(File, path.Base(p), p, "line %d has too many JSON values (limit %d)", n, maxValues)
			return
		}
		if err := json.Unmarshal(line, &event); err != nil || event.Seq != n {
			if line[len(line)-1] != '\n' {
				break // the program was still writing it
			}
			if n > 1 {
				r.plan.addLost(File, path.Base(p), p, "line %d is not an event of a conversation", n)
			}
			return
		}
		if event.Used != nil {
			event.Used.Tools = nil // not needed, and each event would copy those of the earlier ones
		}
		if event.Loaded != nil {
			loads++
		}
		if loads > maxLoads {
			r.plan.addLost(File, path.Base(p), p, "line %d: too many loads of skills (limit %d)", n, maxLoads)
			return
		}
		if branched {
			if len(branch) == 0 || branch[0].Seq != n {
				continue
			}
			branch = branch[1:]
		}
		state.Apply(event)
		e.addEvent(&event)
	}
	active := []string{}
	for _, a := range state.Active() {
		active = appendName(active, a.Skill.Name)
	}
	r.addOwn(&e, active)
}

// maxBranchedEvents is the maximum number of events of a conversation with
// branches.
const maxBranchedEvents = 100_000

// currentBranch returns the events on the current branch of an exported
// conversation, up to the first line that is not an event, without their content.
// It returns false if there are more than [maxBranchedEvents] events.
func currentBranch(data []byte) (branch []session.Event, ok bool) {
	var events []session.Event
	for line := range bytes.Lines(data) {
		var e struct {
			Seq      int64
			Branched *session.Branch
		}
		if json.Unmarshal(line, &e) != nil || e.Seq != int64(len(events))+1 {
			break
		}
		if len(events) == maxBranchedEvents {
			return nil, false
		}
		events = append(events, session.Event{Seq: e.Seq, Branched: e.Branched})
	}
	return session.Path(events), true
}

// addEvent adds the message of an event, and counts its calls and images, which
// are not migrated.
func (e *exported) addEvent(event *session.Event) {
	if event.Result != nil {
		e.parts += len(event.Result.Images)
	}
	if m := event.Message; m != nil {
		e.calls += len(m.Calls)
		e.addText(m.Role, m.Text, event.Time)
	}
}

// addText adds the text of a message without its tool calls.
func (e *exported) addText(role llm.Role, text string, at time.Time) {
	if role != llm.User && role != llm.Assistant {
		return
	}
	text = e.clean(text)
	if text != "" && !e.add(PastMessage{PastMessage: session.PastMessage{Role: role, Text: text}, Time: knownTime(at)}) {
		e.further++
	}
}

// addOwn adds a Loadout conversation. active lists the skills that were active
// at its end.
func (r *reader) addOwn(e *exported, active []string) {
	for i := len(e.Messages) - 1; i >= 0; i-- {
		if m := &e.Messages[i]; m.Role == llm.Assistant {
			m.LoadedSkills = active[:min(len(active), maxCalls)]
			break
		}
	}
	if i := slices.IndexFunc(e.Messages, func(m PastMessage) bool { return m.Role == llm.User }); i >= 0 && e.Title == "" {
		line, _, _ := strings.Cut(e.Messages[i].Text, "\n")
		e.Title = clip(line)
		if len(line) > titleLength {
			e.Title = clip(strings.ToValidUTF8(line[:titleLength], "")) + "…"
		}
	}
	r.addConversation(e.conversation())
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
