package hub

import (
	"context"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/hub/kinds"
)

// profileJSON is what a Ghost, Bot or Team consists of for somebody. It has no
// instructions and no value of a variable.
type profileJSON struct {
	Kind        string              `json:"kind"`
	Namespace   string              `json:"namespace"`
	Name        string              `json:"name"`
	ID          string              `json:"id"`
	Description string              `json:"description,omitempty"`
	Enabled     bool                `json:"enabled" doc:"Whether skills are switched on where it belongs"`
	Skills      []profileSkillJSON  `json:"skills" nullable:"false" doc:"None is all that you reach"`
	Servers     []serverJSON        `json:"servers" nullable:"false"`
	Model       *profileModelJSON   `json:"model,omitempty" doc:"Not there for the hub's own"`
	Members     []profileMemberJSON `json:"members" nullable:"false" doc:"Of a Team, besides its leader"`
	Expose      string              `json:"expose,omitempty" enum:"meta,direct" doc:"How its tools are shown over MCP; not there for the default"`
	Problems    []string            `json:"problems" nullable:"false" doc:"What is missing, and why"`
	Revision    int64               `json:"revision"`
}

type profileSkillJSON struct {
	Name      string `json:"name"`
	ID        string `json:"id,omitempty" doc:"Not there where there is none by now that you may use, or it comes with the hub"`
	Namespace string `json:"namespace,omitempty" doc:"Where it is at home: user:ID, group:ID or public"`
	Digest    string `json:"content_hash,omitempty" doc:"That it has to have"`
	Bundled   bool   `json:"bundled,omitempty" doc:"Whether it comes with the hub, and so has no id"`
	Preload   bool   `json:"preload" doc:"Whether it is in force from the start"`
}

type profileModelJSON struct {
	Name   string `json:"name"`
	Vendor string `json:"vendor"`
	Model  string `json:"model,omitempty"`
	Key    string `json:"key" enum:"none,granted,missing" doc:"Whether it needs a key, and you have one for it"`
}

type profileMemberJSON struct {
	Name        string `json:"name"`
	Role        string `json:"role,omitempty"`
	Description string `json:"description,omitempty"`
	Confirm     bool   `json:"requireConfirmation" doc:"Whether a person is asked before a task is handed to it"`
}

func (h *Hub) getProfile(ctx context.Context, in *ThingPath) (*body[profileJSON], error) {
	if in.Kind != kinds.GhostKind && in.Kind != kinds.BotKind && in.Kind != kinds.TeamKind {
		return nil, status(422, "no conversation is held with a %s", "ask for a Ghost, a Bot or a Team", in.Kind)
	}
	p := account.FromContext(ctx)
	profile, err := h.kinds.Profile(ctx, p, in.Kind, in.Namespace, in.Name)
	if err != nil {
		return nil, err
	}
	out := profileOf(profile)
	for i, s := range profile.Servers {
		v, err := h.kinds.Secrets().Variables(ctx, p, s)
		if err != nil {
			return nil, err
		}
		out.Servers[i] = serverOf(s)
		if _, unset := s.Resolve(v); len(unset) > 0 && out.Servers[i].State == serverReady {
			out.Servers[i].State, out.Servers[i].Missing = serverUnset, missing(unset)
		}
	}
	if m := profile.Model; m != nil {
		out.Model = &profileModelJSON{Name: m.Name, Vendor: m.Vendor, Model: m.Model.Model, Key: h.keyState(ctx, p, m)}
	}
	return answered(out, nil)
}

func profileOf(p *kinds.Profile) profileJSON {
	out := profileJSON{
		Kind: p.Kind, Namespace: p.Namespace, Name: p.Name, ID: p.ID, Description: p.Description, Enabled: !p.Filter.Disabled,
		Skills: make([]profileSkillJSON, len(p.Skills)), Servers: make([]serverJSON, len(p.Servers)), Members: make([]profileMemberJSON, len(p.Members)),
		Expose: p.Expose, Problems: filled(p.Problems), Revision: p.Revision,
	}
	if out.Namespace == "" {
		out.Namespace = ownNamespace
	}
	for i, s := range p.Skills {
		out.Skills[i] = profileSkillJSON{s.Name, s.ID, string(s.In), s.Digest, s.Bundled, s.Preload}
	}
	for i, m := range p.Members {
		out.Members[i] = profileMemberJSON(m)
	}
	return out
}

// keyState says whether a model has the key that it needs when somebody talks with it.
func (h *Hub) keyState(ctx context.Context, p account.Principal, m *kinds.ModelChoice) string {
	if m.Key == "" {
		return "none"
	}
	if _, err := h.kinds.Secrets().Key(ctx, p, m); err != nil {
		return "missing"
	}
	return "granted"
}
