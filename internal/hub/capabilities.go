package hub

import (
	"context"
	"encoding/json"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/tools"
)

// planningJSON is what a planner is told: its form is that of [tools.Planning].
type planningJSON struct {
	Skills   []string  `json:"available_skills" nullable:"false" doc:"Names, in order"`
	Tools    []string  `json:"available_mcp_tools" nullable:"false" doc:"Names by which they are called"`
	Hints    hintsJSON `json:"planning_hints"`
	Problems []string  `json:"problems" nullable:"false" doc:"What is missing, and why"`
}

type hintsJSON struct {
	Capabilities []capabilityJSON `json:"capabilities" nullable:"false"`
}

type capabilityJSON struct {
	ID               string          `json:"id" doc:"skill.NAME or mcp.SERVER.TOOL"`
	Kind             string          `json:"kind" enum:"skill,mcp"`
	Name             string          `json:"name" doc:"By which it is loaded or called"`
	Description      string          `json:"description"`
	InputSchema      json.RawMessage `json:"input_schema"`
	OutputSchema     json.RawMessage `json:"output_schema"`
	SafetyLevel      string          `json:"safety_level" enum:"UNKNOWN,SAFE,LOW,MEDIUM,HIGH,CRITICAL"`
	Permission       string          `json:"permission" doc:"By which rules and the audit log know it"`
	WhenToUse        string          `json:"when_to_use"`
	RequiresApproval bool            `json:"requires_approval" doc:"Whether a person has to agree first: to a call, or to what a skill would run"`
	CostHint         string          `json:"cost_hint,omitempty"`
	LatencyHint      string          `json:"latency_hint,omitempty"`
}

func capabilityOf(c tools.Capability) capabilityJSON {
	return capabilityJSON{ID: c.ID, Kind: c.Kind, Name: c.Name, Description: c.Description, InputSchema: c.InputSchema, OutputSchema: c.OutputSchema,
		SafetyLevel: c.SafetyLevel.String(), Permission: c.Permission, WhenToUse: c.WhenToUse, RequiresApproval: c.RequiresApproval,
		CostHint: c.CostHint, LatencyHint: c.LatencyHint}
}

// Agent names what conversations are held with, in a query; without a kind it is all that
// somebody reaches.
type Agent struct {
	Kind      string `query:"kind" enum:"Ghost,Bot,Team" doc:"Without it, it is all that you reach"`
	Namespace string `query:"namespace" maxLength:"128" doc:"Without it, the nearest that has one of the name"`
	Name      string `query:"name" maxLength:"512"`
}

func (a Agent) place() (place, error) {
	if (a.Kind == "") != (a.Name == "") || a.Kind == "" && a.Namespace != "" {
		return place{}, &Problem{Status: 422, Code: "invalid", Detail: "kind and name go together", Next: "give both, or none"}
	}
	return place{kind: a.Kind, namespace: a.Namespace, name: a.Name}, nil
}

func (h *Hub) capabilitiesAPI(api huma.API) {
	add(h, api, operation("list-capabilities", "GET", "/capabilities", "What an agent of yours could do, how safe that is, and what you would be asked about. It is decided again when it is done"), h.capabilities)
}

func (h *Hub) capabilities(ctx context.Context, in *struct {
	Agent
	Connect bool `query:"connect" doc:"Connect MCP servers whose tools are not known, and ask them"`
}) (*body[planningJSON], error) {
	at, err := in.place()
	if err != nil {
		return nil, err
	}
	p := account.FromContext(ctx)
	e, err := h.endpoints.enter(ctx, p.Limited(mcpScopes|account.ScopeChat), at)
	if err != nil {
		return nil, err
	}
	defer h.endpoints.leave(e)
	set := e.kit.Tools
	if in.Connect {
		set.Recall(ctx)
		set.Connect(ctx, "") // what is wrong is among the problems
	}
	plan, err := set.Capabilities(ctx, &tools.Call{Principal: personOf(p.User)})
	if err != nil {
		return nil, err
	}
	out := planningJSON{Skills: plan.Skills, Tools: plan.Tools, Hints: hintsJSON{[]capabilityJSON{}}, Problems: append(plan.Problems, e.kit.Problems...)}
	for _, c := range plan.Hints.Capabilities {
		out.Hints.Capabilities = append(out.Hints.Capabilities, capabilityOf(c))
	}
	return answered(out, nil)
}
