package agentapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/untrusted"
)

// kindJSON is a stored resource in document form, so that it can be applied again.
// Applying ignores the status.
type kindJSON struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   kindMetaJSON    `json:"metadata"`
	Spec       json.RawMessage `json:"spec,omitempty" doc:"Content; absent if it is damaged. In lists a Skill has no prompt"`
	Status     kindStatusJSON  `json:"status"`
}

type kindMetaJSON struct {
	Name        string `json:"name"`
	Namespace   string `json:"namespace" doc:"default for your own, public, or the name of a group"`
	Description string `json:"description,omitempty"`
}

type kindStatusJSON struct {
	ID         string           `json:"id"`
	Generation int64            `json:"generation" doc:"Grows with each change"`
	Digest     string           `json:"digest,omitempty" doc:"Digest of the current Model or Skill; secrets are granted to it"`
	CreatedBy  string           `json:"createdBy"`
	ChangedBy  string           `json:"changedBy,omitempty"`
	Created    time.Time        `json:"created"`
	Updated    time.Time        `json:"updated"`
	Can        []account.Action `json:"can,omitempty" doc:"What you may do with it: kind.use, kind.apply or server.apply, and kind.delete; absent in lists"`
	Findings   []api.Diagnostic `json:"findings,omitempty" doc:"Problems"`
}

func newKindMetaJSON(r *agents.Resource) kindMetaJSON {
	out := kindMetaJSON{r.Name, r.Namespace, untrusted.New(r.Description).ForPage()}
	if out.Namespace == "" {
		out.Namespace = api.OwnNamespace
	}
	return out
}

