package library

import (
	"context"
	"slices"

	"github.com/loadout-dev/loadout/internal/hub/account"
)

// skillActions lists the actions that apply to an existing skill.
var skillActions = []account.Action{
	account.SkillRead, account.SkillUse, account.SkillRun, account.SkillBind, account.SkillRate, account.SkillDownload, account.SkillChange,
	account.SkillReview, account.SkillComment, account.SkillPublish, account.SkillHide, account.SkillDelete, account.UsageRead,
}

// AllowedActions returns the actions that the principal may perform on a skill
// or its current version. It returns [ErrNotFound] if the principal is not
// allowed to see the skill.
func (l *Library) AllowedActions(ctx context.Context, p account.Principal, id string) ([]account.Action, error) {
	h, err := l.getSkill(ctx, &l.db.Tables, id)
	if err != nil {
		return nil, err
	}
	if !h.isVisible(p) {
		return nil, notFound(id)
	}
	v, err := l.db.Versions.Get(ctx, id, h.Number)
	if err != nil {
		return nil, hideNotFound(id, err)
	}
	return slices.DeleteFunc(slices.Clone(skillActions), func(a account.Action) bool {
		author := h.CreatedBy
		if a == account.SkillReview {
			author = v.CreatedBy
		}
		return h.check(p, a, author) != nil
	}), nil
}
