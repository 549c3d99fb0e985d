package hub

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/skill"
)

// skillDocument returns a skill as a document, with its SKILL.md only.
func (h *Hub) skillDocument(ctx context.Context, p account.Principal, namespace, name string) (kindJSON, error) {
	id, err := h.skillID(ctx, p, namespace, name)
	if err != nil {
		return kindJSON{}, err
	}
	s, err := h.library.Skill(ctx, p, id)
	if err != nil {
		return kindJSON{}, err
	}
	file, err := h.library.ReadSkillFile(ctx, p, s.ID, s.Number)
	if err != nil {
		return kindJSON{}, err
	}
	d, err := agents.ParseSkillFile(namespace, s.Name, file)
	if err != nil {
		return kindJSON{}, err
	}
	out, err := kindOf(&agents.Resource{Document: *d})
	found := out.Status.Findings
	out.Status = skillStatus(s)
	out.Status.Findings = found
	out.Metadata.Description = "" // the spec has it, like SKILL.md
	return out, err
}

func skillStatus(s *library.Skill) kindStatusJSON {
	return kindStatusJSON{ID: s.ID, Generation: s.Number, Digest: s.Digest, CreatedBy: s.CreatedBy, Created: s.Created, Updated: s.Updated}
}

// listSkillDocuments lists skills from the database, without reading their
// files.
func (h *Hub) listSkillDocuments(ctx context.Context, p account.Principal, namespace string, page api.Paging) (*api.Body[api.ListBody[kindJSON]], error) {
	q := library.Query{Shadowed: true, Page: page.Page()}
	if namespace != "" {
		in, err := h.kinds.ResolveNamespace(ctx, p, namespace)
		if err != nil {
			return nil, err
		}
		q.In = []store.Namespace{in}
	}
	found, next, err := h.library.List(ctx, p, q)
	if err != nil {
		return nil, err
	}
	out := api.ListBody[kindJSON]{Items: make([]kindJSON, len(found)), Next: next}
	for i, s := range found {
		if out.Items[i], err = h.skillHead(ctx, p, s); err != nil {
			return nil, err
		}
	}
	return api.BodyOf(out, nil)
}

// skillHead returns a skill as a document without its instructions.
func (h *Hub) skillHead(ctx context.Context, p account.Principal, s *library.Skill) (kindJSON, error) {
	in, err := h.kinds.FormatNamespace(ctx, p, s.Namespace)
	if err != nil {
		return kindJSON{}, err
	}
	if in == "" {
		in = api.OwnNamespace
	}
	spec, err := json.Marshal(struct {
		Description string   `json:"description"`
		DisplayName string   `json:"displayName,omitempty"`
		Version     string   `json:"version,omitempty"`
		Tags        []string `json:"tags,omitempty"`
	}{s.Description, s.DisplayName, s.Label, s.Tags})
	return kindJSON{APIVersion: agents.APIVersion, Kind: agents.SkillKind, Metadata: kindMetaJSON{Name: s.Name, Namespace: in}, Spec: spec, Status: skillStatus(s)}, err
}

// applySkill creates or updates a skill from a document, for [agents.Options].
func (h *Hub) applySkill(ctx context.Context, tx *store.Tx, p account.Principal, f agents.SkillFile) (agents.Outcome, []byte, error) {
	applied, was, err := h.library.Apply(ctx, tx, p, library.SkillText{In: f.In, Name: f.Name, File: f.Data, Same: f.Same})
	if err != nil {
		return "", nil, skillProblem(err)
	}
	return agents.Outcome(applied), was, nil
}

// skillProblem converts an error about a skill to a finding about its document.
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
