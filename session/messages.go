package session

import (
	"fmt"
	"strings"
)

// Activation is a load as messages that a program puts into its conversation, for
// programs that follow this protocol instead of giving the model a tool's result. Its
// JSON form is that of the protocol.
type Activation struct {
	SkillName string `json:"skill_name"`
	Success   bool   `json:"success"`
	Error     string `json:"error,omitempty"` // why it is no success
	// Messages are to be appended in this order, after the answer that asked for the
	// skill and its tool's result.
	Messages []Injected `json:"messages,omitempty"`
	// ContextModifier is what changes while the skill is in force; nil is nothing.
	ContextModifier *ContextModifier `json:"context_modifier,omitempty"`
}

// Injected is a message that a program puts into its conversation for a skill.
type Injected struct {
	Role string `json:"role"` // always "user"
	// Content is a string, or a [Permissions]. Permissions are for the program, and not
	// sent to a model.
	Content any `json:"content"`
	// IsMeta says that the message is for the model, and not shown to the person.
	IsMeta bool `json:"isMeta,omitempty"`
}

// Permissions is the content of a message that says what a skill may do unasked.
type Permissions struct {
	Type         string   `json:"type"` // always "command_permissions"
	AllowedTools []string `json:"allowed_tools"`
	Model        *string  `json:"model"` // nil where it wants none
}

// ContextModifier is what a skill changes while it is in force. What is not set is not
// part of its JSON form.
type ContextModifier struct {
	AllowedTools           []string `json:"allowed_tools,omitempty"` // calls that are made unasked
	Model                  string   `json:"model,omitempty"`         // that answers
	DisableModelInvocation bool     `json:"disable_model_invocation,omitempty"`
}

// NewActivation is a skill as messages: one that a person sees, one with its
// instructions that only the model does, and one with its permissions where it has
// allowed tools. The instructions are [Body] of the skill, or more.
func NewActivation(m *Material, instructions string) *Activation {
	title := m.Title
	if title == "" {
		title = m.ID.Name
	}
	a := &Activation{SkillName: m.ID.Name, Success: true, ContextModifier: modifier(m), Messages: []Injected{
		{Role: "user", Content: fmt.Sprintf("<command-message>The \"%s\" skill is loading</command-message>\n<command-name>%s</command-name>", title, m.ID.Name)},
		{Role: "user", Content: "# " + title + " Skill\n\n" + instructions, IsMeta: true},
	}}
	if len(m.AllowedTools) > 0 {
		p := Permissions{Type: "command_permissions", AllowedTools: m.AllowedTools}
		if m.Model != "" {
			p.Model = &m.Model
		}
		a.Messages = append(a.Messages, Injected{Role: "user", Content: p})
	}
	return a
}

func modifier(m *Material) *ContextModifier {
	if len(m.AllowedTools) == 0 && m.Model == "" && !m.Hidden {
		return nil
	}
	return &ContextModifier{AllowedTools: m.AllowedTools, Model: m.Model, DisableModelInvocation: m.Hidden}
}

// FailedActivation is what a program is told of a skill that cannot be loaded.
func FailedActivation(ref, reason string) *Activation {
	return &Activation{SkillName: ref, Error: reason}
}

// Activation is the result of a load as messages; ref is what was to be loaded. Of what
// the conversation holds already there is one, that says so. The result is not told in
// another way then.
func (r *Result) Activation(ref string) *Activation {
	switch r.State {
	case StateFailed:
		return FailedActivation(ref, r.Text)
	case StateAlready:
		return &Activation{SkillName: r.Material.ID.Name, Success: true, ContextModifier: modifier(r.Material),
			Messages: []Injected{{Role: "user", Content: r.Text, IsMeta: true}}}
	}
	// What it needs is told before it, and tools and problems after it.
	before, after, whole := strings.Cut(r.Text, Render(r.Material))
	if !whole {
		return NewActivation(r.Material, r.Text)
	}
	parts := []string{Body(r.Material)}
	if before != "" {
		parts = []string{strings.TrimRight(before, "\n"), parts[0]}
	}
	for _, rest := range []string{Appendix(r.Material), strings.TrimLeft(after, "\n")} {
		if rest != "" {
			parts = append(parts, strings.TrimRight(rest, "\n"))
		}
	}
	return NewActivation(r.Material, strings.Join(parts, "\n\n"))
}
