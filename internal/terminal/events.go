package terminal

import (
	"strings"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/internal/toolname"
)

// maxThought bounds what is kept of what a model thinks, in bytes.
const maxThought = 64 << 10

// person prints what the person said.
func (m *model) person(text string) {
	var out []line
	for _, l := range textLines(text, bold) {
		out = append(out, behind(l.wrap(m.textWidth()-2, nil), line{{"  ", normal}}, line{{"  ", normal}})...)
	}
	if len(out) > 0 {
		out[0][0] = span{"> ", cyan}
	}
	m.say(out)
}

// answerText prints blocks of an answer that are whole.
func (m *model) answerText(text string) {
	if strings.TrimSpace(text) != "" {
		m.say(markdown(text, m.textWidth()))
	}
}

// event shows what happens in a turn.
func (m *model) event(e agent.Event) {
	t := m.turn
	if t == nil {
		return
	}
	switch e.Type {
	case agent.Text:
		m.answerText(t.stream.add(Safe(e.Text)))
	case agent.Thinking:
		if len(m.thought) < maxThought {
			m.thought += e.Text
		}
	case agent.ToolCall:
		m.answerText(t.stream.rest())
		m.calls.event(e, m.now())
	case agent.ToolProgress:
		m.calls.event(e, m.now())
	case agent.ToolResult:
		m.result(e)
	case agent.SkillLoaded:
		t.skill = e.Skill
		m.happened(line{{"◆ ", purple}, {"skill " + Plain(e.Skill) + " is loaded", normal}})
	case agent.SkillUnloaded:
		t.skill = e.Skill
		m.happened(line{{"◇ ", purple}, {"skill " + Plain(e.Skill) + " is not loaded any more", normal}, {reason(e.Reason), faint}})
	case agent.Notice:
		m.happened(line{{"! ", purple}, {Plain(e.Text), normal}})
	case agent.Compacted:
		m.happened(line{{"◇ ", purple}, {"what was said before is told to the model in short from here on", normal}})
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

// happened prints a line about what happens, behind the text before it.
func (m *model) happened(l line) {
	m.answerText(m.turn.stream.rest())
	m.beside(l)
}

// beside prints a line in a group of such lines.
func (m *model) beside(l line) {
	if m.turn.grouped {
		m.note(l)
		return
	}
	m.say(l.wrap(m.textWidth(), line{{"  ", normal}}))
	m.turn.grouped = true
}

// result folds a call that is over to a line. Of loads it was said already.
func (m *model) result(e agent.Event) {
	m.answerText(m.turn.stream.rest())
	c := m.calls.event(e, m.now())
	if c == nil {
		return
	}
	said := m.turn.skill
	m.turn.skill = ""
	if name := bare(c.Name); said != "" && !c.failed && (name == toolname.LoadSkill || name == toolname.UnloadSkill) {
		return
	}
	m.beside(c.folded(m.textWidth(), m.now()))
}

// details prints the last calls unfolded, and what was thought.
func (m *model) details() {
	if strings.TrimSpace(m.thought) != "" {
		m.say(append([]line{{{"Thinking", bold}}}, wrapAll(textLines(strings.TrimSpace(m.thought), faint), m.textWidth())...))
	}
	last := m.calls[max(len(m.calls)-maxCallsShown, 0):]
	if len(last) == 0 && m.thought == "" {
		m.say([]line{{{"No tool was called so far.", faint}}})
	}
	for _, c := range last {
		m.say(wrapAll(c.unfolded(m.textWidth(), m.now()), m.textWidth()))
	}
}
