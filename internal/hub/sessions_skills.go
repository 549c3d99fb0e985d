package hub

import (
	"context"
	"errors"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/session"
)

type skillToLoad struct {
	Name string  `json:"name" minLength:"1" maxLength:"1024"`
	Keep *string `json:"keep,omitempty" nullable:"false" enum:",pinned,once" doc:"pinned is until it is unloaded, once for the turn that follows, empty for some turns after its last use, which also ends that it is pinned; without, as before where it is in force, else for some turns"`
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
	p := account.FromContext(ctx)
	found, err := h.chat.Skills(ctx, p, in.Session)
	if err == nil {
		err = h.placeSkills(ctx, p, found)
	}
	return page(found, "", err, func(f chat.InForce) chat.InForce { return f })
}

// placeSkills says where skills are at home, as far as somebody sees them.
func (h *Hub) placeSkills(ctx context.Context, p account.Principal, skills []chat.InForce) error {
	for i := range skills {
		if skills[i].SkillID == "" {
			continue
		}
		s, err := h.library.Skill(ctx, p, skills[i].SkillID)
		switch {
		case err == nil:
			skills[i].Namespace = string(s.Namespace)
		case !unseen(err):
			return err
		}
	}
	return nil
}

// unseen says that something is not there, or not for who asks.
func unseen(err error) bool {
	_, denied := errors.AsType[*account.DeniedError](err)
	return denied || errors.Is(err, store.ErrNotFound)
}

func (h *Hub) loadSessionSkill(ctx context.Context, in *struct {
	SessionPath
	Body skillToLoad
}) (*body[chat.Loaded], error) {
	load, keep := h.chat.Load, session.KeepUsed
	if in.Body.Keep != nil {
		load, keep = h.chat.Keep, session.Keep(*in.Body.Keep)
	}
	loaded, err := load(ctx, account.FromContext(ctx), in.Session, in.Body.Name, keep)
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
