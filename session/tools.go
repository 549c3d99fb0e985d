package session

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/skill"
)

// Tools brings the tools of skills: MCP servers and providers. It is safe for
// concurrent use; each session has one of its own, so that what one session
// releases stays with the others.
type Tools interface {
	// Bring starts and connects what the skills bring, where that is not done yet,
	// and returns the tools that can be called now, and what is wrong with others.
	// It bounds its own time.
	Bring(ctx context.Context, skills []ID) ([]Tool, []string)
	// Release says that this session does not need what the skills brought. It
	// does not wait. A skill of which nothing was brought is passed over.
	Release(skills []ID)
}

// States of servers that a model is told of, as upstream has them.
const (
	Degraded = "DEGRADED" // it does not answer now
	Dead     = "DEAD"     // it failed for good
)

// Tool is a tool as a model is told of it.
type Tool struct {
	Name        string          `json:"name"` // by which it is called
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema,omitempty"`
	Server      string          `json:"server"`
	Skill       ID              `json:"skill"` // that brings it, or names its server
	State       string          `json:"state"` // of its server
	NeedsPerson bool            `json:"requires_approval"`
}

// Tools are the tools of the skills in force, in the order of loading, and what is
// wrong with others. What is not connected is: a conversation that is opened again
// has its tools without loading a skill a second time.
func (s *Session) Tools(ctx context.Context) ([]Tool, []string) {
	if s.tools == nil {
		return nil, nil
	}
	wanted := ids(s.Active())
	if len(wanted) == 0 {
		return nil, nil
	}
	found, problems := s.tools.Bring(ctx, wanted)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		s.release(wanted)
	}
	s.release(s.without(wanted)) // what was unloaded meanwhile
	return found, problems
}

// brought is what the skills of one load brought.
type brought struct {
	tools    []Tool
	problems []string
}

func (s *Session) bring(ctx context.Context, all []*Material) brought {
	if s.tools == nil || len(all) == 0 || ctx.Err() != nil {
		return brought{}
	}
	var wanted []ID
	for _, m := range all {
		wanted = append(wanted, m.ID)
	}
	found, problems := s.tools.Bring(ctx, wanted)
	return brought{found, problems}
}

func (b brought) names(id ID) []string {
	var out []string
	for _, t := range b.tools {
		if t.Skill == id {
			out = append(out, t.Name)
		}
	}
	return out
}

// text is what a load says of the tools that came with it.
func (b brought) text() string {
	var out strings.Builder
	if len(b.tools) > 0 {
		schemas := few(b.tools)
		out.WriteString("Tools of this skill:\n")
		WriteTools(&out, b.tools, schemas)
		if !schemas {
			out.WriteString("Ask for the arguments of those that you need.\n")
		}
	}
	if len(b.problems) > 0 {
		out.WriteString("Not everything of it works:\n- " + strings.Join(b.problems, "\n- ") + "\n")
	}
	return out.String()
}

// SchemaBytes is how much of schemas fits an answer that was not asked for them:
// about 2,000 tokens.
const SchemaBytes = 8000

func few(all []Tool) bool {
	size := 0
	for _, t := range all {
		size += len(t.InputSchema)
	}
	return size <= SchemaBytes
}

// WriteTools tells a model of tools, one a line, with the schema of their
// arguments on another where schemas are wanted.
func WriteTools(b *strings.Builder, all []Tool, schemas bool) {
	for _, t := range all {
		fmt.Fprintf(b, "- %s: %s", t.Name, skill.OneLine(t.Description))
		if t.State == Degraded || t.State == Dead {
			fmt.Fprintf(b, " [server %s is %s]", t.Server, t.State)
		}
		if t.NeedsPerson {
			b.WriteString(" [a person is asked]")
		}
		b.WriteByte('\n')
		if schemas && len(t.InputSchema) > 0 {
			fmt.Fprintf(b, "  arguments: %s\n", t.InputSchema)
		}
	}
}

// release gives back what skills brought.
func (s *Session) release(gone []ID) {
	if s.tools != nil && len(gone) > 0 {
		s.tools.Release(gone)
	}
}

// notInForce are those of the skills that are not. s.mu is held.
func (s *Session) notInForce(all []*Material) []ID {
	var out []ID
	for _, m := range all {
		out = append(out, m.ID)
	}
	return s.without(out)
}

// without are those that are not in force. s.mu is held.
func (s *Session) without(all []ID) []ID {
	return slices.DeleteFunc(slices.Clone(all), func(id ID) bool {
		_, ok := s.state.Find(id)
		return ok
	})
}

func ids(active []Active) []ID {
	var out []ID
	for _, a := range active {
		out = append(out, a.Skill)
	}
	return out
}
