package agentapi

import (
	"context"
	"encoding/json"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
)

// skillDocument returns a skill as a document. It contains only the SKILL.md.
func (h *Handlers) skillDocument(ctx context.Context, p account.Principal, namespace, name string) (kindJSON, error) {
	id, err := h.skillID(ctx, p, namespace, name)
	if err != nil {
		return kindJSON{}, err
	}
	s, err := h.Library.Skill(ctx, p, id)
	if err != nil {
		return kindJSON{}, err
	}
	file, err := h.Library.ReadSkillFile(ctx, p, s.ID, s.Number)
	if err != nil {
		return kindJSON{}, err
	}
	d, err := agents.ParseSkillFile(namespace, s.Name, file)
	if err != nil {
		return kindJSON{}, err
	}
	out, err := newKindJSON(&agents.Resource{Document: *d})
	found := out.Status.Findings
	out.Status = skillStatus(s)
	out.Status.Findings = found
	out.Metadata.Description = "" // already in the spec, as in SKILL.md
	return out, err
}

func skillStatus(s *library.Skill) kindStatusJSON {
	return kindStatusJSON{ID: s.ID, Generation: s.Number, Digest: s.Digest, CreatedBy: s.CreatedBy, Created: s.Created, Updated: s.Updated}
}

// listSkillDocuments lists skills without reading their files.
func (h *Handlers) listSkillDocuments(ctx context.Context, p account.Principal, namespace string, page api.Paging) (*api.Body[api.ListBody[kindJSON]], error) {
	q := library.Query{Shadowed: true, Page: page.Page()}
	if namespace != "" {
		in, err := h.Agents.ResolveNamespace(ctx, p, namespace)
		if err != nil {
			return nil, err
		}
		q.In = []store.Namespace{in}
	}
	found, err := h.Library.List(ctx, p, q)
	if err != nil {
		return nil, err
	}
	out := api.ListBody[kindJSON]{Items: make([]kindJSON, len(found.Skills)), Next: found.Next}
	for i, s := range found.Skills {
		if out.Items[i], err = h.skillHead(ctx, p, s); err != nil {
			return nil, err
		}
	}
	return api.BodyOf(out, nil)
}

// skillHead returns a skill as a document without its instructions.
func (h *Handlers) skillHead(ctx context.Context, p account.Principal, s *library.Skill) (kindJSON, error) {
	in, err := h.Agents.FormatNamespace(ctx, p, s.Namespace)
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
