package skillapi

import (
	"context"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/library"
)

// defaultJSON is a default skill of a namespace.
type defaultJSON struct {
	Namespace  string              `json:"namespace" doc:"user:ID, group:ID or public"`
	SkillID    string              `json:"skill_id"`
	Name       string              `json:"name,omitempty" doc:"Name of the skill; absent if you may not see it"`
	Preload    bool                `json:"forcePreload" doc:"Whether it is loaded from the start"`
	Exceptions []library.Exception `json:"exceptions" nullable:"false" doc:"Conversations without it"`
}

type defaultChange struct {
	Preload    bool                `json:"forcePreload,omitempty" doc:"Load it from the start"`
	Exceptions []library.Exception `json:"exceptions,omitempty" nullable:"false" maxItems:"100"`
}

// chosenJSON is a default skill that applies to a conversation.
type chosenJSON struct {
	SkillID string `json:"skill_id"`
	Name    string `json:"name"`
	Preload bool   `json:"forcePreload" doc:"Whether it is loaded from the start"`
}

// DefaultsOf is the query parameter that selects the namespace of defaults.
type DefaultsOf struct {
	Namespace string `query:"namespace" maxLength:"100" doc:"public, the name of a group, user:ID or group:ID; default your own"`
}

func (h *Handlers) defaultsAPI() {
	api.Add(h.Server, api.Operation("list-defaults", "GET", "/defaults", "List the default skills of a namespace"), h.listDefaults)
	api.Add(h.Server, api.Operation("choose-defaults", "GET", "/defaults/choose", "List the default skills for a new conversation of yours: your own, your groups', and public ones"), h.chooseDefaults)
	api.Add(h.Server, api.Operation("set-default", "PUT", "/defaults/{skill}", "Make a skill a default, or change it"), h.setDefault)
	api.Add(h.Server, api.Operation("remove-default", "DELETE", "/defaults/{skill}", "Remove a skill from the defaults of a namespace"), h.removeDefault)
}

func (h *Handlers) listDefaults(ctx context.Context, in *DefaultsOf) (*api.Body[api.ListBody[defaultJSON]], error) {
	p := account.FromContext(ctx)
	namespace, err := h.Agents.ResolveNamespace(ctx, p, in.Namespace)
	if err != nil {
		return nil, err
	}
	defaults, err := h.Library.Defaults(ctx, p, namespace)
	if err != nil {
		return nil, err
	}
	out := make([]defaultJSON, len(defaults))
	for i, d := range defaults {
		if out[i], err = h.newDefaultJSON(ctx, p, d); err != nil {
			return nil, err
		}
	}
	return api.ListOf(out, "", nil)
}

// newDefaultJSON returns the JSON form of a default. It includes the skill's name only
// if the principal may see the skill.
func (h *Handlers) newDefaultJSON(ctx context.Context, p account.Principal, d library.Default) (defaultJSON, error) {
	out := defaultJSON{Namespace: string(d.Namespace), SkillID: d.SkillID, Preload: d.Preload, Exceptions: api.NonNil(d.Exceptions)}
	s, err := h.Library.Skill(ctx, p, d.SkillID)
	switch {
	case err == nil:
		out.Name = s.Name
	case !api.IsHidden(err):
		return out, err
	}
	return out, nil
}

func (h *Handlers) setDefault(ctx context.Context, in *struct {
	api.SkillPath
	DefaultsOf
	Body defaultChange
}) (*api.Body[defaultJSON], error) {
	p := account.FromContext(ctx)
	namespace, err := h.Agents.ResolveNamespace(ctx, p, in.Namespace)
	if err != nil {
		return nil, err
	}
	d := library.Default{Namespace: namespace, SkillID: in.Skill, Preload: in.Body.Preload, Exceptions: in.Body.Exceptions}
	if err := h.Library.SetDefault(ctx, p, d); err != nil {
		return nil, err
	}
	return api.BodyOf(h.newDefaultJSON(ctx, p, d))
}

func (h *Handlers) removeDefault(ctx context.Context, in *struct {
	api.SkillPath
	DefaultsOf
}) (*api.NoBody, error) {
	p := account.FromContext(ctx)
	namespace, err := h.Agents.ResolveNamespace(ctx, p, in.Namespace)
	if err != nil {
		return nil, err
	}
	return nil, h.Library.RemoveDefault(ctx, p, namespace, in.Skill)
}

func (h *Handlers) chooseDefaults(ctx context.Context, in *struct {
	Mode    string `query:"mode" maxLength:"128" doc:"As in exceptions"`
	Agent   string `query:"agent" maxLength:"128"`
	Project string `query:"project" maxLength:"128"`
}) (*api.Body[api.ListBody[chosenJSON]], error) {
	chosen, err := h.Library.DefaultSkills(ctx, account.FromContext(ctx), library.ConversationInfo{Mode: in.Mode, Agent: in.Agent, Project: in.Project})
	return api.PageOf(chosen, "", err, func(c library.DefaultSkill) chosenJSON { return chosenJSON{c.ID, c.Name, c.Preload} })
}
