package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/skill"
)

// Kinds of capabilities.
const (
	SkillCapability = "skill"
	ToolCapability  = "mcp"
)

// Capability is one thing that an agent could do, as a planner is told of it.
type Capability struct {
	ID           string          `json:"id"`   // skill.NAME or mcp.SERVER.TOOL
	Kind         string          `json:"kind"` // one of the kinds above
	Name         string          `json:"name"` // by which it is loaded or called
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"input_schema"`  // a JSON schema; of a skill that of nothing
	OutputSchema json.RawMessage `json:"output_schema"` // {} where none is stated
	// SafetyLevel of a skill is SAFE where it has nothing to run, MEDIUM where what it
	// runs was approved, in the sandbox, and UNKNOWN where not.
	SafetyLevel policy.Level `json:"safety_level"`
	Permission  string       `json:"permission"` // by which rules and the log know it
	// WhenToUse is what a skill says of that apart from its description, "" for nothing.
	WhenToUse string `json:"when_to_use"`
	// RequiresApproval says that a person has to agree first: to a call of the tool,
	// or to what the skill would run; its instructions load without.
	RequiresApproval bool   `json:"requires_approval"`
	CostHint         string `json:"cost_hint,omitempty"`    // tokens of the instructions
	LatencyHint      string `json:"latency_hint,omitempty"` // of the server's last answer
}

// Hints are what a planner is told before anything is done. What it plans is
// decided again when it is done.
type Hints struct {
	Capabilities []Capability `json:"capabilities"`
}

// Planning is all that there is for an agent: its form is stable.
type Planning struct {
	Skills []string `json:"available_skills"`    // names, in order
	Tools  []string `json:"available_mcp_tools"` // names by which they are called
	Hints  Hints    `json:"planning_hints"`
	// Problems are what is missing and why, as servers that were never connected.
	Problems []string `json:"problems"`
}

// Capabilities tells a planner what there is and whether a person would be asked,
// for who calls as c does: its principal, session and rules count. Tools are those
// that are known without connecting; what rules deny is not there, nor is a skill that
// is for people alone. It fails where ctx ends.
func (s *Set) Capabilities(ctx context.Context, c *Call) (*Planning, error) {
	out := &Planning{Skills: []string{}, Tools: []string{}, Hints: Hints{Capabilities: []Capability{}}, Problems: []string{}}
	for _, e := range s.opts.Skills.Catalog().Snapshot().Offered() {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		k, err := s.skillCapability(ctx, e)
		if err != nil {
			out.Problems = append(out.Problems, err.Error())
			continue
		}
		out.Skills = append(out.Skills, e.Name)
		out.Hints.Capabilities = append(out.Hints.Capabilities, *k)
	}
	s.Recall(ctx)
	for _, sv := range s.all() {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if p := s.lacks(sv); p != "" {
			out.Problems = append(out.Problems, p)
		}
		all := s.tools(sv)
		s.Plan(ctx, all, c)
		for _, t := range all {
			out.Tools = append(out.Tools, t.Name)
			out.Hints.Capabilities = append(out.Hints.Capabilities, s.toolCapability(&t))
		}
	}
	return out, nil
}

// lacks says which tools of a server are not there, and why; "" is none.
func (s *Set) lacks(sv *server) string {
	switch {
	case sv.Server == nil:
		return "MCP server " + sv.name + " is " + missing(sv.unset)
	case sv.Known() == nil:
		if wrong := sv.Status().Error; wrong != "" {
			return "MCP server " + sv.name + " could not be connected, so that its tools are not known: " + wrong
		}
		return "MCP server " + sv.name + " was never connected, so that its tools are not known"
	}
	return problems(s.screen(sv, sv.Known()).problem)
}

func (s *Set) skillCapability(ctx context.Context, e *catalog.Entry) (*Capability, error) {
	sk, _, err := s.opts.Skills.Catalog().Read(ctx, e)
	if err != nil {
		return nil, err
	}
	files, err := s.opts.Skills.Catalog().Files(ctx, e)
	if err != nil {
		return nil, err
	}
	level, asks := policy.Safe, false
	if slices.ContainsFunc(files, isScript) || s.starts(ctx, e, sk) {
		level = policy.Medium
		if s.opts.Permits == nil || !s.opts.Permits(ctx, e) {
			level, asks = policy.Unknown, true
		}
	}
	id := "skill." + e.Name
	k := Capability{ID: id, Kind: SkillCapability, Name: e.Name, Description: e.Description, InputSchema: noInput, OutputSchema: anything,
		SafetyLevel: level, Permission: id, WhenToUse: sk.WhenToUse, RequiresApproval: asks,
		CostHint: fmt.Sprintf("%d tokens", skill.Tokens(sk.Instructions))}
	return &k, nil
}

// starts reports whether a skill brings servers or tools that need leave, which those
// of the person and of the program do not.
func (s *Set) starts(ctx context.Context, e *catalog.Entry, sk *skill.Skill) bool {
	if !e.Brings {
		return false
	}
	own, loans, _ := s.borrow(ctx, e, sk)
	return needsLeave(own, loans)
}

// isScript reports whether a file is one that could be run.
func isScript(f skill.File) bool { return f.Script }

// Schemas of what says none.
var (
	noInput  = json.RawMessage(`{"type":"object","properties":{}}`)
	anything = json.RawMessage(`{}`)
)

func (s *Set) toolCapability(t *Tool) Capability {
	d, call := t.Definition, s.call(t, nil)
	k := Capability{ID: call.Permission(), Kind: ToolCapability, Name: t.Name, Description: cmp.Or(d.Description, d.Title, d.Name),
		InputSchema: schemaOr(d.InputSchema, noInput), OutputSchema: schemaOr(d.OutputSchema, anything), SafetyLevel: call.Safety, Permission: call.Permission(),
		RequiresApproval: t.NeedsPerson}
	if took := t.server.Status().Latency; took > 0 {
		k.LatencyHint = took.Round(time.Millisecond / 10).String()
	}
	return k
}

// schemaOr is a schema as a server states it, or another where it states none.
func schemaOr(stated any, none json.RawMessage) json.RawMessage {
	b, err := json.Marshal(stated)
	if err != nil || string(b) == "null" {
		return none
	}
	return b
}