// newKindJSON returns a resource in document form. A damaged resource has no
// spec.
func newKindJSON(r *agents.Resource) (kindJSON, error) {
	out := kindJSON{APIVersion: r.APIVersion, Kind: r.Kind, Metadata: newKindMetaJSON(r),
		Status: kindStatusJSON{ID: r.ID, Generation: r.Generation, CreatedBy: r.CreatedBy, ChangedBy: r.ChangedBy, Created: r.Created, Updated: r.Updated, Can: r.Can}}
	if len(r.Findings) > 0 {
		out.Status.Findings = api.DiagnosticsOf(r.Findings)
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

// KindPath is the path parameter for a kind.
type KindPath struct {
	Kind string `path:"kind" enum:"Skill,Ghost,Bot,Team,Model,MCPServer"`
}

// ResourcePath holds the path parameters that identify a resource.
type ResourcePath struct {
	KindPath
	Namespace string `path:"namespace" minLength:"1" maxLength:"150" doc:"default for your own, public, the name of a group, user:ID or group:ID"`
	Name      string `path:"name" minLength:"1" maxLength:"1024"`
}

func (t ResourcePath) String() string { return t.Kind + "/" + t.Namespace + "/" + t.Name }

// Dry is the query parameter that selects a dry run.
type Dry struct {
	Dry bool `query:"dry" doc:"Report the changes without making them"`
}

func (h *Handlers) kindsAPI() {
	h.applyAPI()
	api.Add(h.Server, api.Operation("list-kinds", "GET", "/kinds/{kind}", "List the resources of a kind by name"), h.listKinds)
	api.Add(h.Server, api.Operation("list-agents", "GET", "/agents", "List the Ghosts, Bots and Teams by kind and name, the first 100 of each kind without their content"), h.listAgents)
	api.Add(h.Server, api.Operation("get-kind", "GET", "/kinds/{kind}/{namespace}/{name}", "Get a resource as a document"), h.getKind)
	api.Add(h.Server, api.Operation("delete-kind", "DELETE", "/kinds/{kind}/{namespace}/{name}", "Delete a resource without references to it"), h.deleteKind)
	api.Add(h.Server, api.Operation("list-referrers", "GET", "/kinds/{kind}/{namespace}/{name}/referrers", "List the references to a resource"), h.listReferrers)
	api.Add(h.Server, api.Operation("get-profile", "GET", "/kinds/{kind}/{namespace}/{name}/profile", "Get the resolved skills, servers, model and members of a Ghost, Bot or Team"), h.getProfile)
}

func (h *Handlers) listKinds(ctx context.Context, in *struct {
	KindPath
	Namespace string `query:"namespace" maxLength:"150" doc:"Only this namespace; default all that you can see"`
	api.Paging
}) (*api.Body[api.ListBody[kindJSON]], error) {
	p := account.FromContext(ctx)
	if in.Kind == agents.SkillKind {
		return h.listSkillDocuments(ctx, p, in.Namespace, in.Paging)
	}
	found, next, err := h.Agents.List(ctx, p, in.Kind, in.Namespace, in.Page())
	if err != nil {
		return nil, err
	}
	out := api.ListBody[kindJSON]{Items: make([]kindJSON, len(found)), Next: next}
	for i, r := range found {
		if out.Items[i], err = newKindJSON(r); err != nil {
			return nil, err
		}
	}
	return api.BodyOf(out, nil)
}

// agentJSON is a resource that can be the agent of a conversation.
type agentJSON struct {
	Kind     string       `json:"kind" enum:"Ghost,Bot,Team"`
	Metadata kindMetaJSON `json:"metadata"`
}

// agentsPerKind is the number of resources of each kind that listAgents returns.
const agentsPerKind = 100

func (h *Handlers) listAgents(ctx context.Context, _ *api.NoBody) (*api.Body[api.ListBody[agentJSON]], error) {
	out := api.ListBody[agentJSON]{Items: []agentJSON{}}
	for _, kind := range []string{agents.GhostKind, agents.BotKind, agents.TeamKind} {
		found, _, err := h.Agents.List(ctx, account.FromContext(ctx), kind, "", store.Page{Limit: agentsPerKind})
		if err != nil {
			return nil, err
		}
		for _, r := range found {
			out.Items = append(out.Items, agentJSON{kind, newKindMetaJSON(r)})
		}
	}
	return api.BodyOf(out, nil)
}

// readKind is the response that contains a resource.
type readKind struct {
	ETag string `header:"ETag" doc:"Generation, for If-Match; absent for a Skill"`
	Body kindJSON
}

func (h *Handlers) getKind(ctx context.Context, in *ResourcePath) (*readKind, error) {
	p := account.FromContext(ctx)
	if in.Kind == agents.SkillKind {
		doc, err := h.skillDocument(ctx, p, in.Namespace, in.Name)
		return &readKind{Body: doc}, err
	}
	r, err := h.Agents.Get(ctx, p, in.Kind, in.Namespace, in.Name)
	if err != nil {
		return nil, err
	}
	out, err := newKindJSON(r)
	if err == nil && in.Kind == agents.ModelKind {
		digest, failed := h.Agents.SubjectDigest(ctx, p, agents.Subject{Kind: in.Kind, Namespace: in.Namespace, Name: in.Name})
		out.Status.Digest, err = string(digest), failed
	}
	return &readKind{formatETag(r.Generation), out}, err
}

func (h *Handlers) deleteKind(ctx context.Context, in *struct {
	ResourcePath
	Dry
}) (*api.NoBody, error) {
	p := account.FromContext(ctx)
	if in.Kind == agents.SkillKind {
		return nil, h.deleteNamed(ctx, p, in.ResourcePath, in.Dry.Dry)
	}
	return nil, referencedProblem(h.Agents.Delete(ctx, p, in.Kind, in.Namespace, in.Name, in.Dry.Dry))
}

// referencedProblem replaces an [*agents.ReferencedError] with a problem that
// lists the referring resources. It returns other errors unchanged.
func referencedProblem(err error) error {
	e, ok := errors.AsType[*agents.ReferencedError](err)
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
	return &api.Problem{Status: 409, Code: "in_use", Detail: fmt.Sprintf("%s %q is referenced by %s", e.Kind, e.Name, strings.Join(names, ", ")),
		References: newReferences(e.By, e.Hidden), Next: "change or delete the items in references first"}
}

func newReferences(by []agents.Referrer, hidden int) *library.References {
	out := &library.References{Visible: make([]library.Reference, len(by)), Hidden: hidden}
	for i, r := range by {
		if r.Namespace == "" {
			r.Namespace = api.OwnNamespace
		}
		out.Visible[i] = library.Reference{Kind: r.Kind, ID: r.ID, Name: r.Name, Namespace: store.Namespace(r.Namespace), Slot: r.Slot}
	}
	return out
}

func (h *Handlers) listReferrers(ctx context.Context, in *ResourcePath) (*api.Body[library.References], error) {
	p := account.FromContext(ctx)
	if in.Kind == agents.SkillKind {
		id, err := h.skillID(ctx, p, in.Namespace, in.Name)
		if err != nil {
			return nil, err
		}
		refs, err := h.Library.References(ctx, p, id)
		if err != nil {
			return nil, err
		}
		return api.BodyOf(*refs, nil)
	}
	by, hidden, err := h.Agents.Referrers(ctx, p, in.Kind, in.Namespace, in.Name)
	return api.BodyOf(*newReferences(by, hidden), err)
}

// skillID returns the ID of the skill with the given name. namespace is in the
// form that documents use.
func (h *Handlers) skillID(ctx context.Context, p account.Principal, namespace, name string) (string, error) {
	in, err := h.Agents.ResolveNamespace(ctx, p, namespace)
	if err != nil {
		return "", err
	}
	return h.Library.FindID(ctx, p, in, name)
}

func (h *Handlers) deleteNamed(ctx context.Context, p account.Principal, t ResourcePath, dry bool) error {
	id, err := h.skillID(ctx, p, t.Namespace, t.Name)
	if err != nil {
		return err
	}
	gone, err := h.Library.Delete(ctx, p, id, dry, false)
	if err == nil && !gone.Deleted && (gone.References.Total() > 0 || gone.References.More) {
		return &library.ReferencedError{Skill: id, Name: t.Name, References: gone.References}
	}
	return err
}
