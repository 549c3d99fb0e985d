package session

import (
	"fmt"

	"github.com/loadout-dev/loadout/internal/skillname"
	"github.com/loadout-dev/loadout/internal/skilltext"
	"github.com/loadout-dev/loadout/internal/untrusted"
)

// Render returns the text of a loaded skill for a tool result: an introductory
// line, the instructions, the files and the problems. It does not number the
// instructions or wrap them in JSON. Placeholders for the skill's directory are
// replaced with m.Location, unless that is empty. The text begins with
// m.Warning, if there is one. Render does not modify m.
func Render(m *Skill) string {
	warning, advice, body, rest := m.Warning, ", but it has no instructions.", m.body(), m.appendix()
	if warning != "" {
		warning += "\n\n"
	}
	served := skillname.IsServed(m.ID.Name, m.ID.Origin)
	switch {
	case body == "":
	case served: // a server must not direct the agent
		advice = ". Use it where it helps with what the user asked for.\n\n"
	default:
		advice = ". Follow its instructions where they apply.\n\n"
	}
	if rest != "" {
		rest = "\n" + rest
	}
	if served {
		rest += fmt.Sprintf("\n[End of the skill %s]\n", untrusted.New(m.ID.Name))
	}
	intro := fmt.Sprintf("Skill %s (from %s) is loaded%s", untrusted.New(m.ID.Name), untrusted.New(m.ID.Origin), advice)
	return warning + intro + body + "\n" + rest // copies the instructions once
}

// body returns the instructions as sent to a model, or "" if there are none.
func (m *Skill) body() string { return skilltext.Body(m.Instructions, m.Location) }

// appendix returns the text that follows the instructions.
func (m *Skill) appendix() string { return skilltext.Appendix(m.Files, m.Location, m.Problems) }

// renderReloaded returns the text for a skill that is loaded again while its
// instructions are still in the conversation.
func renderReloaded(m *Skill) string {
	if skillname.IsServed(m.ID.Name, m.ID.Origin) {
		return fmt.Sprintf("Skill %s is loaded again and unchanged; its text is further up in this conversation.\n", untrusted.New(m.ID.Name))
	}
	return fmt.Sprintf("Skill %s is loaded again and unchanged; follow its instructions, which are further up in this conversation.\n", untrusted.New(m.ID.Name))
}
