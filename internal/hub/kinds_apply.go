package hub

import (
	"cmp"
	"context"
	"fmt"
	"mime"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/hub/kinds"
	"github.com/loadout-dev/loadout/skill"
)

// appliedJSON is what came of documents.
type appliedJSON struct {
	Changes []changeJSON `json:"changes" nullable:"false" doc:"One for each document, in their order"`
	Kept    bool         `json:"kept" doc:"Whether the changes are in force: not after a dry run"`
}

// changeJSON is what came of one document.
type changeJSON struct {
	Kind      string           `json:"kind"`
	Namespace string           `json:"namespace" doc:"As it was written"`
	Name      string           `json:"name"`
	Line      int              `json:"line" doc:"Where it is in what was sent"`
	Outcome   string           `json:"outcome" enum:"created,updated,unchanged,refused,skipped"`
	Diff      []fieldJSON      `json:"diff" nullable:"false" doc:"What is different; of what is created, all of it"`
	Findings  []diagnosticJSON `json:"findings" nullable:"false"`
	Stale     *staleJSON       `json:"stale,omitempty" doc:"What there is by now, where the document was made from an earlier one and is refused for that"`
}

// staleJSON is a thing that somebody changed in the meantime.
type staleJSON struct {
	Generation int64     `json:"generation" doc:"That it has now; 0 where it is gone"`
	ChangedBy  string    `json:"changedBy,omitempty" doc:"The id of a user"`
	Name       string    `json:"name,omitempty" doc:"Of that user"`
	Updated    time.Time `json:"updated,omitzero"`
}

// fieldJSON is one value that is different.
type fieldJSON struct {
	Path string `json:"path" doc:"As spec.skills[0]"`
	Old  string `json:"old,omitempty" doc:"As JSON, cut where it is long; not there for none"`
	New  string `json:"new,omitempty"`
}

func appliedOf(r *kinds.Result) appliedJSON {
	out := appliedJSON{Changes: make([]changeJSON, len(r.Changes)), Kept: r.Kept}
	for i, c := range r.Changes {
		diff := make([]fieldJSON, len(c.Diff))
		for j, f := range c.Diff {
			diff[j] = fieldJSON(f)
		}
		out.Changes[i] = changeJSON{c.Kind, c.Namespace, c.Name, c.Line, string(c.Outcome), diff, diagnosticsOf(c.Findings), nil}
		if s := c.Stale; s != nil {
			out.Changes[i].Stale = &staleJSON{s.Generation, string(s.By), s.Name, s.Changed}
		}
	}
	return out
}

// maxDocuments is how many bytes of documents are read.
const maxDocuments = 1 << 20

func (h *Hub) applyAPI(api huma.API) {
	// The API library would read JSON by itself: it is not told of it until it has begun.
	object := &huma.MediaType{Schema: &huma.Schema{Type: "object"}}
	apply := operation("apply", "POST", "/apply", "Make what documents say, all of it or, where one is refused, nothing")
	apply.MaxBodyBytes = maxDocuments
	apply.RequestBody = &huma.RequestBody{Description: "Documents as YAML, one or several, or one as JSON"}
	add(h, api, apply, h.applyDocuments)
	apply.RequestBody.Content["text/yaml"] = apply.RequestBody.Content["application/yaml"]
	apply.RequestBody.Content["application/json"] = object
	put := operation("put-kind", "PUT", "/kinds/{kind}/{namespace}/{name}", "Make or change a thing by its document")
	put.MaxBodyBytes = maxDocuments
	put.RequestBody = &huma.RequestBody{Description: "The document, as it is read"}
	add(h, api, put, h.putKind)
	put.RequestBody.Content = map[string]*huma.MediaType{"application/json": object}
}

func (h *Hub) applyDocuments(ctx context.Context, in *struct {
	Dry
	RawBody []byte `contentType:"application/yaml"`
}) (*body[appliedJSON], error) {
	name := "documents.yaml"
	switch kind := sentAs(ctx); kind {
	case "", "application/yaml", "text/yaml", "application/x-yaml", "text/x-yaml":
	case "application/json":
		name = "documents.json"
	default:
		return nil, status(415, "the body is %.100q, which is no kind of documents", "send YAML as Content-Type: application/yaml, or JSON", kind)
	}
	return h.apply(ctx, kinds.Parse(in.RawBody, name), in.Dry.Dry)
}

