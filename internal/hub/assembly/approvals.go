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

// reviewedGrants are the grants of one person with what reviewers approved: code runs only of
// versions that were, whatever the person allows.
type reviewedGrants struct {
	*GrantStore
	// checkRunnable says whether the person may run code of these bytes, as
	// [library.Library.CheckRunnable] does.
	checkRunnable func(ctx context.Context, d policy.Digest) error

	mu       sync.Mutex // guards what follows
	revision int64      // the revision of skills as of which they are known
	known    map[policy.Digest]error
}

var _ policy.NeedsReader = (*reviewedGrants)(nil)

// maxVerdicts bounds the digests of which it is known whether they may run.
const maxVerdicts = 1000

// reviewers are who approved what runs, as policy has it.
var reviewers = policy.Principal{ID: "reviewers", Kind: policy.UserPrincipal}

// FindWith implements [policy.NeedsReader]: the bytes and all that runs along have to be
// approved.
func (a *reviewedGrants) FindWith(ctx context.Context, p policy.Principal, subject policy.Digest, _ string, needs []policy.Need) (*policy.Grant, error) {
	if p != a.principal {
		return nil, fmt.Errorf("%s for %s: %w", subject.Short(), p, policy.ErrNotGranted)
	}
	if err := a.checkCached(ctx, subject); err != nil {
		return nil, refusalError(err, "")
	}
	for _, n := range needs {
		if err := a.checkCached(ctx, n.Digest); err != nil {
			return nil, refusalError(err, n.Name)
		}
	}
	allows := policy.Unbounded().Permissions() // within the bounds of the operator
	allows.Run = true
	return &policy.Grant{ID: "review." + subject.Short(), Principal: p, By: reviewers, Subject: subject, Name: "the code", Permissions: allows,
		Needs: slices.Clone(needs), Created: time.Unix(0, 0).UTC(), Scope: policy.Always}, nil
}

// checkCached is mayRun, which is asked once as long as no skill changes: what runs asks
// several times a second.
func (a *reviewedGrants) checkCached(ctx context.Context, d policy.Digest) error {
	revisions, err := a.db.Revisions(ctx)
	if err != nil {
		return err
	}
	at := revisions[store.SkillsRevision]
	a.mu.Lock()
	if a.known == nil || a.revision != at || len(a.known) >= maxVerdicts {
		a.revision, a.known = at, map[policy.Digest]error{}
	}
	said, ok := a.known[d]
	a.mu.Unlock()
	if ok {
		return said
	}
	said = a.checkRunnable(ctx, d)
	if said != nil && !isVerdict(said) {
		return said
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.revision == at {
		a.known[d] = said
	}
	return said
}

// isVerdict reports whether an error says that code may not run, and not that this cannot
// be known.
func isVerdict(err error) bool {
	_, reviewed := errors.AsType[*library.ReviewError](err)
	return reviewed || errors.Is(err, library.ErrNotFound) || isDenied(err)
}

// refusalError says why code does not run, in words for a person who sees the skill. Other
// errors say that it cannot be known.
func refusalError(err error, need string) error {
	reason, next := "", ""
	review, reviewed := errors.AsType[*library.ReviewError](err)
	switch {
	case reviewed && review.Review == library.Rejected:
		reason = "its code was rejected in review"
	case reviewed && review.Draft:
		reason, next = "it is a draft, and code runs of what was kept and reviewed", "save it, and have it reviewed"
	case reviewed:
		reason, next = "its code waits for a review", "have it reviewed"
	case isVerdict(err):
		reason = "you may not run its code"
	default:
		return err
	}
	if need != "" {
		reason = fmt.Sprintf("it needs %.200s, and of that, %s", need, reason)
	}
	return &policy.NotGrantedError{Reason: reason, Hint: next}
}

// truncate is the beginning of a text, of whole characters.
func truncate(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}
