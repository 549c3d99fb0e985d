package hub

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/hub/kinds"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/skill"
)

// skillDocument is a skill as a document, with its SKILL.md alone.
func (h *Hub) skillDocument(ctx context.Context, p account.Principal, namespace, name string) (kindJSON, error) {
	id, err := h.skillID(ctx, p, namespace, name)
	if err != nil {
		return kindJSON{}, err
	}
	s, err := h.library.Skill(ctx, p, id)
	if err != nil {
		return kindJSON{}, err
	}
	file, err := h.library.Instructions(ctx, p, s.ID, s.Number)
	if err != nil {
		return kindJSON{}, err
	}
	d, err := kinds.ReadSkill(namespace, s.Name, file)
	if err != nil {
		return kindJSON{}, err
	}
	out, err := kindOf(&kinds.Resource{Document: *d})
	found := out.Status.Findings
	out.Status = skillStatus(s)
	out.Status.Findings = found
	out.Metadata.Description = "" // it is in the spec, as in SKILL.md
	return out, err
}

func skillStatus(s *library.Skill) kindStatusJSON {
	return kindStatusJSON{ID: s.ID, Generation: s.Number, Digest: s.Digest, CreatedBy: s.CreatedBy, Created: s.Created, Updated: s.Updated}
}

// listSkillDocuments are skills by what is kept of them besides their files.
func (h *Hub) listSkillDocuments(ctx context.Context, p account.Principal, namespace string, page Paging) (*body[listed[kindJSON]], error) {
	q := library.Query{Shadowed: true, Page: page.page()}
	if namespace != "" {
		in, err := h.kinds.Namespace(ctx, p, namespace)
		if err != nil {
			return nil, err
		}
		q.In = []store.Namespace{in}
	}
	found, next, err := h.library.List(ctx, p, q)
	if err != nil {
		return nil, err
	}
	out := listed[kindJSON]{Items: make([]kindJSON, len(found)), Next: next}
	for i, s := range found {
		if out.Items[i], err = h.skillHead(ctx, p, s); err != nil {
			return nil, err
		}
	}
	return answered(out, nil)
}

// skillHead is a skill as a document without its instructions.
func (h *Hub) skillHead(ctx context.Context, p account.Principal, s *library.Skill) (kindJSON, error) {
	in, err := h.kinds.Written(ctx, p, s.Namespace)
	if err != nil {
		return kindJSON{}, err
	}
	if in == "" {
		in = ownNamespace
	}
	spec, err := json.Marshal(struct {
		Description string   `json:"description"`
		DisplayName string   `json:"displayName,omitempty"`
		Version     string   `json:"version,omitempty"`
		Tags        []string `json:"tags,omitempty"`
	}{s.Description, s.DisplayName, s.Label, s.Tags})
	return kindJSON{APIVersion: kinds.Own, Kind: kinds.SkillKind, Metadata: kindMetaJSON{Name: s.Name, Namespace: in}, Spec: spec, Status: skillStatus(s)}, err
}

// applySkill makes or changes a skill by a document, as [kinds.Options] asks for.
func (h *Hub) applySkill(ctx context.Context, tx *store.Tx, p account.Principal, f kinds.SkillFile) (kinds.Outcome, []byte, error) {
	applied, was, err := h.library.Apply(ctx, tx, p, library.Text{In: f.In, Name: f.Name, File: f.Data, Same: f.Same})
	if err != nil {
		return "", nil, refusedSkill(err)
	}
	return kinds.Outcome(applied), was, nil
}

// refusedSkill makes of what is wrong with a skill a finding about its document.
func refusedSkill(err error) error {
	if e, ok := errors.AsType[*library.MoreFilesError](err); ok {
		return &kinds.SkillError{Why: e.Error(), Fix: "upload it as a package, with all of its files"}
	}
	if e, ok := errors.AsType[*library.NameError](err); ok {
		return &kinds.SkillError{Why: e.Error(), Fix: "take another name"}
	}
	if e, ok := errors.AsType[*library.BrokenError](err); ok {
		return &kinds.SkillError{Why: e.Error(), Fix: "mend the fields of the document"}
	}
	if e, ok := errors.AsType[*skill.RefusedError](err); ok {
		return &kinds.SkillError{Why: e.Error(), Fix: "make it smaller"}
	}
	return err
}