// sentAs is what a request says its body is.
func sentAs(ctx context.Context) string {
	kind, _, err := mime.ParseMediaType(visitOf(ctx).request.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return kind
}

func (h *Hub) putKind(ctx context.Context, in *struct {
	ThingPath
	Dry
	Made    string `header:"If-Match" maxLength:"100" doc:"The ETag that it had when it was read: where somebody changed it since, it is refused with 412. Without, and without metadata.generation, it takes the place of whatever is there"`
	RawBody []byte `contentType:"application/yaml"`
}) (*body[appliedJSON], error) {
	made, err := generationOf(in.Made)
	if err != nil {
		return nil, err
	}
	if _, err := h.kinds.Namespace(ctx, account.FromContext(ctx), in.Namespace); err != nil {
		return nil, err
	}
	if kind := sentAs(ctx); kind != "" && kind != "application/json" {
		return nil, status(415, "the body is %.100q", "send the document as Content-Type: application/json", kind)
	}
	docs := kinds.Parse(in.RawBody, "document.json")
	if len(docs) != 1 {
		return nil, status(422, "the body has %d documents", "send one", len(docs))
	}
	if d := docs[0]; d.Kind != "" {
		if wrong := in.ThingPath.differs(d); len(wrong) > 0 {
			return nil, &Problem{Status: 422, Code: "invalid", Detail: "the document is of something else than the path", Next: "write the same in both", Errors: wrong}
		}
		d.Namespace = in.Namespace
		if made != 0 && d.Kind == kinds.SkillKind {
			return nil, status(422, "a skill has versions, and no ETag", "leave If-Match out")
		}
		d.Made = cmp.Or(made, d.Made)
	}
	return h.apply(ctx, docs, in.Dry.Dry)
}

// etagOf is how a generation is told and asked for in headers.
func etagOf(generation int64) string { return `"` + strconv.FormatInt(generation, 10) + `"` }

// generationOf is that of an ETag, 0 for none.
func generationOf(etag string) (int64, error) {
	if etag == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(strings.Trim(etag, `"`), 10, 64)
	if err != nil || n < 1 || etagOf(n) != etag {
		return 0, &Problem{Status: 422, Code: "invalid", Detail: "the request cannot be taken as it is", Next: "mend what is in errors",
			Errors: []Fault{{"header.If-Match", "it is no ETag of a thing: send the one that reading it gave"}}}
	}
	return n, nil
}

// differs says what of a document is not what a path says. It may leave its namespace to
// the path.
func (t ThingPath) differs(d *kinds.Document) []Fault {
	var out []Fault
	if d.Kind != t.Kind {
		out = append(out, Fault{"body.kind", "it is not " + t.Kind})
	}
	if d.Name != t.Name && d.Name != "" {
		out = append(out, Fault{"body.metadata.name", "it is not that of the path"})
	}
	if d.Namespace != t.Namespace && d.Namespace != "" && !(d.Namespace == ownNamespace && t.Namespace == ownNamespace) {
		out = append(out, Fault{"body.metadata.namespace", "it is not that of the path"})
	}
	return out
}

// apply applies documents. With one that is refused it fails, unless that is a trial.
func (h *Hub) apply(ctx context.Context, docs []*kinds.Document, dry bool) (*body[appliedJSON], error) {
	result, err := h.kinds.Apply(ctx, account.FromContext(ctx), docs, dry)
	if err != nil {
		return nil, err
	}
	h.tellSkills(result)
	out := appliedOf(result)
	if result.Refused() && !dry {
		return nil, refused(result, out.Changes)
	}
	return answered(out, nil)
}

// refused is why documents are not applied: all of what is wrong is that the principal
// may not, or they are to be mended.
func refused(r *kinds.Result, changes []changeJSON) *Problem {
	p := &Problem{Status: 422, Code: "refused", Detail: refusals(r), Next: "mend what is in the findings of changes, and apply all of it again", Changes: changes}
	if r.Stale() {
		p.Status, p.Code, p.Next = 412, "stale", "read what is in stale of changes again, and make the change there; or send it without a generation to take its place"
		p.Detail += ": " + whyStale(r)
	}
	if r.Denied() {
		p.Status, p.Code, p.Next = 403, "forbidden", "ask somebody who manages the namespace"
	}
	return p
}

// whyStale is what the first document that came too late is told.
func whyStale(r *kinds.Result) string {
	for _, c := range r.Changes {
		for _, d := range c.Findings {
			if c.Stale != nil && d.Severity == skill.Error {
				return d.Message
			}
		}
	}
	return ""
}

// tellSkills tells other nodes where a skill was among what was applied.
func (h *Hub) tellSkills(r *kinds.Result) {
	for _, c := range r.Changes {
		if r.Kept && c.Kind == kinds.SkillKind && c.Outcome != kinds.Unchanged {
			h.library.Changed()
			return
		}
	}
}

// refusals names the documents that were refused, of many the first.
func refusals(r *kinds.Result) string {
	var names []string
	for _, c := range r.Changes {
		if c.Outcome == kinds.Refused {
			names = append(names, strings.TrimSpace(fmt.Sprintf("%s %s (line %d)", c.Kind, c.Name, c.Line)))
		}
	}
	const most = 5
	if n := len(names) - most; n > 0 {
		names = append(names[:most], fmt.Sprintf("%d more", n))
	}
	return "nothing is kept, as documents are refused: " + strings.Join(names, ", ")
}
