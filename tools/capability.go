package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/tokencount"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/skill"
)

// Capability describes a skill or a tool to a planner. Its JSON form is stable.
type Capability struct {
	ID           string          `json:"id"`   // skill.NAME or mcp.SERVER.TOOL
	Kind         string          `json:"kind"` // "skill" or "mcp"
	Name         string          `json:"name"` // name to load or call it by
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"input_schema"`  // JSON Schema; an empty object for a skill
	OutputSchema json.RawMessage `json:"output_schema"` // JSON Schema; {} if unknown
	// SafetyLevel is the safety level of the tool. For a skill, it is SAFE if
	// the skill runs no code, MEDIUM if its code is approved and runs in the
	// sandbox, and UNKNOWN otherwise.
	SafetyLevel policy.Level `json:"safety_level"`
	Permission  string       `json:"permission"` // name in rules and the audit log
	// WhenToUse is the skill's own text about when to use it, or "".
	WhenToUse string `json:"when_to_use"`
	// RequiresApproval reports whether the user must approve the tool call or
	// the skill's code. A skill's instructions can be loaded without approval.
	RequiresApproval bool `json:"requires_approval"`
	// CostHint is the cost of loading a skill, such as "1200 tokens". Callers with
	// prices may add them.
	CostHint string `json:"cost_hint,omitempty"`
	// LatencyHint is the time of the server's last response, such as "12.5ms".
	// Callers with measurements may replace it.
	LatencyHint string `json:"latency_hint,omitempty"`
	// Tokens is the estimated size of a skill's instructions, and Key its
	// [catalog.Entry.Key].
	Tokens int    `json:"-"`
	Key    string `json:"-"`
	// ReadOnly is set if the definition of a tool declares that it only reads.
	ReadOnly bool `json:"-"`
}

// Capabilities lists the skills and then the tools for a planner, and whether
// they need approval for the principal, session and rules of c. Policy decides
// again when a plan is executed. Capabilities lists only tools that are known
// without connecting. It omits tools that the rules deny and skills that only
// users may load. problems explains what is missing, such as the tools of servers
// that were never connected. Capabilities returns an error only if ctx is done.
// c must not be nil.
func (s *Set) Capabilities(ctx context.Context, c *Call) (all []Capability, problems []string, err error) {
	for _, e := range s.rt.Catalog().Snapshot().ForModel() {
		if ctx.Err() != nil {
			return nil, nil, context.Cause(ctx)
		}
		k, err := s.skillCapability(ctx, e)
		if err != nil {
			problems = append(problems, err.Error())
			continue
		}
		all = append(all, *k)
	}
	s.OpenPermittedServers(ctx)
	for _, sv := range s.allServers() {
		if ctx.Err() != nil {
			return nil, nil, context.Cause(ctx)
		}
		if p := s.missingToolsReason(sv); p != "" {
			problems = append(problems, p)
		}
		known := s.knownTools(sv)
		s.ResolveApprovals(ctx, known, c)
		for _, t := range known {
			all = append(all, s.toolCapability(&t))
		}
	}
	return all, problems, nil
}

// missingToolsReason returns the reason why tools of a server are missing, or ""
// if none are missing.
func (s *Set) missingToolsReason(sv *server) string {
	switch {
	case sv.Server == nil:
		return sv.notConfigured()
	case sv.LastListing() == nil:
		if wrong := sv.Status().Error; wrong != "" {
			return "MCP server " + sv.name + " could not be connected, its tools are unknown: " + wrong
		}
		return "MCP server " + sv.name + " was never connected, its tools are unknown"
	}
	return joinProblems(s.screenListing(sv, sv.LastListing()).problem)
}

func (s *Set) skillCapability(ctx context.Context, e *catalog.Entry) (*Capability, error) {
	sk, _, err := s.rt.Catalog().Read(ctx, e)
	if err != nil {
		return nil, err
	}
	files, err := s.rt.Catalog().ListFiles(ctx, e)
	if err != nil {
		return nil, err
	}
	level, asks := policy.Safe, false
	if slices.ContainsFunc(files, isScript) || s.startsServers(ctx, e, sk) {
		level = policy.Medium
		if !s.access.isPermitted(ctx, e) {
			level, asks = policy.Unknown, true
		}
	}
	id := "skill." + e.Name
	k := Capability{ID: id, Kind: "skill", Name: e.Name, Key: e.Key(), Tokens: tokencount.Estimate(sk.Instructions), Description: e.Description, InputSchema: noInput, OutputSchema: anything,
		SafetyLevel: level, Permission: id, WhenToUse: sk.WhenToUse, RequiresApproval: asks}
	k.CostHint = fmt.Sprintf("%d tokens", k.Tokens)
	return &k, nil
}

// startsServers reports whether a skill has servers or tools that need
// permission. Servers of the user and of the embedding program need none.
func (s *Set) startsServers(ctx context.Context, e *catalog.Entry, sk *skill.Skill) bool {
	if !e.ProvidesTools {
		return false
	}
	own, loans, _ := s.borrowTools(ctx, e, sk)
	return needsPermission(own, loans)
}

func isScript(f skill.File) bool { return f.Script }

// Default schemas for tools and skills that declare none.
var (
	noInput  = json.RawMessage(`{"type":"object","properties":{}}`)
	anything = json.RawMessage(`{}`)
)

func (s *Set) toolCapability(t *Tool) Capability {
	d, call := t.Definition, s.policyCall(t, nil)
	k := Capability{ID: call.Permission(), Kind: "mcp", Name: t.Name, Description: cmp.Or(d.Description, d.Title, d.Name),
		InputSchema: schemaOr(d.InputSchema, noInput), OutputSchema: schemaOr(d.OutputSchema, anything), SafetyLevel: call.Safety, Permission: call.Permission(),
		RequiresApproval: t.NeedsApproval, ReadOnly: t.declaresReadOnly()}
	if took := t.server.Status().Latency; took > 0 {
		k.LatencyHint = took.Round(time.Millisecond / 10).String()
	}
	return k
}

// schemaOr returns a server's schema as JSON, or fallback if the server
// declares no schema.
func schemaOr(declared any, fallback json.RawMessage) json.RawMessage {
	b, err := json.Marshal(declared)
	if err != nil || string(b) == "null" {
		return fallback
	}
	return b
}
