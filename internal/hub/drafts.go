package hub

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/hub/queue"
)

// Bounds of drafts: how many with large bodies are taken at once, what is a large one, how
// long it may take to arrive, and how many hits of a query are told.
const (
	draftsAtOnce = 8
	largeDraft   = 1 << 20
	draftTime    = time.Minute
	draftHits    = 10
	draftValues  = 100_000 // of JSON in a body: each takes many times its bytes once it is read
)

// DraftFileJSON is a file of a skill that is being written.
type DraftFileJSON struct {
	Path   string `json:"path" maxLength:"1024" doc:"As SKILL.md or scripts/run.py"`
	Text   string `json:"text,omitempty" doc:"What is in it"`
	Base64 []byte `json:"base64,omitempty" doc:"What is in it, where that is no text"`
}

// Resolve implements [huma.ResolverWithPath].
func (f *DraftFileJSON) Resolve(_ huma.Context, at *huma.PathBuffer) []error {
	if f.Text == "" || len(f.Base64) == 0 {
		return nil
	}
	return []error{&huma.ErrorDetail{Location: at.String(), Message: "it has text and base64; send one of them"}}
}

// DraftJSON is a skill that is being written. Its files are bounded as those of an upload.
type DraftJSON struct {
	Files   []DraftFileJSON `json:"files" nullable:"false" doc:"SKILL.md and what else the skill has"`
	SkillID string          `json:"skill_id,omitempty" maxLength:"64" doc:"Of the skill that it is to be a version of; not there for a new one"`
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

// PlacedDraft is a draft, and where it is to be kept.
type PlacedDraft struct {
	DraftJSON
	Namespace string `json:"namespace,omitempty" maxLength:"100" doc:"Where a new skill is to be kept, as in lists; without, your own"`
}

// draftQueries is a draft, and what is searched for.
type draftQueries struct {
	PlacedDraft
	Queries []string `json:"queries" minItems:"1" maxItems:"20" nullable:"false" doc:"What somebody might ask for, in at most 1000 characters each"`
}

// Resolve implements [huma.ResolverWithPath].
func (q *draftQueries) Resolve(_ huma.Context, at *huma.PathBuffer) []error {
	for i, text := range q.Queries {
		if text == "" || len(text) > 4000 {
			return []error{&huma.ErrorDetail{Location: at.With("queries") + "[" + strconv.Itoa(i) + "]", Message: "it is empty or too long"}}
		}
	}
	return nil
}

func (h *Hub) draftsAPI(api huma.API) {
	takesDraft(h, api, operation("check-draft", "POST", "/drafts/check", "What there is to know of a skill that is being written: what is wrong with it, how a model is told of it, what it asks for. Nothing is kept"), h.checkDraft)
	takesDraft(h, api, operation("find-draft", "POST", "/drafts/find", "What a search finds with a skill that is being written among the others"), h.findDraft)
	pack := operation("pack-draft", "POST", "/drafts/package", "The package of a skill that is being written: a ZIP, as an upload takes it")
	takesDraft(h, api, pack, h.packDraft)
	answers(api.OpenAPI().Paths[pack.Path].Post, map[string]string{"200": "The package"}, "application/zip")
}

// takesDraft adds an operation whose body may have the files of a skill.
func takesDraft[I, O any](h *Hub, api huma.API, op huma.Operation, f func(context.Context, *I) (*O, error)) {
	op.MaxBodyBytes, op.BodyReadTimeout = maxBody, draftTime
	op.Middlewares = append(op.Middlewares, h.turnForDraft)
	addFor(h, api, op, 2*draftTime, f)
}

// turnForDraft has large bodies wait for a place, before they are read into memory.
func (h *Hub) turnForDraft(ctx huma.Context, next func(huma.Context)) {
	r, w := humago.Unwrap(ctx)
	r.Body = &roomy{ReadCloser: r.Body, left: draftValues, ended: func() { visitOf(ctx.Context()).crowded = true }}
	p := account.FromContext(ctx.Context())
	if p.Anonymous() || 0 <= r.ContentLength && r.ContentLength <= largeDraft {
		next(ctx)
		return
	}
	waiting, stop := context.WithTimeoutCause(ctx.Context(), draftTime, errSlow)
	defer stop()
	leave, err := h.drafts.Enter(waiting, string(p.User))
	if errors.Is(err, queue.ErrFull) {
		err = &Problem{Status: 503, Code: "busy", Detail: "too many large skills are being written at this moment", Next: "try again in a few seconds"}
	}
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	defer leave()
	next(ctx)
}

func (h *Hub) checkDraft(ctx context.Context, in *struct{ Body PlacedDraft }) (*body[checkedJSON], error) {
	p := account.FromContext(ctx)
	n, err := h.draftPlace(ctx, p, in.Body)
	if err != nil {
		return nil, err
	}
	found, err := h.library.CheckDraft(ctx, p, in.Body.draft(), n)
	if err != nil {
		return nil, err
	}
	return answered(checkedOf(found), nil)
}

// draftPlace is where a draft is to be kept; "" is not said.
func (h *Hub) draftPlace(ctx context.Context, p account.Principal, d PlacedDraft) (library.Namespace, error) {
	if d.Namespace == "" {
		return "", nil
	}
	return h.kinds.Namespace(ctx, p, d.Namespace)
}

func (h *Hub) findDraft(ctx context.Context, in *struct{ Body draftQueries }) (*body[listed[draftFoundJSON]], error) {
	p := account.FromContext(ctx)
	n, err := h.draftPlace(ctx, p, in.Body.PlacedDraft)
	if err != nil {
		return nil, err
	}
	found, err := h.library.FindDraft(ctx, p, in.Body.draft(), n, in.Body.Queries, draftHits)
	return page(found, "", err, draftFoundOf)
}

func (h *Hub) packDraft(ctx context.Context, in *struct{ Body DraftJSON }) (*huma.StreamResponse, error) {
	packed, err := h.library.Pack(ctx, account.FromContext(ctx), in.Body.draft())
	if err != nil {
		return nil, err
	}
	return h.written(func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("Content-Type", "application/zip")
		w.Header().Set("Content-Disposition", saved(packed.FileName))
		w.Write(packed.Data) // whom it does not reach has gone
		return nil
	})
}
