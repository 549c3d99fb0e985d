package skillapi

import (
	"context"
	"errors"
	"fmt"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/library"
)

// waitingJSON is a version that is awaiting review.
type waitingJSON struct {
	Name      string       `json:"name" doc:"Name of the skill"`
	Namespace string       `json:"namespace" doc:"Namespace of the skill: user:ID, group:ID, public or hub"`
	Version   SkillVersion `json:"version"`
}

type decisionJSON struct {
	Decision string `json:"decision" enum:"approved,changes-requested,rejected,pending" doc:"changes-requested rejects the version and needs a note; pending revokes a decision"`
	Digest   string `json:"digest" minLength:"1" maxLength:"100" doc:"Digest of the reviewed version; the decision applies to these files only"`
	Note     string `json:"note,omitempty" maxLength:"8192" doc:"Comment for its author and other reviewers"`
}

func (h *Handlers) reviewsAPI() {
	api.Add(h.Server, api.Operation("list-reviews", "GET", "/reviews", "List the versions that are pending your review, oldest first"), h.listReviews)
	api.Add(h.Server, api.Operation("review-version", "PUT", "/skills/{skill}/versions/{version}/review", "Approve or reject the code of a version, or request changes. An approved version becomes the current one if it is newer"), h.reviewVersion)
}

func (h *Handlers) listReviews(ctx context.Context, in *struct {
	api.Paging
	Namespace []string `query:"namespace,explode" maxItems:"500" doc:"Namespaces as in lists of skills; default all in which you may review"`
}) (*api.Body[api.ListBody[waitingJSON]], error) {
	p := account.FromContext(ctx)
	namespaces, err := h.namespaces(ctx, p, in.Namespace)
	if err != nil {
		return nil, err
	}
	rows, next, err := h.Library.ListPending(ctx, p, namespaces, in.Page())
	return api.PageOf(rows, next, err, func(v *library.Version) waitingJSON {
		return waitingJSON{v.Name, string(v.Namespace), newSkillVersion(v)}
	})
}

func (h *Handlers) reviewVersion(ctx context.Context, in *struct {
	VersionPath
	Body decisionJSON
}) (*api.NoBody, error) {
	d := library.Decision{Number: in.number(), Digest: in.Body.Digest, Review: library.Review(in.Body.Decision), Note: in.Body.Note}
	err := h.Library.ReviewVersion(ctx, account.FromContext(ctx), in.Skill, d)
	if errors.Is(err, library.ErrConflict) {
		return nil, &api.Problem{Status: 409, Code: "changed", Detail: "the files differ from those that you reviewed",
			Next: fmt.Sprintf("review them again, and send the digest from GET %s/skills/%s/versions", api.Prefix, in.Skill)}
	}
	return nil, err
}
