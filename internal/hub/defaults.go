package hub

import (
	"context"
	"errors"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
)

// defaultJSON is a skill that the people of a namespace have without asking.
type defaultJSON struct {
	Namespace  string             `json:"namespace" doc:"user:ID, group:ID or public"`
	SkillID    string             `json:"skill_id"`
	Name       string             `json:"name,omitempty" doc:"Of the skill; not there where you do not see it any more"`
	Preload    bool               `json:"forcePreload" doc:"Whether it is loaded from the start"`
	Exceptions []defaultException `json:"exceptions" nullable:"false" doc:"Conversations that do not have it"`
}

// defaultException is a kind of conversation.
type defaultException struct {
	Type  string `json:"type" enum:"mode,agent,project"`
	Value string `json:"value" minLength:"1" maxLength:"128"`
}

type defaultChange struct {
	Preload    bool               `json:"forcePreload,omitempty" doc:"Load it from the start"`
	Exceptions []defaultException `json:"exceptions,omitempty" nullable:"false" maxItems:"100"`
}

// chosenJSON is a skill that a conversation begins with.
type chosenJSON struct {
	SkillID string `json:"skill_id"`
	Name    string `json:"name"`
	Preload bool   `json:"forcePreload" doc:"Whether it is loaded from the start"`
}

// DefaultsOf names whose defaults are meant, in a query.
type DefaultsOf struct {
	Namespace string `query:"namespace" maxLength:"100" doc:"public, the name of a group, user:ID or group:ID; without, your own"`
}

func (h *Hub) defaultsAPI(api huma.API) {
	add(h, api, operation("list-defaults", "GET", "/defaults", "The skills that the people of a namespace have without asking"), h.listDefaults)
	add(h, api, operation("choose-defaults", "GET", "/defaults/choose", "The skills that a conversation of yours begins with: of your own defaults, your groups', and everybody's"), h.chooseDefaults)
	add(h, api, operation("set-default", "PUT", "/defaults/{skill}", "Make a skill a default, in place of what was said of it before"), h.setDefault)
	add(h, api, operation("remove-default", "DELETE", "/defaults/{skill}", "Take a skill out of the defaults of a namespace"), h.removeDefault)
}

func (h *Hub) listDefaults(ctx context.Context, in *DefaultsOf) (*body[listed[defaultJSON]], error) {
	p := account.FromContext(ctx)
	namespace, err := h.kinds.Namespace(ctx, p, in.Namespace)
	if err != nil {
		return nil, err
	}
	defaults, err := h.library.Defaults(ctx, p, namespace)
	if err != nil {
		return nil, err
	}
	out := make([]defaultJSON, len(defaults))
	for i, d := range defaults {
		if out[i], err = h.defaultOf(ctx, p, d); err != nil {
			return nil, err
		}
	}
	return page(out, "", nil, func(d defaultJSON) defaultJSON { return d })
}

// defaultOf is a default with the name of its skill, where somebody may know of that.
func (h *Hub) defaultOf(ctx context.Context, p account.Principal, d library.Default) (defaultJSON, error) {
	out := defaultJSON{Namespace: string(d.Namespace), SkillID: d.SkillID, Preload: d.Preload, Exceptions: []defaultException{}}
	for _, e := range d.Exceptions {
		out.Exceptions = append(out.Exceptions, defaultException(e))
	}
	s, err := h.library.Skill(ctx, p, d.SkillID)
	switch {
	case err == nil:
		out.Name = s.Name
	case !isHidden(err):
		return out, err
	}
	return out, nil
}

func (h *Hub) setDefault(ctx context.Context, in *struct {
	SkillPath
	DefaultsOf
	Body defaultChange
}) (*body[defaultJSON], error) {
	p := account.FromContext(ctx)
	namespace, err := h.kinds.Namespace(ctx, p, in.Namespace)
	if err != nil {
		return nil, err
	}
	d := library.Default{Namespace: namespace, SkillID: in.Skill, Preload: in.Body.Preload}
	for _, e := range in.Body.Exceptions {
		d.Exceptions = append(d.Exceptions, library.Exception(e))
	}
	if err := h.library.SetDefault(ctx, p, d); err != nil {
		return nil, err
	}
	return answered(h.defaultOf(ctx, p, d))
}

func (h *Hub) removeDefault(ctx context.Context, in *struct {
	SkillPath
	DefaultsOf
}) (*nothing, error) {
	p := account.FromContext(ctx)
	namespace, err := h.kinds.Namespace(ctx, p, in.Namespace)
	if err != nil {
		return nil, err
	}
	return nil, h.library.RemoveDefault(ctx, p, namespace, in.Skill)
}

func (h *Hub) chooseDefaults(ctx context.Context, in *struct {
	Mode    string `query:"mode" maxLength:"128" doc:"As exceptions name it"`
	Agent   string `query:"agent" maxLength:"128"`
	Project string `query:"project" maxLength:"128"`
}) (*body[listed[chosenJSON]], error) {
	chosen, err := h.library.Choose(ctx, account.FromContext(ctx), library.Situation{Mode: in.Mode, Agent: in.Agent, Project: in.Project})
	return page(chosen, "", err, func(c library.Chosen) chosenJSON { return chosenJSON{c.ID, c.Name, c.Preload} })
}

// isHidden reports whether an error is that something is not there, or not for who asks.
func isHidden(err error) bool {
	_, denied := errors.AsType[*account.DeniedError](err)
	return denied || errors.Is(err, store.ErrNotFound)
}
