package session

import (
	"fmt"
	"strings"

	"github.com/loadout-dev/loadout/internal/untrusted"
)

// Activation is the result of loading a skill, in the form of messages. It is
// for programs that add messages to their conversation instead of returning a
// tool result. Its JSON form is compatible with ba-agent.
type Activation struct {
	SkillName string `json:"skill_name"`
	Success   bool   `json:"success"`
	Error     string `json:"error,omitempty"` // reason if Success is false
	// Messages follow, in this order, the model's message that requested the
	// skill and the tool result.
	Messages []InjectedMessage `json:"messages,omitempty"`
	// ContextModifier lists the changes while the skill is active, or is nil
	// if there are none.
	ContextModifier *ContextModifier `json:"context_modifier,omitempty"`
}

// InjectedMessage is a message that a program adds to its conversation when a
// skill is loaded.
type InjectedMessage struct {
	Role string `json:"role"` // always "user"
	// Content is sent to the model if it is a string. Otherwise it is for the
	// program and lists the skill's permissions, like [ContextModifier].
	Content any `json:"content"`
	// IsMeta marks a message that the model receives but the user does not
	// see.
	IsMeta bool `json:"isMeta,omitempty"`
}

// ContextModifier lists the changes that a skill makes while it is active. The
// JSON form omits fields that are not set.
type ContextModifier struct {
	AllowedTools           []string `json:"allowed_tools,omitempty"`            // tool calls that need no approval
	Model                  string   `json:"model,omitempty"`                    // model to use while the skill is active
	DisableModelInvocation bool     `json:"disable_model_invocation,omitempty"` // whether only the user may load the skill
}

// newActivation returns the activation of a skill with the given instructions.
// It has a message that the user sees and one with the instructions, which only
// the model receives. If the skill has allowed tools, it also has a message
// with its permissions.
func newActivation(m *Skill, instructions string) *Activation {
	title := m.Title
	if title == "" {
		title = m.ID.Name
	}
	title = untrusted.New(title).ForModel()
	name := untrusted.New(m.ID.Name).ForModel()
	a := &Activation{SkillName: m.ID.Name, Success: true, ContextModifier: modifier(m), Messages: []InjectedMessage{
		{Role: "user", Content: fmt.Sprintf("<command-message>The \"%s\" skill is loading</command-message>\n<command-name>%s</command-name>", title, name)},
		{Role: "user", Content: "# " + title + " Skill\n\n" + instructions, IsMeta: true},
	}}
	if len(m.AllowedTools) > 0 {
		p := commandPermissions{Type: "command_permissions", AllowedTools: m.AllowedTools}
		if m.Model != "" {
			p.Model = &m.Model
		}
		a.Messages = append(a.Messages, InjectedMessage{Role: "user", Content: p})
	}
	return a
}

func modifier(m *Skill) *ContextModifier {
	if len(m.AllowedTools) == 0 && m.Model == "" && !m.Hidden {
		return nil
	}
	return &ContextModifier{AllowedTools: m.AllowedTools, Model: m.Model, DisableModelInvocation: m.Hidden}
}

// commandPermissions is the content of a message that lists the tool calls that
// a skill may make without approval.
type commandPermissions struct {
	Type         string   `json:"type"` // always "command_permissions"
	AllowedTools []string `json:"allowed_tools"`
	Model        *string  `json:"model"` // nil if the skill requests no model
}

// Activation converts the result of a load to messages. ref is the reference
// that was passed to [Session.Load]. The result has a message that the user
// sees and one with the instructions, which only the model receives. If the
// skill has allowed tools, a third message has its permissions. If the skill
// was already loaded, a single message says so. If the load failed, there are
// no messages, and Error is r.Text. A program that sends these messages must
// not send r.Text too.
//
// r needs State and Text and, unless the load failed, Skill. Activation does not modify r.
func (r *LoadResult) Activation(ref string) *Activation {
	switch r.State {
	case StateFailed:
		return &Activation{SkillName: ref, Error: r.Text}
	case StateAlreadyLoaded:
		return &Activation{SkillName: r.Skill.ID.Name, Success: true, ContextModifier: modifier(r.Skill),
			Messages: []InjectedMessage{{Role: "user", Content: r.Text, IsMeta: true}}}
	}
	// Dependencies precede the skill; tools and problems follow it.
	before, after, found := strings.Cut(r.Text, Render(r.Skill))
	if !found {
		return newActivation(r.Skill, r.Text)
	}
	parts := []string{r.Skill.body()}
	if r.Skill.Warning != "" {
		parts[0] = r.Skill.Warning + "\n\n" + parts[0]
	}
	if before != "" {
		parts = []string{strings.TrimRight(before, "\n"), parts[0]}
	}
	for _, rest := range []string{r.Skill.appendix(), strings.TrimLeft(after, "\n")} {
		if rest != "" {
			parts = append(parts, strings.TrimRight(rest, "\n"))
		}
	}
	return newActivation(r.Skill, strings.Join(parts, "\n\n"))
}
