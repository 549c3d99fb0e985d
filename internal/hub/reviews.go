package hub

import (
	"context"
	"errors"
	"fmt"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/hub/library"
)

// waitingJSON is a version that waits for a review.
type waitingJSON struct {
	Name      string           `json:"name" doc:"Of the skill"`
	Namespace string           `json:"namespace" doc:"Of the skill: user:ID, group:ID or public"`
	Version   SkillVersionJSON `json:"version"`
}

type decisionJSON struct {
	Decision string `json:"decision" enum:"approved,rejected,pending" doc:"pending takes a decision back"`
	Digest   string `json:"digest" minLength:"1" maxLength:"100" doc:"Of the version, as you saw it: what is decided is decided about these files"`
	Note     string `json:"note,omitempty" maxLength:"8192" doc:"For those who uploaded and use it"`
}

func (h *Hub) reviewsAPI(api huma.API) {
	add(h, api, operation("list-reviews", "GET", "/reviews", "Versions that wait for a review of yours, the oldest first"), h.listReviews)
	add(h, api, operation("review-version", "PUT", "/skills/{skill}/versions/{version}/review", "Decide whether the code of a version may run"), h.reviewVersion)
}

func (h *Hub) listReviews(ctx context.Context, in *struct {
	Paging
	Namespace []string `query:"namespace,explode" maxItems:"500" doc:"As in lists of skills; without, all in which you review"`
}) (*body[listed[waitingJSON]], error) {
	p := account.FromContext(ctx)
	namespaces, err := h.namespaces(ctx, p, in.Namespace)
	if err != nil {
		return nil, err
	}
	rows, next, err := h.library.Waiting(ctx, p, namespaces, in.page())
	return page(rows, next, err, func(v *library.Version) waitingJSON {
		return waitingJSON{v.Name, string(v.Namespace), skillVersionOf(v)}
	})
}

func (h *Hub) reviewVersion(ctx context.Context, in *struct {
	VersionPath
	Body decisionJSON
}) (*nothing, error) {
	d := library.Decision{Number: in.number(), Digest: in.Body.Digest, Review: library.Review(in.Body.Decision), Note: in.Body.Note}
	err := h.library.Decide(ctx, account.FromContext(ctx), in.Skill, d)
	if errors.Is(err, library.ErrConflict) {
		return nil, &Problem{Status: 409, Code: "changed", Detail: "the files are not those that you saw",
			Next: fmt.Sprintf("look at them again, and send the digest of GET %s/skills/%s/versions", base, in.Skill)}
	}
	return nil, err
}
