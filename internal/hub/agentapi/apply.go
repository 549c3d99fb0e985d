package agentapi

import (
	"cmp"
	"context"
	"fmt"
	"mime"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/skill"
)

// appliedJSON is the result of applying documents.
type appliedJSON struct {
	Changes []api.Change `json:"changes" nullable:"false" doc:"One for each document, in order, and then those for deletions of outdated generations"`
	Saved   bool         `json:"kept" doc:"Whether the changes were saved; false after a dry run"`
}

func newAppliedJSON(r *agents.Result) appliedJSON {
	out := appliedJSON{Changes: make([]api.Change, len(r.Changes)), Saved: r.Committed}
	for i, c := range r.Changes {
		out.Changes[i] = api.Change{Kind: visible(c.Kind), Namespace: visible(c.Namespace), Name: visible(c.Name), Line: c.Line, Outcome: string(c.Outcome), Diff: visibleChanges(c.Diff), Findings: api.DiagnosticsOf(c.Findings), Stale: c.Stale}
	}
	return out
}

// visibleChanges returns a copy of changes in which disallowed characters are
// made visible. In values, which are JSON, such characters are escaped.
func visibleChanges(changes []agents.FieldChange) []agents.FieldChange {
	out := make([]agents.FieldChange, len(changes))
	for i, c := range changes {
		out[i] = agents.FieldChange{Path: untrusted.New(c.Path).Visible(), Old: untrusted.EscapeJSON(c.Old), New: untrusted.EscapeJSON(c.New)}
	}
	return out
}

// maxDocumentBytes is the maximum size of a request's documents, in bytes.
const maxDocumentBytes = 1 << 20

func (h *Handlers) applyAPI() {
	// Set the request bodies after registration, which describes one type of body.
	object := &huma.MediaType{Schema: &huma.Schema{Type: "object"}}
	apply := api.Operation("apply", "POST", "/apply", "Create or update resources from documents, all or none")
	apply.MaxBodyBytes = maxDocumentBytes
	apply.RequestBody = &huma.RequestBody{Description: "Documents as YAML, one or several, or one as JSON"}
	api.Add(h.Server, apply, h.applyDocuments)
	apply.RequestBody.Required = false // a request can only delete
	apply.RequestBody.Content["text/yaml"] = apply.RequestBody.Content["application/yaml"]
	apply.RequestBody.Content["application/json"] = object
	put := api.Operation("put-kind", "PUT", "/kinds/{kind}/{namespace}/{name}", "Create or update a resource from its document")
	put.MaxBodyBytes = maxDocumentBytes
	put.RequestBody = &huma.RequestBody{Description: "The document, as it is read"}
	api.Add(h.Server, put, h.putKind)
	put.RequestBody.Content = map[string]*huma.MediaType{"application/json": object}
}

func (h *Handlers) applyDocuments(ctx context.Context, in *struct {
	Dry
	New     bool     `query:"new" doc:"Refuse a document that would change a resource whose metadata.generation it does not state"`
	Delete  []string `query:"delete,explode" maxItems:"20" doc:"Resource to delete after the documents are applied, as KIND/NAMESPACE/NAME, or KIND/NAMESPACE/NAME/GENERATION to refuse the request if the resource was changed since. All changes are made, or none. Missing resources are ignored. The body may then be empty"`
	RawBody []byte   `contentType:"application/yaml"`
}) (*api.Body[appliedJSON], error) {
	if len(in.RawBody) == 0 && len(in.Delete) == 0 {
		return nil, api.NewProblem(400, "the request body is empty", "send documents, or name resources to delete")
	}
	deletions, err := parseDeletions(in.Delete)
	if err != nil {
		return nil, err
	}
	name := "documents.yaml"
	switch kind := mediaType(ctx); kind {
	case "", "application/yaml", "text/yaml", "application/x-yaml", "text/x-yaml":
	case "application/json":
		name = "documents.json"
	default:
		return nil, api.NewProblem(415, "unsupported content type %.100q", "send YAML as Content-Type: application/yaml, or JSON", kind)
	}
	docs := agents.Parse(in.RawBody, name)
	for _, d := range docs {
		d.MustBeNew = in.New && d.BaseGeneration == 0
	}
	return h.apply(ctx, docs, deletions, in.Dry.Dry)
}

// deletableKinds lists the kinds that a request to apply documents can delete.
var deletableKinds = []string{agents.GhostKind, agents.BotKind, agents.TeamKind, agents.ModelKind, agents.ServerKind}

// parseDeletions parses the names of resources to delete.
func parseDeletions(names []string) ([]agents.Deletion, error) {
	var out []agents.Deletion
	for i, name := range names {
		part := strings.Split(name, "/")
		known := len(part) == 3 || len(part) == 4
		if !known || part[1] == "" || part[2] == "" || !slices.Contains(deletableKinds, part[0]) {
			return nil, api.InvalidFields(api.Fault{Where: fmt.Sprintf("query.delete[%d]", i), Message: "must be KIND/NAMESPACE/NAME of a Ghost, Bot, Team, Model or MCPServer"})
		}
		d := agents.Deletion{Kind: part[0], Namespace: part[1], Name: part[2]}
		if len(part) == 4 {
			var err error
			if d.Generation, err = strconv.ParseInt(part[3], 10, 64); err != nil || d.Generation < 1 {
				return nil, api.InvalidFields(api.Fault{Where: fmt.Sprintf("query.delete[%d]", i), Message: "must end in the number of a generation, or in the name"})
			}
		}
		out = append(out, d)
	}
	return out, nil
}

