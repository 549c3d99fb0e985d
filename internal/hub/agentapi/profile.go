package agentapi

import (
	"context"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/untrusted"
)

// profileJSON is a Ghost, Bot or Team as resolved for a user. It contains neither
// instructions nor values of variables.
type profileJSON struct {
	Kind        string               `json:"kind"`
	Namespace   string               `json:"namespace"`
	Name        string               `json:"name"`
	ID          string               `json:"id"`
	Description string               `json:"description,omitempty"`
	Enabled     bool                 `json:"enabled" doc:"Whether skills are enabled in its namespace"`
	Skills      []agents.SkillChoice `json:"skills" nullable:"false" doc:"Empty for all that you can access"`
	Servers     []serverJSON         `json:"servers" nullable:"false"`
	Model       *profileModelJSON    `json:"model,omitempty" doc:"Absent for the hub's own"`
	Members     []agents.TeamMember  `json:"members" nullable:"false" doc:"Members of a Team, without its leader"`
	Expose      string               `json:"expose,omitempty" enum:"meta,direct" doc:"How MCP clients see its tools; absent for the default"`
	Problems    []string             `json:"problems" nullable:"false" doc:"What is missing, and why"`
	Revision    int64                `json:"revision"`
}

type profileModelJSON struct {
	Name   string `json:"name"`
	Vendor string `json:"vendor"`
	Model  string `json:"model,omitempty"`
	Key    string `json:"key" enum:"none,granted,missing" doc:"Whether it needs a key, and whether you have one"`
}

func (h *Handlers) getProfile(ctx context.Context, in *ResourcePath) (*api.Body[profileJSON], error) {
	if in.Kind != agents.GhostKind && in.Kind != agents.BotKind && in.Kind != agents.TeamKind {
		return nil, api.NewProblem(422, "a %s cannot hold conversations", "name a Ghost, a Bot or a Team", in.Kind)
	}
	p := account.FromContext(ctx)
	profile, err := h.Agents.Profile(ctx, p, in.Kind, in.Namespace, in.Name)
	if err != nil {
		return nil, err
	}
	out := newProfileJSON(profile)
	for i, s := range profile.Servers {
		v, err := h.Agents.Secrets().ServerVariables(ctx, p, s, "")
		if err != nil {
			return nil, err
		}
		out.Servers[i] = newServerJSON(s)
		if _, unset := s.Resolve(v); len(unset) > 0 && out.Servers[i].State == serverReady {
			out.Servers[i].State, out.Servers[i].Missing = serverNotConfigured, unsetNames(unset)
		}
	}
	if m := profile.Model; m != nil {
		out.Model = &profileModelJSON{Name: m.Name, Vendor: m.Vendor, Model: m.Model.Model, Key: h.keyState(ctx, p, m)}
	}
	return api.BodyOf(out, nil)
}

func newProfileJSON(p *agents.Profile) profileJSON {
	out := profileJSON{
		Kind: p.Kind, Namespace: p.Namespace, Name: p.Name, ID: p.ID, Description: untrusted.New(p.Description).ForPage(), Enabled: !p.Filter.Disabled,
		Skills: api.NonNil(p.Skills), Servers: make([]serverJSON, len(p.Servers)), Members: cleanMembers(p.Members),
		Expose: p.Expose, Problems: api.NonNil(p.Problems), Revision: p.Revision,
	}
	if out.Namespace == "" {
		out.Namespace = api.OwnNamespace
	}
	return out
}

// cleanMembers returns a copy of members whose strings have no disallowed
// characters.
func cleanMembers(members []agents.TeamMember) []agents.TeamMember {
	out := make([]agents.TeamMember, len(members))
	for i, m := range members {
		m.Name, m.Role, m.Description = untrusted.New(m.Name).ForPage(), untrusted.New(m.Role).ForPage(), untrusted.New(m.Description).ForPage()
		out[i] = m
	}
	return out
}

// keyState returns the state of the key that a model needs: granted, missing,
// or none if the model needs no key.
func (h *Handlers) keyState(ctx context.Context, p account.Principal, m *agents.ModelChoice) string {
	if m.Key == "" {
		return "none"
	}
	if _, err := h.Agents.Secrets().ModelKey(ctx, p, m); err != nil {
		return "missing"
	}
	return "granted"
}
