package sessionapi

import (
	"context"
	"errors"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/session"
)

type skillToLoad struct {
	Name      string  `json:"name" minLength:"1" maxLength:"1024"`
	Retention *string `json:"keep,omitempty" nullable:"false" enum:",pinned,once" doc:"pinned: until unloaded; once: for the next turn; empty: until some turns after the last use; default: unchanged if active, otherwise empty"`
}

type unloadedSkills struct {
	Unloaded []string `json:"unloaded" nullable:"false" doc:"Names of the unloaded skills"`
}

func (h *Handlers) sessionSkills() {
	api.Add(h.Server, api.Operation("list-session-skills", "GET", "/sessions/{session}/skills", "List the active skills in the order of loading, with their remaining turns"), h.listSessionSkills)
	api.Add(h.Server, api.Operation("load-session-skill", "POST", "/sessions/{session}/skills", "Load a skill"), h.loadSessionSkill)
	api.Add(h.Server, api.Operation("unload-session-skill", "DELETE", "/sessions/{session}/skills/{name}", "Unload a skill"), h.unloadSessionSkill)
}

func (h *Handlers) listSessionSkills(ctx context.Context, in *SessionPath) (*api.Body[api.ListBody[chat.ActiveSkill]], error) {
	p := account.FromContext(ctx)
	found, err := h.Chat.ActiveSkills(ctx, p, in.Session)
	if err == nil {
		err = h.setNamespaces(ctx, p, found)
	}
	return api.ListOf(found, "", err)
}

// setNamespaces sets the namespaces of those skills that the principal may see.
func (h *Handlers) setNamespaces(ctx context.Context, p account.Principal, skills []chat.ActiveSkill) error {
	for i := range skills {
		if skills[i].SkillID == "" {
			continue
		}
		s, err := h.Library.Skill(ctx, p, skills[i].SkillID)
		switch {
		case err == nil:
			skills[i].Namespace = string(s.Namespace)
		case !api.IsHidden(err):
			return err
		}
	}
	return nil
}

func (h *Handlers) loadSessionSkill(ctx context.Context, in *struct {
	SessionPath
	Body skillToLoad
}) (*api.Body[chat.Loaded], error) {
	load, keep := h.Chat.Load, session.RetainUsed
	if in.Body.Retention != nil {
		load, keep = h.Chat.SetRetention, session.RetentionMode(*in.Body.Retention)
	}
	loaded, err := load(ctx, account.FromContext(ctx), in.Session, in.Body.Name, keep)
	if err != nil || loaded == nil {
		return nil, queuedProblem(err)
	}
	return api.BodyOf(*loaded, nil)
}

func (h *Handlers) unloadSessionSkill(ctx context.Context, in *struct {
	SessionPath
	Name    string `path:"name" maxLength:"1024" doc:"Name of an active skill"`
	Cascade bool   `query:"cascade" doc:"Also unload the skills that depend on it"`
}) (*api.Body[unloadedSkills], error) {
	gone, err := h.Chat.Unload(ctx, account.FromContext(ctx), in.Session, in.Name, in.Cascade)
	if gone == nil {
		gone = []string{}
	}
	return api.BodyOf(unloadedSkills{gone}, queuedProblem(err))
}

// queuedProblem replaces a timeout with a problem that says that the command is
// still queued and will run. It returns other errors unchanged.
func queuedProblem(err error) error {
	if !errors.Is(err, api.ErrTimeout) {
		return err
	}
	return &api.Problem{Status: 504, Code: "waits", Detail: "queued; it will run when its turn comes", Next: "watch the events of the session, or cancel its turn"}
}
