package session

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/printable"
)

// Tools connects the tools of skills: MCP servers and providers.
// Implementations are safe for concurrent use. Each session has its own Tools,
// so a release in one session does not affect others.
type Tools interface {
	// Connect starts and connects the servers of the skills, if that has not
	// been done. It returns the available tools and the problems of others. It
	// limits its own duration.
	Connect(ctx context.Context, skills []ID) ([]Tool, []string)
	// Release ends this session's use of the servers of the skills. It does not
	// wait. It ignores skills without servers.
	Release(skills []ID)
}

// Server states that a model sees, as in package upstream.
const (
	ServerDegraded = "DEGRADED" // does not respond at the moment
	ServerDead     = "DEAD"     // failed permanently
)

// Tool is a tool as described to a model.
type Tool struct {
	Name          string          `json:"name"` // name for calls
	Title         string          `json:"title,omitempty"`
	Description   string          `json:"description"`
	InputSchema   json.RawMessage `json:"inputSchema,omitempty"`
	Server        string          `json:"server"`
	Skill         ID              `json:"skill"` // provides the tool, or names its server
	State         string          `json:"state"` // state of the server
	NeedsApproval bool            `json:"requires_approval"`
}

// Tools returns the tools of the active skills, in load order, and the problems
// of others. It connects servers that are not connected: a session that is
// opened again has its tools without loading skills a second time.
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
	s.releaseTools(s.inactiveIDs(wanted)) // skills unloaded in the meantime
	return found, problems
}

// providedTools are the tools that the skills of one load provide.
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
	return providedTools{found, problems}
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

// without returns the tools of a skill whose names are not among known.
func (b providedTools) without(id ID, known []string) providedTools {
	var out providedTools
	for _, t := range b.tools {
		if t.Skill == id && !slices.Contains(known, t.Name) {
			out.tools = append(out.tools, t)
		}
	}
	return out
}

// text describes the tools of a load to a model.
func (b providedTools) text() string {
	var out strings.Builder
	if len(b.tools) > 0 {
		schemas := schemasFit(b.tools)
		out.WriteString("Tools of this skill:\n")
		WriteTools(&out, b.tools, schemas)
		if !schemas {
			out.WriteString("Ask for the arguments of those that you need.\n")
		}
	}
	if len(b.problems) > 0 {
		out.WriteString("Problems:\n- " + strings.Join(b.problems, "\n- ") + "\n")
	}
	return out.String()
}

// SchemaBytes is the size limit of schemas in an answer that did not request
// them, about 2,000 tokens.
const SchemaBytes = 8000

func schemasFit(all []Tool) bool {
	size := 0
	for _, t := range all {
		size += len(t.InputSchema)
	}
	return size <= SchemaBytes
}

// WriteTools writes the tools for a model, one per line. If schemas is set,
// another line has the schema of the arguments.
func WriteTools(b *strings.Builder, all []Tool, schemas bool) {
	for _, t := range all {
		fmt.Fprintf(b, "- %s: %s", t.Name, printable.OneLine(t.Description))
		if t.State == ServerDegraded || t.State == ServerDead {
			fmt.Fprintf(b, " [server %s is %s]", t.Server, t.State)
		}
		if t.NeedsApproval {
			b.WriteString(" [needs approval]")
		}
		b.WriteByte('\n')
		if schemas && len(t.InputSchema) > 0 {
			fmt.Fprintf(b, "  arguments: %s\n", t.InputSchema)
		}
	}
}

// releaseTools releases the tools of skills.
func (s *Session) releaseTools(gone []ID) {
	if s.tools != nil && len(gone) > 0 {
		s.tools.Release(gone)
	}
}

// inactive returns the IDs of the skills that are not active. s.mu is held.
func (s *Session) inactive(all []*Skill) []ID {
	var out []ID
	for _, m := range all {
		out = append(out, m.ID)
	}
	return s.inactiveIDs(out)
}

// inactiveIDs returns the IDs that are not active. s.mu is held.
func (s *Session) inactiveIDs(all []ID) []ID {
	return slices.DeleteFunc(slices.Clone(all), func(id ID) bool {
		_, ok := s.state.Find(id)
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
