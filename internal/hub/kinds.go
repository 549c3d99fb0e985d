package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/hub/kinds"
	"github.com/loadout-dev/loadout/internal/hub/library"
)

// kindJSON is a thing of a hub, as a document that can be applied again: what is in
// status is not read then.
type kindJSON struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   kindMetaJSON    `json:"metadata"`
	Spec       json.RawMessage `json:"spec,omitempty" doc:"What it consists of; not there where that is damaged. In lists a Skill has no prompt"`
	Status     kindStatusJSON  `json:"status"`
}

type kindMetaJSON struct {
	Name        string `json:"name"`
	Namespace   string `json:"namespace" doc:"default is your own, public is everybody's, else the name of a group"`
	Description string `json:"description,omitempty"`
}

type kindStatusJSON struct {
	ID         string           `json:"id"`
	Generation int64            `json:"generation" doc:"It grows with each change"`
	Digest     string           `json:"digest,omitempty" doc:"Of a Model or a Skill as it is now: what secrets are granted to"`
	CreatedBy  string           `json:"createdBy"`
	ChangedBy  string           `json:"changedBy,omitempty"`
	Created    time.Time        `json:"created"`
	Updated    time.Time        `json:"updated"`
	Findings   []diagnosticJSON `json:"findings,omitempty" doc:"What is wrong with it"`
}

// ownNamespace is how a person's own namespace is written in paths, where "" cannot be.
const ownNamespace = "default"

// kindOf is a resource as JSON. What has no spec is damaged.
func kindOf(r *kinds.Resource) (kindJSON, error) {
	out := kindJSON{APIVersion: r.APIVersion, Kind: r.Kind, Metadata: kindMetaJSON{r.Name, r.Namespace, r.Description},
		Status: kindStatusJSON{ID: r.ID, Generation: r.Generation, CreatedBy: r.CreatedBy, ChangedBy: r.ChangedBy, Created: r.Created, Updated: r.Updated}}
	if len(r.Findings) > 0 {
		out.Status.Findings = diagnosticsOf(r.Findings)
	}
	if out.Metadata.Namespace == "" {
		out.Metadata.Namespace = ownNamespace
	}
	if r.Spec == nil {
		return out, nil
	}
	text, err := r.Encode()
	if err != nil {
		return out, err
	}
	var spec struct{ Spec json.RawMessage }
	err = json.Unmarshal(text, &spec)
	out.Spec = spec.Spec
	return out, err
}

// KindPath names a kind in a path.
type KindPath struct {
	Kind string `path:"kind" enum:"Skill,Ghost,Bot,Team,Model,MCPServer"`
}

// ThingPath names a thing in a path.
type ThingPath struct {
	KindPath
	Namespace string `path:"namespace" minLength:"1" maxLength:"150" doc:"default is your own, public is everybody's, else the name of a group, or user:ID or group:ID"`
	Name      string `path:"name" minLength:"1" maxLength:"1024"`
}

func (t ThingPath) String() string { return t.Kind + "/" + t.Namespace + "/" + t.Name }

// Dry asks for a trial.
type Dry struct {
	Dry bool `query:"dry" doc:"Only say what would be done"`
}

func (h *Hub) kindsAPI(api huma.API) {
	h.applyAPI(api)
	add(h, api, operation("list-kinds", "GET", "/kinds/{kind}", "Things of a kind that you see, by name"), h.listKinds)
	add(h, api, operation("get-kind", "GET", "/kinds/{kind}/{namespace}/{name}", "A thing as a document"), h.getKind)
	add(h, api, operation("delete-kind", "DELETE", "/kinds/{kind}/{namespace}/{name}", "Delete a thing that nothing names"), h.deleteKind)
	add(h, api, operation("list-referrers", "GET", "/kinds/{kind}/{namespace}/{name}/referrers", "What names a thing"), h.listReferrers)
	add(h, api, operation("get-profile", "GET", "/kinds/{kind}/{namespace}/{name}/profile", "What a Ghost, Bot or Team consists of for you, now"), h.getProfile)
}

func (h *Hub) listKinds(ctx context.Context, in *struct {
	KindPath
	Namespace string `query:"namespace" maxLength:"150" doc:"That one alone; without it all that you see"`
	Paging
}) (*body[listed[kindJSON]], error) {
	p := account.FromContext(ctx)
	if in.Kind == kinds.SkillKind {
		return h.listSkillDocuments(ctx, p, in.Namespace, in.Paging)
	}
	found, next, err := h.kinds.List(ctx, p, in.Kind, in.Namespace, in.page())
	if err != nil {
		return nil, err
	}
	out := listed[kindJSON]{Items: make([]kindJSON, len(found)), Next: next}
	for i, r := range found {
		if out.Items[i], err = kindOf(r); err != nil {
			return nil, err
		}
	}
	return answered(out, nil)
}

