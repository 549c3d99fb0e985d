package skillapi

import (
	"context"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/library"
)

const draftHits = 10 // results per query

// PlacedDraft is a draft with the namespace in which it will be saved.
type PlacedDraft struct {
	api.Draft
	Namespace string `json:"namespace,omitempty" maxLength:"100" doc:"Namespace for a new skill, as in lists; default your own"`
}

// draftQueries is a draft with test queries.
type draftQueries struct {
	PlacedDraft
	Queries []string `json:"queries" minItems:"1" maxItems:"20" nullable:"false" doc:"What users might ask for, at most 1000 characters each"`
}

// Resolve implements [huma.ResolverWithPath].
func (q *draftQueries) Resolve(_ huma.Context, at *huma.PathBuffer) []error {
	for i, text := range q.Queries {
		if text == "" || len(text) > 4000 {
			return []error{&huma.ErrorDetail{Location: at.With("queries") + "[" + strconv.Itoa(i) + "]", Message: "must have 1 to 4000 bytes"}}
		}
	}
	return nil
}

func (h *Handlers) draftsAPI() {
	api.AddDraft(h.Server, api.Operation("check-draft", "POST", "/drafts/check", "Check a draft skill: its problems, its catalog line, and the permissions that it requests. Nothing is saved"), h.checkDraft)
	api.AddDraft(h.Server, api.Operation("find-draft", "POST", "/drafts/find", "Search with a draft skill among the existing ones"), h.searchDraft)
	pack := api.Operation("pack-draft", "POST", "/drafts/package", "Get the package of a draft skill: a ZIP that can be uploaded")
	api.AddDraft(h.Server, pack, h.packDraft)
	documentResponses(h.OpenAPI().Paths[pack.Path].Post, map[string]string{"200": "The package"}, "application/zip")
}

func (h *Handlers) checkDraft(ctx context.Context, in *struct{ Body PlacedDraft }) (*api.Body[checkedJSON], error) {
	p := account.FromContext(ctx)
	n, err := h.draftNamespace(ctx, p, in.Body)
	if err != nil {
		return nil, err
	}
	found, err := h.Library.CheckDraft(ctx, p, in.Body.ToLibrary(), n)
	if err != nil {
		return nil, err
	}
	return api.BodyOf(newCheckedJSON(found), nil)
}

// draftNamespace returns the namespace of a draft, or "" if it names none.
func (h *Handlers) draftNamespace(ctx context.Context, p account.Principal, d PlacedDraft) (library.Namespace, error) {
	if d.Namespace == "" {
		return "", nil
	}
	return h.Agents.ResolveNamespace(ctx, p, d.Namespace)
}

func (h *Handlers) searchDraft(ctx context.Context, in *struct{ Body draftQueries }) (*api.Body[api.ListBody[draftFoundJSON]], error) {
	p := account.FromContext(ctx)
	n, err := h.draftNamespace(ctx, p, in.Body.PlacedDraft)
	if err != nil {
		return nil, err
	}
	found, err := h.Library.SearchWithDraft(ctx, p, in.Body.ToLibrary(), n, in.Body.Queries, draftHits)
	return api.PageOf(found, "", err, newDraftFoundJSON)
}

func (h *Handlers) packDraft(ctx context.Context, in *struct{ Body api.Draft }) (*huma.StreamResponse, error) {
	packed, err := h.Library.PackDraft(ctx, account.FromContext(ctx), in.Body.ToLibrary())
	if err != nil {
		return nil, err
	}
	return h.streamFile(func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("Content-Type", "application/zip")
		w.Header().Set("Content-Disposition", attachmentHeader(packed.FileName))
		w.Write(packed.Data) // fails only if the client has disconnected
		return nil
	})
}
