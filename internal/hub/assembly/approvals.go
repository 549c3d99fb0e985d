package assembly

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/lease"
	"github.com/loadout-dev/loadout/internal/skillname"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/policy"
)

// reviewedGrants is a grant store that also checks reviews: code is allowed to
// run only if its version is approved, regardless of what the user permits.
type reviewedGrants struct {
	policy.Store
	db        *store.DB
	principal policy.Principal
	// checkRunnable is [library.Library.CheckRunnable] for the user.
	checkRunnable func(ctx context.Context, d policy.Digest) error

	mu       sync.Mutex // guards the fields below
	revision int64      // revision of the skills at which known was read
	known    map[policy.Digest]error
}

var (
	_ lease.NeedsFinder  = (*reviewedGrants)(nil)
	_ lease.GroupChecker = (*reviewedGrants)(nil)
)

// maxVerdicts is the maximum number of cached checkRunnable results.
const maxVerdicts = 1000

// reviewers is the principal recorded in grants for approved code.
var reviewers = policy.Principal{ID: "reviewers", Kind: policy.UserPrincipal}

// FindWith implements [lease.NeedsFinder]. It returns a grant only if the code
// and all its dependencies are approved.
func (a *reviewedGrants) FindWith(ctx context.Context, p policy.Principal, subject policy.Digest, session string, needs []policy.Need) (*policy.Grant, error) {
	if p != a.principal {
		return nil, fmt.Errorf("find grant of %s for %s: %w", subject.Short(), p, policy.ErrNotGranted)
	}
	err := a.checkCached(ctx, subject)
	if errors.Is(err, library.ErrNotFound) {
		return a.findServed(ctx, subject, session)
	}
	if err != nil {
		return nil, refusalError(err, "")
	}
	for _, n := range needs {
		if err := a.checkCached(ctx, n.Digest); err != nil {
			return nil, refusalError(err, n.Name)
		}
	}
	allows := policy.Permissions{Run: true, Network: []string{"*"}, Secrets: []string{"*"}, WorkspaceWrite: true} // the operator's bounds still apply
	return &policy.Grant{ID: "review." + subject.Short(), Principal: p, By: reviewers, Subject: subject, Name: "the code", Permissions: allows,
		Needs: slices.Clone(needs), Created: time.Unix(0, 0).UTC(), Scope: policy.Always}, nil
}

// findServed returns the user's own approval of a skill of an MCP server. Nobody
// reviews such skills for all users, because they are not in the library.
func (a *reviewedGrants) findServed(ctx context.Context, subject policy.Digest, session string) (*policy.Grant, error) {
	g, err := a.Find(ctx, a.principal, subject, session)
	if err != nil {
		return nil, err
	}
	if !skillname.IsServed(g.Name, g.Origin) {
		return nil, fmt.Errorf("find grant of %s: %w", subject.Short(), policy.ErrNotGranted)
	}
	return g, nil
}

// AreGranted implements [lease.GroupChecker] with one query. It returns false if a
// skill has changed since FindWith found the grants.
func (a *reviewedGrants) AreGranted(ctx context.Context, all []policy.Grant) bool {
	revisions, err := a.db.Revisions(ctx)
	if err != nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	isApproved := func(d policy.Digest) bool {
		said, known := a.known[d]
		return known && said == nil
	}
	for _, g := range all {
		if g.By != reviewers || g.Principal != a.principal || !isApproved(g.Subject) || slices.ContainsFunc(g.Needs, func(n policy.Need) bool { return !isApproved(n.Digest) }) {
			return false
		}
	}
	return a.revision == revisions[store.SkillsRevision]
}

// checkCached caches the results of checkRunnable until a skill changes, because
// a running script is checked several times a second.
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

// isVerdict reports whether err means that code is not allowed to run, rather
// than that the check failed.
func isVerdict(err error) bool {
	_, reviewed := errors.AsType[*library.ReviewError](err)
	return reviewed || errors.Is(err, library.ErrNotFound) || account.IsDenied(err)
}

// refusalError converts an error from checkRunnable to a
// [*lease.NotGrantedError] that tells the user what to do. If the code belongs
// to a dependency, need is the dependency's name. Other errors are returned
// unchanged.
func refusalError(err error, need string) error {
	reason, next := "", ""
	review, reviewed := errors.AsType[*library.ReviewError](err)
	switch {
	case reviewed && review.Review == library.Rejected:
		reason = "its code was rejected in review"
	case reviewed && review.Draft:
		reason, next = "its code is an unsaved draft", "save the skill and ask for a review"
	case reviewed:
		reason, next = "its code is not reviewed yet", "ask a reviewer to review it"
	case isVerdict(err):
		reason = "you may not run its code"
	default:
		return err
	}
	if need != "" {
		reason = fmt.Sprintf("dependency %.200s: %s", need, reason)
	}
	return &lease.NotGrantedError{Reason: reason, Hint: next}
}

// truncate truncates text to limit bytes without splitting a character.
func truncate(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "")
}