// mediaType returns the media type of the request body, without parameters.
func mediaType(ctx context.Context) string {
	kind, _, err := mime.ParseMediaType(api.RequestFrom(ctx).HTTP.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return kind
}

func (h *Handlers) putKind(ctx context.Context, in *struct {
	ResourcePath
	Dry
	Made    string `header:"If-Match" maxLength:"100" doc:"ETag from reading the resource. If it changed since, the request fails with 412. Without it and without metadata.generation, the document replaces the current state"`
	RawBody []byte `contentType:"application/yaml"`
}) (*api.Body[appliedJSON], error) {
	made, err := parseETag(in.Made)
	if err != nil {
		return nil, err
	}
	if _, err := h.Agents.ResolveNamespace(ctx, account.FromContext(ctx), in.Namespace); err != nil {
		return nil, err
	}
	if kind := mediaType(ctx); kind != "" && kind != "application/json" {
		return nil, api.NewProblem(415, "unsupported content type %.100q", "send the document as Content-Type: application/json", kind)
	}
	docs := agents.Parse(in.RawBody, "document.json")
	if len(docs) != 1 {
		return nil, api.NewProblem(422, "expected one document, got %d", "send one", len(docs))
	}
	if d := docs[0]; d.Kind != "" {
		if wrong := in.ResourcePath.checkMatchesPath(d); len(wrong) > 0 {
			return nil, &api.Problem{Status: 422, Code: "invalid", Detail: "the document does not match the path", Next: "use the same kind, namespace and name in both", Errors: wrong}
		}
		d.Namespace = in.Namespace
		if made != 0 && d.Kind == agents.SkillKind {
			return nil, api.NewProblem(422, "a skill has versions, not an ETag", "omit If-Match")
		}
		d.BaseGeneration = cmp.Or(made, d.BaseGeneration)
	}
	return h.apply(ctx, docs, nil, in.Dry.Dry)
}

// formatETag formats a generation as an ETag.
func formatETag(generation int64) string { return `"` + strconv.FormatInt(generation, 10) + `"` }

// parseETag parses an ETag. It returns 0 for "".
func parseETag(etag string) (int64, error) {
	if etag == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(strings.Trim(etag, `"`), 10, 64)
	if err != nil || n < 1 || formatETag(n) != etag {
		return 0, api.InvalidFields(api.Fault{Where: "header.If-Match", Message: "must be an ETag that reading the resource returned"})
	}
	return n, nil
}

// checkMatchesPath returns a fault for each difference between the path and the
// document. The document may omit its namespace.
func (t ResourcePath) checkMatchesPath(d *agents.Document) []api.Fault {
	var out []api.Fault
	if d.Kind != t.Kind {
		out = append(out, api.Fault{Where: "body.kind", Message: "must be " + t.Kind})
	}
	if d.Name != t.Name && d.Name != "" {
		out = append(out, api.Fault{Where: "body.metadata.name", Message: "differs from the path"})
	}
	if d.Namespace != t.Namespace && d.Namespace != "" && !(d.Namespace == api.OwnNamespace && t.Namespace == api.OwnNamespace) {
		out = append(out, api.Fault{Where: "body.metadata.namespace", Message: "differs from the path"})
	}
	return out
}

// apply applies documents and deletes resources. Unless dry is set, it returns an
// error if any document is refused.
func (h *Handlers) apply(ctx context.Context, docs []*agents.Document, deletions []agents.Deletion, dry bool) (*api.Body[appliedJSON], error) {
	result, err := h.Agents.ApplyAndDelete(ctx, account.FromContext(ctx), docs, deletions, dry)
	if err != nil {
		return nil, referencedProblem(err)
	}
	h.notifySkillChange(result)
	out := newAppliedJSON(result)
	if result.HasRefused() && !dry {
		return nil, rejectedError(result, out.Changes)
	}
	return api.BodyOf(out, nil)
}

// rejectedError returns the error response for refused documents. Its status
// depends on whether they are outdated, forbidden or invalid.
func rejectedError(r *agents.Result, changes []api.Change) *api.Problem {
	p := &api.Problem{Status: 422, Code: "refused", Detail: refusalReasons(r), Next: "fix the findings in changes and apply all documents again", Changes: changes}
	if r.OnlyStale() {
		p.Status, p.Code, p.Next = 412, "stale", "read the resource in stale again and change that; or omit the generation to overwrite it"
		p.Detail += ": " + staleReason(r)
	}
	if r.OnlyDenied() {
		p.Status, p.Code, p.Next = 403, "forbidden", "ask an owner or maintainer of the namespace"
	}
	return p
}

// staleReason returns the error message of the first outdated document.
func staleReason(r *agents.Result) string {
	for _, c := range r.Changes {
		for _, d := range c.Findings {
			if c.Stale != nil && d.Severity == skill.Error {
				return d.Message
			}
		}
	}
	return ""
}

// notifySkillChange notifies other nodes if a skill document was applied.
func (h *Handlers) notifySkillChange(r *agents.Result) {
	for _, c := range r.Changes {
		if r.Committed && c.Kind == agents.SkillKind && c.Outcome != agents.Unchanged {
			h.Library.NotifyChanged()
			return
		}
	}
}

// refusalReasons returns an error message that lists the first refused
// documents.
func refusalReasons(r *agents.Result) string {
	var names []string
	for _, c := range r.Changes {
		if c.Outcome == agents.Refused {
			name := strings.TrimSpace(c.Kind + " " + c.Name)
			if c.Line > 0 { // a deletion has none
				name += fmt.Sprintf(" (line %d)", c.Line)
			}
			names = append(names, name)
		}
	}
	const most = 5
	if n := len(names) - most; n > 0 {
		names = append(names[:most], fmt.Sprintf("%d more", n))
	}
	return "nothing was saved, because documents were rejected: " + strings.Join(names, ", ")
}
