package hub

import (
	"context"
	"errors"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/session"
)

type skillToLoad struct {
	Name string `json:"name" minLength:"1" maxLength:"1024"`
	Keep string `json:"keep,omitempty" enum:",pinned,once" doc:"pinned is until it is unloaded, once for this turn; without, for some turns after its last use"`
}

type unloadedSkills struct {
	Unloaded []string `json:"unloaded" nullable:"false" doc:"The names of all that went out of force"`
}

func (h *Hub) sessionSkills(api huma.API) {
	add(h, api, operation("list-session-skills", "GET", "/sessions/{session}/skills", "The skills in force, in the order of loading, and for how many turns more"), h.listSessionSkills)
	add(h, api, operation("load-session-skill", "POST", "/sessions/{session}/skills", "Load a skill by hand, when its turn comes"), h.loadSessionSkill)
	add(h, api, operation("unload-session-skill", "DELETE", "/sessions/{session}/skills/{name}", "Take a skill out of force by hand, when its turn comes"), h.unloadSessionSkill)
}

func (h *Hub) listSessionSkills(ctx context.Context, in *SessionPath) (*body[listed[chat.InForce]], error) {
	found, err := h.chat.Skills(ctx, account.FromContext(ctx), in.Session)
	return page(found, "", err, func(f chat.InForce) chat.InForce { return f })
}

func (h *Hub) loadSessionSkill(ctx context.Context, in *struct {
	SessionPath
	Body skillToLoad
}) (*body[chat.Loaded], error) {
	loaded, err := h.chat.Load(ctx, account.FromContext(ctx), in.Session, in.Body.Name, session.Keep(in.Body.Keep))
	if err != nil || loaded == nil {
		return nil, waits(err)
	}
	return answered(*loaded, nil)
}

func (h *Hub) unloadSessionSkill(ctx context.Context, in *struct {
	SessionPath
	Name    string `path:"name" maxLength:"1024" doc:"The name of a skill that is in force"`
	Cascade bool   `query:"cascade" doc:"Also those that need it"`
}) (*body[unloadedSkills], error) {
	gone, err := h.chat.Unload(ctx, account.FromContext(ctx), in.Session, in.Name, in.Cascade)
	if gone == nil {
		gone = []string{}
	}
	return answered(unloadedSkills{gone}, waits(err))
}

// waits is the error of a command, which is done also where nobody waits for it any more.
func waits(err error) error {
	if !errors.Is(err, errSlow) {
		return err
	}
	return &Problem{Status: 504, Code: "waits", Detail: "it waits for its turn, and is done when that comes", Next: "watch the events of the session, or cancel its turn"}
}