// readKind is a thing as it is read.
type readKind struct {
	ETag string `header:"ETag" doc:"Of its generation, for If-Match where it is changed; a Skill has none"`
	Body kindJSON
}

func (h *Hub) getKind(ctx context.Context, in *ThingPath) (*readKind, error) {
	p := account.FromContext(ctx)
	if in.Kind == kinds.SkillKind {
		doc, err := h.skillDocument(ctx, p, in.Namespace, in.Name)
		return &readKind{Body: doc}, err
	}
	r, err := h.kinds.Get(ctx, p, in.Kind, in.Namespace, in.Name)
	if err != nil {
		return nil, err
	}
	out, err := kindOf(r)
	if err == nil && in.Kind == kinds.ModelKind {
		digest, failed := h.kinds.Digest(ctx, p, kinds.Subject{Kind: in.Kind, Namespace: in.Namespace, Name: in.Name})
		out.Status.Digest, err = string(digest), failed
	}
	return &readKind{etagOf(r.Generation), out}, err
}

func (h *Hub) deleteKind(ctx context.Context, in *struct {
	ThingPath
	Dry
}) (*nothing, error) {
	p := account.FromContext(ctx)
	if in.Kind == kinds.SkillKind {
		return nil, h.deleteNamed(ctx, p, in.ThingPath, in.Dry.Dry)
	}
	return nil, stillNamed(in.ThingPath, h.kinds.Delete(ctx, p, in.Kind, in.Namespace, in.Name, in.Dry.Dry))
}

// stillNamed says what keeps a thing from going.
func stillNamed(t ThingPath, err error) error {
	e, ok := errors.AsType[*kinds.ReferencedError](err)
	if !ok {
		return err
	}
	var names []string
	for _, r := range e.By {
		names = append(names, fmt.Sprintf("%s %q", r.Kind, r.Name))
	}
	if e.Hidden > 0 {
		names = append(names, fmt.Sprintf("%d of others", e.Hidden))
	}
	return &Problem{Status: 409, Code: "in_use", Detail: fmt.Sprintf("%s %q is named by %s", t.Kind, t.Name, strings.Join(names, ", ")),
		References: referrersOf(e.By, e.Hidden), Next: "change or delete what is in references first"}
}

func referrersOf(by []kinds.Referrer, hidden int) *referencesJSON {
	out := &referencesJSON{Seen: make([]referenceJSON, len(by)), Others: hidden}
	for i, r := range by {
		if r.Namespace == "" {
			r.Namespace = ownNamespace
		}
		out.Seen[i] = referenceJSON{Kind: r.Kind, ID: r.ID, Name: r.Name, Namespace: r.Namespace, Slot: r.Slot}
	}
	return out
}

func (h *Hub) listReferrers(ctx context.Context, in *ThingPath) (*body[referencesJSON], error) {
	p := account.FromContext(ctx)
	if in.Kind == kinds.SkillKind {
		id, err := h.skillID(ctx, p, in.Namespace, in.Name)
		if err != nil {
			return nil, err
		}
		refs, err := h.library.References(ctx, p, id)
		if err != nil {
			return nil, err
		}
		return answered(*referencesOf(refs), nil)
	}
	by, hidden, err := h.kinds.Referrers(ctx, p, in.Kind, in.Namespace, in.Name)
	return answered(*referrersOf(by, hidden), err)
}

// skillID is the id of the skill of a name in a namespace as documents write it.
func (h *Hub) skillID(ctx context.Context, p account.Principal, namespace, name string) (string, error) {
	in, err := h.kinds.Namespace(ctx, p, namespace)
	if err != nil {
		return "", err
	}
	return h.library.ID(ctx, p, in, name)
}

func (h *Hub) deleteNamed(ctx context.Context, p account.Principal, t ThingPath, dry bool) error {
	id, err := h.skillID(ctx, p, t.Namespace, t.Name)
	if err != nil {
		return err
	}
	gone, err := h.library.Delete(ctx, p, id, dry, false)
	if err == nil && !gone.Deleted && (gone.References.Total() > 0 || gone.References.More) {
		return &library.ReferencedError{Skill: id, Name: t.Name, References: gone.References}
	}
	return err
}
