package hub

import (
	"context"
	"errors"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/hub/kinds"
	"github.com/loadout-dev/loadout/internal/store"
)

// skillSettingsJSON say which skills there are.
type skillSettingsJSON struct {
	Enabled    bool     `json:"enabled" doc:"false is the kill switch: no skill is there, and what runs is stopped, on all nodes"`
	Allow      []string `json:"allow" nullable:"false" maxItems:"500" doc:"The only skills there are, as NAME, a pattern, or NAME@>=1.0.0; none is all"`
	Generation int64    `json:"generation" minimum:"0" doc:"As it was read"`
}

func skillSettingsOf(s kinds.SkillSettings) skillSettingsJSON {
	return skillSettingsJSON{Enabled: !s.Disabled, Allow: filled(s.Allow), Generation: s.Generation}
}

// SettingScope says whose settings are meant.
type SettingScope struct {
	Scope string `query:"scope" maxLength:"150" default:"hub" doc:"hub, or the name of a group or group:ID"`
}

func (h *Hub) skillSettingsAPI(api huma.API) {
	add(h, api, operation("get-skill-settings", "GET", "/settings/skills", "Which skills are switched on and allowed, on the hub or in a group"), h.getSkillSettings)
	add(h, api, operation("set-skill-settings", "PUT", "/settings/skills", "Switch skills on or off, or allow some alone"), h.setSkillSettings)
}

func (h *Hub) getSkillSettings(ctx context.Context, in *SettingScope) (*body[skillSettingsJSON], error) {
	s, err := h.kinds.SkillSettings(ctx, account.FromContext(ctx), in.Scope)
	return answered(skillSettingsOf(s), err)
}

func (h *Hub) setSkillSettings(ctx context.Context, in *struct {
	SettingScope
	Body skillSettingsJSON
}) (*body[skillSettingsJSON], error) {
	p := account.FromContext(ctx)
	err := h.kinds.SetSkillSettings(ctx, p, in.Scope, kinds.SkillSettings{Disabled: !in.Body.Enabled, Allow: in.Body.Allow, Generation: in.Body.Generation})
	if errors.Is(err, store.ErrInvalid) {
		return nil, &Problem{Status: 422, Code: "invalid", Detail: err.Error(), Next: "mend the allow-list, or the scope"}
	}
	if err != nil {
		return nil, err
	}
	// One who may change them need not be one who may read them: a token for one thing.
	return answered(skillSettingsJSON{in.Body.Enabled, filled(in.Body.Allow), in.Body.Generation + 1}, nil)
}
