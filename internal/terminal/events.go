package terminal

import (
	"strings"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/internal/toolname"
)

// maxThought is the maximum size of the model's thinking that is stored, in
// bytes.
const maxThought = 64 << 10

// printUserText prints a message that the user sent.
func (m *model) printUserText(text string) {
	var out []line
	for _, l := range textLines(text, bold) {
		out = append(out, prefixLines(l.wrapText(m.textWidth()-2, nil), line{{"  ", normal}}, line{{"  ", normal}})...)
	}
	if len(out) > 0 {
		out[0][0] = span{"> ", cyan}
	}
	m.printBlock(out)
}

// printAnswer prints the completed blocks of a response.
func (m *model) printAnswer(text string) {
	if strings.TrimSpace(text) != "" {
		m.printBlock(markdown(text, m.textWidth()))
	}
}

// event displays one event of the current turn.
func (m *model) event(e agent.Event) {
	t := m.turn
	if t == nil {
		return
	}
	switch e.Type {
	case agent.Text:
		m.printAnswer(t.stream.add(Safe(e.Text)))
	case agent.Thinking:
		if len(m.thinking) < maxThought {
			m.thinking += e.Text
		}
	case agent.ToolCall:
		m.printAnswer(t.stream.takeRest())
		m.calls.event(e, m.now())
	case agent.ToolProgress:
		m.calls.event(e, m.now())
	case agent.ToolResult:
		m.printResult(e)
	case agent.SkillLoaded:
		t.skill = e.Skill
		m.printEvent(line{{"◆ ", purple}, {"skill " + Plain(e.Skill) + " is loaded", normal}})
	case agent.SkillUnloaded:
		t.skill = e.Skill
		m.printEvent(line{{"◇ ", purple}, {"skill " + Plain(e.Skill) + " was unloaded", normal}, {reason(e.Reason), faint}})
	case agent.SkillUpdated:
		text := " changed after it was loaded"
		if e.Restored {
			text = " was changed back to the loaded version"
		}
		m.printEvent(line{{"◆ ", purple}, {"skill " + Plain(e.Skill) + text, normal}})
	case agent.Notice:
		m.printEvent(line{{"! ", purple}, {Plain(e.Text), normal}})
	case agent.Compacted:
		m.printEvent(line{{"◇ ", purple}, {"conversation compacted", normal}})
	}
	switch e.Type {
	case agent.SkillLoaded, agent.SkillUnloaded, agent.Usage, agent.Compacted, agent.Done:
		m.status = m.talk.Status()
	}
}

func reason(text string) string {
	if text == "" {
		return ""
	}
	return ": " + Plain(text)
}

// printEvent prints the pending text of the response, then a line about an
// event.
func (m *model) printEvent(l line) {
	m.printAnswer(m.turn.stream.takeRest())
	m.printGrouped(l)
}

// printGrouped prints a line directly below other event lines, without a blank
// line.
func (m *model) printGrouped(l line) {
	if m.turn.grouped {
		m.printBelow(l)
		return
	}
	m.printBlock(l.wrap(m.textWidth(), line{{"  ", normal}}))
	m.turn.grouped = true
}

// printResult prints a completed call on one line. It ignores calls that load a
// skill, because these have their own event.
func (m *model) printResult(e agent.Event) {
	m.printAnswer(m.turn.stream.takeRest())
	c := m.calls.event(e, m.now())
	if c == nil {
		return
	}
	said := m.turn.skill
	m.turn.skill = ""
	if name := baseName(c.Name); said != "" && !c.failed && (name == toolname.LoadSkill || name == toolname.UnloadSkill) {
		return
	}
	m.printGrouped(c.summaryLine(m.textWidth(), m.now()))
}

// printDetails prints the model's thinking and the last calls in full.
func (m *model) printDetails() {
	if strings.TrimSpace(m.thinking) != "" {
		m.printBlock(append([]line{{{"Thinking", bold}}}, wrapAll(textLines(strings.TrimSpace(m.thinking), faint), m.textWidth())...))
	}
	last := m.calls[max(len(m.calls)-maxCallsShown, 0):]
	if len(last) == 0 && m.thinking == "" {
		m.printBlock([]line{{{"No tool calls yet.", faint}}})
	}
	for _, c := range last {
		m.printBlock(wrapAll(c.detailLines(m.textWidth(), m.now()), m.textWidth()))
	}
}
