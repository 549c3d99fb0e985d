package hub

import (
	"context"
	"errors"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/skill"
)

// applySkill creates or updates a skill from a document. It is the hub's
// [agents.Options.ApplySkill].
func (h *Hub) applySkill(ctx context.Context, tx *store.Tx, p account.Principal, f agents.SkillFile) (agents.AppliedSkill, error) {
	applied, err := h.library.Apply(ctx, tx, p, library.SkillText{In: f.In, Name: f.Name, File: f.Data, Same: f.Same})
	if err != nil {
		return agents.AppliedSkill{}, skillProblem(err)
	}
	return agents.AppliedSkill{Outcome: agents.Outcome(applied.Result), Before: applied.Before, Pending: applied.Pending}, nil
}

// withheldReason explains why a user must not access a version of a skill. It is
// the hub's [agents.Options.WithheldReason].
func (h *Hub) withheldReason(ctx context.Context, p account.Principal, s store.Skill, digest string) (string, error) {
	err := h.library.CheckVersion(ctx, p, s, digest)
	if review, ok := errors.AsType[*library.ReviewError](err); ok {
		return review.Error(), nil
	}
	if errors.Is(err, library.ErrNotFound) { // deleted in the meantime
		return err.Error(), nil
	}
	return "", err
}

// skillProblem converts a library error to an error about the document.
func skillProblem(err error) error {
	if e, ok := errors.AsType[*library.ExtraFilesError](err); ok {
		return &agents.SkillError{Why: e.Error(), Fix: "upload it as a package, with all of its files"}
	}
	if e, ok := errors.AsType[*library.NameError](err); ok {
		return &agents.SkillError{Why: e.Error(), Fix: "choose another name"}
	}
	if e, ok := errors.AsType[*library.BrokenError](err); ok {
		return &agents.SkillError{Why: e.Error(), Fix: "fix the fields of the document"}
	}
	if e, ok := errors.AsType[*skill.RefusedError](err); ok {
		return &agents.SkillError{Why: e.Error(), Fix: "make it smaller"}
	}
	return err
}
