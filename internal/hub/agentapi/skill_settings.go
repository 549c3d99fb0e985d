package agentapi

import (
	"context"
	"errors"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/store"
)

// skillSettingsJSON controls which skills are available.
type skillSettingsJSON struct {
	Enabled    bool     `json:"enabled" doc:"false is the kill switch: it disables all skills and stops running ones on all nodes"`
	Allow      []string `json:"allow" nullable:"false" maxItems:"500" doc:"The only available skills, as NAME, a pattern, or NAME@>=1.0.0; empty for all"`
	Generation int64    `json:"generation" minimum:"0" doc:"As it was read"`
}

func newSkillSettingsJSON(s agents.SkillSettings) skillSettingsJSON {
	return skillSettingsJSON{Enabled: !s.Disabled, Allow: api.NonNil(s.Allow), Generation: s.Generation}
}

// SettingScope is the query parameter for the scope of settings.
type SettingScope struct {
	Scope string `query:"scope" maxLength:"150" default:"hub" doc:"hub, the name of a group, or group:ID"`
}

func (h *Handlers) skillSettingsAPI() {
	api.Add(h.Server, api.Operation("get-skill-settings", "GET", "/settings/skills", "Get which skills are enabled and allowed, on the hub or in a group"), h.getSkillSettings)
	api.Add(h.Server, api.Operation("set-skill-settings", "PUT", "/settings/skills", "Enable or disable skills, or restrict them to an allowlist"), h.setSkillSettings)
}

func (h *Handlers) getSkillSettings(ctx context.Context, in *SettingScope) (*api.Body[skillSettingsJSON], error) {
	s, err := h.Agents.SkillSettings(ctx, account.FromContext(ctx), in.Scope)
	return api.BodyOf(newSkillSettingsJSON(s), err)
}

func (h *Handlers) setSkillSettings(ctx context.Context, in *struct {
	SettingScope
	Body skillSettingsJSON
}) (*api.Body[skillSettingsJSON], error) {
	p := account.FromContext(ctx)
	err := h.Agents.SetSkillSettings(ctx, p, in.Scope, agents.SkillSettings{Disabled: !in.Body.Enabled, Allow: in.Body.Allow, Generation: in.Body.Generation})
	if errors.Is(err, store.ErrInvalid) {
		return nil, &api.Problem{Status: 422, Code: "invalid", Detail: err.Error(), Next: "fix the allowlist or the scope"}
	}
	if err != nil {
		return nil, err
	}
	// Do not read the settings again: users who may change them may lack the right
	// to read them, for example with a limited token.
	return api.BodyOf(skillSettingsJSON{in.Body.Enabled, api.NonNil(in.Body.Allow), in.Body.Generation + 1}, nil)
}
