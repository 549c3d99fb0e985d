package session

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/skilltext"
	"github.com/loadout-dev/loadout/internal/untrusted"
)

// Tools connects the tools of skills: MCP servers and providers.
// Implementations must be safe for concurrent use. Each session has its own
// Tools, so that a release in one session does not affect others.
//
// An implementation may also have a method DescribeSkillAlternatives(ctx
// context.Context, ref string, err error) string. It returns a text for the model
// that lists what may replace a skill that the model could not load because of
// err, or "".
type Tools interface {
	// Connect starts the skills' servers and connects to them, unless they are
	// already connected. It returns the available tools, and messages for the
	// model about problems with the others. It has its own timeout.
	Connect(ctx context.Context, skills []ID) ([]Tool, []string)
	// Release ends this session's use of the skills' servers. It must not
	// block. It ignores skills without servers and skills already released.
	Release(skills []ID)
}

// Tool describes a tool to a model. Title, Description and InputSchema are those
// of the MCP tool.
type Tool struct {
	Name          string          `json:"name"` // name for calls
	Title         string          `json:"title,omitempty"`
	Description   string          `json:"description"`
	InputSchema   json.RawMessage `json:"inputSchema,omitempty"` // a JSON Schema
	Server        string          `json:"server"`                // server name
	Skill         ID              `json:"skill"`                 // skill that provides the tool or references its server
	State         string          `json:"state"`                 // server state
	NeedsApproval bool            `json:"requires_approval"`
}

// Tools returns the tools of the active skills, in load order, and problems
// with missing tools. It connects to servers that are not connected, so that a
// reopened session has its tools without loading skills again. Without
// [Options.Tools] or active skills, it returns nothing.
func (s *Session) Tools(ctx context.Context) ([]Tool, []string) {
	if s.tools == nil {
		return nil, nil
	}
	wanted := activeIDs(s.Active())
	if len(wanted) == 0 {
		return nil, nil
	}
	found, problems := s.tools.Connect(ctx, wanted)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		s.releaseTools(wanted)
	}
	s.releaseTools(s.inactiveIDs(wanted)) // skills may have been unloaded in the meantime
	return found, cleanProblems(problems)
}

// cleanProblems returns problems with tools in a form that is safe for the
// model, because they contain names chosen by servers.
func cleanProblems(problems []string) []string {
	out := slices.Clone(problems)
	for i, p := range out {
		out[i] = untrusted.New(p).ForModel()
	}
	return out
}

// providedTools holds the tools provided by the skills that are being loaded.
type providedTools struct {
	tools    []Tool
	problems []string
}

func (s *Session) connectTools(ctx context.Context, all []*Skill) providedTools {
	if s.tools == nil || len(all) == 0 || ctx.Err() != nil {
		return providedTools{}
	}
	var wanted []ID
	for _, m := range all {
		wanted = append(wanted, m.ID)
	}
	found, problems := s.tools.Connect(ctx, wanted)
	return providedTools{found, cleanProblems(problems)}
}

func (b providedTools) names(id ID) []string {
	var out []string
	for _, t := range b.tools {
		if t.Skill == id {
			out = append(out, t.Name)
		}
	}
	return out
}

// without returns the tools that the skill with the given ID provides, except
// those named in known.
func (b providedTools) without(id ID, known []string) providedTools {
	var out providedTools
	for _, t := range b.tools {
		if t.Skill == id && !slices.Contains(known, t.Name) {
			out.tools = append(out.tools, t)
		}
	}
	return out
}

// text returns a description of the tools for a model.
func (b providedTools) text() string {
	var out strings.Builder
	if len(b.tools) > 0 {
		described, size := make([]skilltext.Tool, len(b.tools)), 0
		for i, t := range b.tools {
			described[i] = skilltext.Tool{Name: t.Name, Description: t.Description, InputSchema: t.InputSchema, Server: t.Server, State: t.State, NeedsApproval: t.NeedsApproval}
			size += len(t.InputSchema)
		}
		schemas := size <= skilltext.MaxSchemaBytes
		out.WriteString("Tools of this skill:\n")
		skilltext.WriteTools(&out, described, schemas)
		if !schemas {
			out.WriteString("Ask for the arguments of those that you need.\n")
		}
	}
	if len(b.problems) > 0 {
		out.WriteString("Problems:\n- " + strings.Join(b.problems, "\n- ") + "\n")
	}
	return out.String()
}

// releaseTools releases the tools of the given skills.
func (s *Session) releaseTools(gone []ID) {
	if s.tools != nil && len(gone) > 0 {
		s.tools.Release(gone)
	}
}

// inactive returns the IDs of the given skills that are not active. s.mu must
// be held.
func (s *Session) inactive(all []*Skill) []ID {
	var out []ID
	for _, m := range all {
		out = append(out, m.ID)
	}
	return s.inactiveIDs(out)
}

// inactiveIDs returns the given IDs except those of active skills. s.mu must be
// held.
func (s *Session) inactiveIDs(ids []ID) []ID {
	return slices.DeleteFunc(slices.Clone(ids), func(id ID) bool {
		_, ok := s.state.find(id)
		return ok
	})
}

func activeIDs(active []ActiveSkill) []ID {
	var out []ID
	for _, a := range active {
		out = append(out, a.Skill)
	}
	return out
}
