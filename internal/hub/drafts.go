package hub

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/hub/queue"
)

// Limits of drafts.
const (
	maxLargeDrafts = 8
	largeDraft     = 1 << 20
	draftTime      = time.Minute
	draftHits      = 10
	draftValues    = 100_000 // JSON values in a body: parsed values take many times their size
)

// DraftFileJSON is a file of a draft skill.
type DraftFileJSON struct {
	Path   string `json:"path" maxLength:"1024" doc:"For example SKILL.md or scripts/run.py"`
	Text   string `json:"text,omitempty" doc:"Content"`
	Base64 []byte `json:"base64,omitempty" doc:"Content that is not text"`
}

// Resolve implements [huma.ResolverWithPath].
func (f *DraftFileJSON) Resolve(_ huma.Context, at *huma.PathBuffer) []error {
	if f.Text == "" || len(f.Base64) == 0 {
		return nil
	}
	return []error{&huma.ErrorDetail{Location: at.String(), Message: "has text and base64; send one of them"}}
}

// DraftJSON is a skill in progress. Its files have the limits of an upload.
type DraftJSON struct {
	Files   []DraftFileJSON `json:"files" nullable:"false" doc:"SKILL.md and all other files"`
	SkillID string          `json:"skill_id,omitempty" maxLength:"64" doc:"The skill to add a version to; absent for a new skill"`
}

func (d DraftJSON) draft() library.Draft {
	out := library.Draft{Of: d.SkillID, Files: make([]library.DraftFile, len(d.Files))}
	for i, f := range d.Files {
		data := f.Base64
		if f.Text != "" {
			data = []byte(f.Text)
		}
		out.Files[i] = library.DraftFile{Path: f.Path, Data: data}
	}
	return out
}

// PlacedDraft is a draft and its namespace.
type PlacedDraft struct {
	DraftJSON
	Namespace string `json:"namespace,omitempty" maxLength:"100" doc:"Namespace for a new skill, as in lists; default your own"`
}

// draftQueries is a draft with queries to try.
type draftQueries struct {
	PlacedDraft
	Queries []string `json:"queries" minItems:"1" maxItems:"20" nullable:"false" doc:"What users might ask for, at most 1000 characters each"`
}

// Resolve implements [huma.ResolverWithPath].
func (q *draftQueries) Resolve(_ huma.Context, at *huma.PathBuffer) []error {
	for i, text := range q.Queries {
		if text == "" || len(text) > 4000 {
			return []error{&huma.ErrorDetail{Location: at.With("queries") + "[" + strconv.Itoa(i) + "must have 1 to 4000 bytes", Message: "it is empty or too long"}}
		}
	}
	return nil
}

func (h *Hub) draftsAPI(api huma.API) {
	addDraftOperation(h, api, operation("check-draft", "POST", "/drafts/check", "Check a draft skill: its problems, its catalog line, and the permissions that it requests. Nothing is saved"), h.checkDraft)
	addDraftOperation(h, api, operation("find-draft", "POST", "/drafts/find", "Search with a draft skill among the existing ones"), h.searchDraft)
	pack := operation("pack-draft", "POST", "/drafts/package", "Get the package of a draft skill: a ZIP that can be uploaded")
	addDraftOperation(h, api, pack, h.packDraft)
	documentResponses(api.OpenAPI().Paths[pack.Path].Post, map[string]string{"200": "The package"}, "application/zip")
}

// addDraftOperation adds an operation whose body may contain the files of a
// skill.
func addDraftOperation[I, O any](h *Hub, api huma.API, op huma.Operation, f func(context.Context, *I) (*O, error)) {
	op.MaxBodyBytes, op.BodyReadTimeout = maxBody, draftTime
	op.Middlewares = append(op.Middlewares, h.queueLargeDraft)
	addFor(h, api, op, 2*draftTime, f)
}

// queueLargeDraft makes large bodies wait for a slot before they are read into
// memory.
func (h *Hub) queueLargeDraft(ctx huma.Context, next func(huma.Context)) {
	r, w := humago.Unwrap(ctx)
	r.Body = &limitedJSON{ReadCloser: r.Body, left: draftValues, onExceeded: func() { requestInfoFrom(ctx.Context()).tooManyValues = true }}
	p := account.FromContext(ctx.Context())
	if p.Anonymous() || 0 <= r.ContentLength && r.ContentLength <= largeDraft {
		next(ctx)
		return
	}
	waiting, stop := context.WithTimeoutCause(ctx.Context(), draftTime, errTimeout)
	defer stop()
	leave, err := h.drafts.Acquire(waiting, string(p.User))
	if errors.Is(err, queue.ErrFull) {
		err = &Problem{Status: 503, Code: "busy", Detail: "too many large drafts in progress", Next: "try again in a few seconds"}
	}
	if err != nil {
		h.writeProblem(w, r, err)
		return
	}
	defer leave()
	next(ctx)
}

func (h *Hub) checkDraft(ctx context.Context, in *struct{ Body PlacedDraft }) (*body[checkedJSON], error) {
	p := account.FromContext(ctx)
	n, err := h.draftNamespace(ctx, p, in.Body)
	if err != nil {
		return nil, err
	}
	found, err := h.library.CheckDraft(ctx, p, in.Body.draft(), n)
	if err != nil {
		return nil, err
	}
	return bodyOf(checkedOf(found), nil)
}

// draftNamespace returns the namespace of a draft, "" if it has none.
func (h *Hub) draftNamespace(ctx context.Context, p account.Principal, d PlacedDraft) (library.Namespace, error) {
	if d.Namespace == "" {
		return "", nil
	}
	return h.kinds.ResolveNamespace(ctx, p, d.Namespace)
}

func (h *Hub) searchDraft(ctx context.Context, in *struct{ Body draftQueries }) (*body[listBody[draftFoundJSON]], error) {
	p := account.FromContext(ctx)
	n, err := h.draftNamespace(ctx, p, in.Body.PlacedDraft)
	if err != nil {
		return nil, err
	}
	found, err := h.library.SearchWithDraft(ctx, p, in.Body.draft(), n, in.Body.Queries, draftHits)
	return pageOf(found, "", err, draftFoundOf)
}

func (h *Hub) packDraft(ctx context.Context, in *struct{ Body DraftJSON }) (*huma.StreamResponse, error) {
	packed, err := h.library.PackDraft(ctx, account.FromContext(ctx), in.Body.draft())
	if err != nil {
		return nil, err
	}
	return h.streamFile(func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("Content-Type", "application/zip")
		w.Header().Set("Content-Disposition", attachmentHeader(packed.FileName))
		w.Write(packed.Data) // the client has gone if this fails
		return nil
	})
}
