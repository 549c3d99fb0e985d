package assembly

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/policy"
)

// approvals are the grants of one person with what reviewers approved: code runs only of
// versions that were, whatever the person allows.
type approvals struct {
	*GrantStore
	// mayRun says whether the person may run code of these bytes, as
	// [library.Library.CheckRunnable] does.
	mayRun func(ctx context.Context, d policy.Digest) error

	mu    sync.Mutex // guards what follows
	at    int64      // the revision of skills as of which they are known
	known map[policy.Digest]error
}

var _ policy.NeedsReader = (*approvals)(nil)

// maxVerdicts bounds the digests of which it is known whether they may run.
const maxVerdicts = 1000

// reviewers are who approved what runs, as policy has it.
var reviewers = policy.Principal{ID: "reviewers", Kind: policy.UserPrincipal}

// FindWith implements [policy.NeedsReader]: the bytes and all that runs along have to be
// approved.
func (a *approvals) FindWith(ctx context.Context, p policy.Principal, subject policy.Digest, _ string, needs []policy.Need) (*policy.Grant, error) {
	if p != a.who {
		return nil, fmt.Errorf("%s for %s: %w", subject.Short(), p, policy.ErrNotGranted)
	}
	if err := a.decide(ctx, subject); err != nil {
		return nil, refusal(err, "")
	}
	for _, n := range needs {
		if err := a.decide(ctx, n.Digest); err != nil {
			return nil, refusal(err, n.Name)
		}
	}
	allows := policy.Unbounded().Permissions() // within the bounds of the operator
	allows.Run = true
	return &policy.Grant{ID: "review." + subject.Short(), Principal: p, By: reviewers, Subject: subject, Name: "the code", Permissions: allows,
		Needs: slices.Clone(needs), Created: time.Unix(0, 0).UTC(), Scope: policy.Always}, nil
}

// decide is mayRun, which is asked once as long as no skill changes: what runs asks
// several times a second.
func (a *approvals) decide(ctx context.Context, d policy.Digest) error {
	revisions, err := a.db.Revisions(ctx)
	if err != nil {
		return err
	}
	at := revisions[store.SkillsRevision]
	a.mu.Lock()
	if a.known == nil || a.at != at || len(a.known) >= maxVerdicts {
		a.at, a.known = at, map[policy.Digest]error{}
	}
	said, ok := a.known[d]
	a.mu.Unlock()
	if ok {
		return said
	}
	said = a.mayRun(ctx, d)
	if said != nil && !decided(said) {
		return said
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.at == at {
		a.known[d] = said
	}
	return said
}

// decided reports whether an error says that code may not run, and not that this cannot
// be known.
func decided(err error) bool {
	_, reviewed := errors.AsType[*library.ReviewError](err)
	return reviewed || errors.Is(err, library.ErrNotFound) || isDenied(err)
}

// refusal says why code does not run, in words for a person who sees the skill. Other
// errors say that it cannot be known.
func refusal(err error, need string) error {
	reason, next := "", ""
	review, reviewed := errors.AsType[*library.ReviewError](err)
	switch {
	case reviewed && review.Review == library.Rejected:
		reason = "its code was rejected in review"
	case reviewed && review.Draft:
		reason, next = "it is a draft, and code runs of what was kept and reviewed", "save it, and have it reviewed"
	case reviewed:
		reason, next = "its code waits for a review", "have it reviewed"
	case decided(err):
		reason = "you may not run its code"
	default:
		return err
	}
	if need != "" {
		reason = fmt.Sprintf("it needs %.200s, and of that, %s", need, reason)
	}
	return &policy.NotGrantedError{Reason: reason, Hint: next}
}

// clipped is the beginning of a text, of whole characters.
func clipped(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}
