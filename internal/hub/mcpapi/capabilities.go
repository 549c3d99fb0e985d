package mcpapi

import (
	"context"
	"encoding/json"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/assembly"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/tools"
)

// planningJSON describes capabilities for a planner. The command loadout
// capabilities prints the same JSON.
type planningJSON struct {
	Skills   []string  `json:"available_skills" nullable:"false" doc:"Names, sorted"`
	Tools    []string  `json:"available_mcp_tools" nullable:"false" doc:"Names for calls"`
	Hints    hintsJSON `json:"planning_hints"`
	Problems []string  `json:"problems" nullable:"false" doc:"What is missing, and why"`
}

type hintsJSON struct {
	Capabilities []capabilityJSON `json:"capabilities" nullable:"false"`
}

type capabilityJSON struct {
	ID               string          `json:"id" doc:"skill.NAME or mcp.SERVER.TOOL"`
	Kind             string          `json:"kind" enum:"skill,mcp"`
	Name             string          `json:"name" doc:"Name for loading or calling"`
	Description      string          `json:"description"`
	InputSchema      json.RawMessage `json:"input_schema"`
	OutputSchema     json.RawMessage `json:"output_schema"`
	SafetyLevel      string          `json:"safety_level" enum:"UNKNOWN,SAFE,LOW,MEDIUM,HIGH,CRITICAL"`
	Permission       string          `json:"permission" doc:"Name in rules and the audit log"`
	WhenToUse        string          `json:"when_to_use"`
	RequiresApproval bool            `json:"requires_approval" doc:"Whether a user has to approve a call, or the code of a skill"`
	CostHint         string          `json:"cost_hint,omitempty"`
	LatencyHint      string          `json:"latency_hint,omitempty"`
}

func newCapabilityJSON(c tools.Capability) capabilityJSON {
	return capabilityJSON{ID: c.ID, Kind: c.Kind, Name: c.Name, Description: untrusted.New(c.Description).ForModel(), InputSchema: untrusted.CleanJSON(c.InputSchema), OutputSchema: untrusted.CleanJSON(c.OutputSchema),
		SafetyLevel: c.SafetyLevel.String(), Permission: c.Permission, WhenToUse: untrusted.New(c.WhenToUse).ForModel(), RequiresApproval: c.RequiresApproval,
		CostHint: c.CostHint, LatencyHint: untrusted.New(c.LatencyHint).ForModel()}
}

// Agent holds the query parameters that select an agent. Without a kind, they
// select everything that the user can access.
type Agent struct {
	Kind      string `query:"kind" enum:"Ghost,Bot,Team" doc:"Without it, everything that you can access"`
	Namespace string `query:"namespace" maxLength:"128" doc:"Without it, the nearest namespace with an agent of the name"`
	Name      string `query:"name" maxLength:"512"`
}

func (a Agent) position() (agentRef, error) {
	if (a.Kind == "") != (a.Name == "") || a.Kind == "" && a.Namespace != "" {
		return agentRef{}, &api.Problem{Status: 422, Code: "invalid", Detail: "kind and name must be given together", Next: "send both or neither"}
	}
	return agentRef{kind: a.Kind, namespace: a.Namespace, name: a.Name}, nil
}

func (h *Handlers) capabilitiesAPI() {
	api.Add(h.Server, api.Operation("list-capabilities", "GET", "/capabilities", "List what an agent of yours can do, with risk levels and required approvals. Permissions are checked again on use"), h.capabilities)
}

func (h *Handlers) capabilities(ctx context.Context, in *struct {
	Agent
	Connect bool `query:"connect" doc:"Connect to MCP servers whose tools are unknown"`
}) (*api.Body[planningJSON], error) {
	at, err := in.position()
	if err != nil {
		return nil, err
	}
	p := account.FromContext(ctx)
	e, err := h.endpoints.acquire(ctx, p.LimitedTo(agentScopes), at)
	if err != nil {
		return nil, err
	}
	defer h.endpoints.release(e)
	set := e.setup.Tools
	if in.Connect {
		set.OpenPermittedServers(ctx)
		set.Connect(ctx, "") // failures are reported as problems
	}
	all, problems, err := set.Capabilities(ctx, &tools.Call{Principal: assembly.UserPrincipal(p.User)})
	if err != nil {
		return nil, err
	}
	if err := e.setup.AddLatencies(ctx, all); err != nil {
		return nil, err
	}
	out := planningJSON{Skills: []string{}, Tools: []string{}, Hints: hintsJSON{[]capabilityJSON{}}, Problems: append(append([]string{}, problems...), e.setup.Problems...)}
	for _, c := range all {
		if c.Kind == "skill" {
			out.Skills = append(out.Skills, c.Name)
			if at.kind == "" && h.PriceHint != nil { // an agent may have another model
				if price := h.PriceHint(ctx, c.Tokens); price != "" {
					c.CostHint += ", " + price
				}
			}
		} else {
			out.Tools = append(out.Tools, c.Name)
		}
		out.Hints.Capabilities = append(out.Hints.Capabilities, newCapabilityJSON(c))
	}
	return api.BodyOf(out, nil)
}
