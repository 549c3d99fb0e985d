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
func (h *Hub) applySkill(ctx context.Context, tx *store.Tx, p account.Principal, f agents.SkillFile) (agents.Outcome, []byte, error) {
	applied, was, err := h.library.Apply(ctx, tx, p, library.SkillText{In: f.In, Name: f.Name, File: f.Data, Same: f.Same})
	if err != nil {
		return "", nil, skillProblem(err)
	}
	return agents.Outcome(applied), was, nil
}

// skillProblem converts a library error to an error about the document.
func skillProblem(err error) error {
	if e, ok := errors.AsType[*library.ExtraFilesError](err); ok {
		return &agents.SkillError{Why: e.Error(), Fix: "upload it as a package, with all of its files"}
	}
	if e, ok := errors.AsType[*library.NameError](err); ok {
		return &agents.SkillError{Why: e.Error(), Fix: "take another name"}
	}
	if e, ok := errors.AsType[*library.BrokenError](err); ok {
		return &agents.SkillError{Why: e.Error(), Fix: "mend the fields of the document"}
	}
	if e, ok := errors.AsType[*skill.RefusedError](err); ok {
		return &agents.SkillError{Why: e.Error(), Fix: "make it smaller"}
	}
	return err
}
