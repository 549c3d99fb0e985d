package loadout

import (
	"context"
	"slices"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/decision"
	"github.com/loadout-dev/loadout/internal/lease"
	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/internal/skilltext"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/skill"
)

// CheckText checks the text of a file in the skill e before it is sent to a
// model. path is the path of the file inside the skill. If the text has hidden
// characters, which a user does not see, CheckText returns a warning for the
// model, to be put before the text. If the skill belongs neither to the user
// nor to this program, and its current version is not approved, the error is a
// [*RefusedError] with the code "hidden-text". [Runtime.Fetch] and
// [Runtime.ReadFile] check the text that they return.
func (r *Runtime) CheckText(ctx context.Context, e *catalog.Entry, path, text string) (warning string, err error) {
	found := untrusted.InspectFile(text)
	if found.Clean() {
		return "", nil
	}
	if err := r.checkReport(ctx, e, path, found, []byte(text)); err != nil {
		return "", err
	}
	return skilltext.HiddenWarning(path, found), nil
}

// checkReport returns a [*RefusedError] if text with the given report must not
// be sent to a model. name identifies the text in the error message, and file
// is the content of the whole file that contains it.
func (r *Runtime) checkReport(ctx context.Context, e *catalog.Entry, name string, found untrusted.Report, file []byte) error {
	if found.Clean() || e.Scope == catalog.User || e.Scope == catalog.Bundled || r.isReviewed(ctx, e, file) {
		return nil
	}
	return &RefusedError{Skill: e.Name, NeedsApproval: true, Decision: policy.Decision{Effect: policy.Deny, Code: decision.HiddenText,
		Reason: name + " has " + found.String(), Hint: "approve it after a review"}}
}

// isReviewed reports whether the user approved the current version of a skill,
// and the version has a file with the given content. An approval for another
// conversation counts too, because the user saw the text. For a skill of an MCP
// server, whose files are not fetched for an approval, the user must have approved
// the hidden characters of the file.
func (r *Runtime) isReviewed(ctx context.Context, e *catalog.Entry, file []byte) bool {
	if r.scripts == nil || r.scripts.Grants == nil {
		return false
	}
	m, err := r.catalog.CompleteManifest(ctx, e)
	hash := skillfile.Hash(file)
	if err != nil || !slices.ContainsFunc(m, func(f skill.File) bool { return f.SHA256 == hash }) {
		return false
	}
	if e.Server != "" { // an approval of such a skill shows no text
		return r.hasServedGrant(ctx, decision.HiddenTextSubject(e.Name, hash), "")
	}
	p, subject := r.scripts.principal(), policy.Digest(m.Digest())
	approves := func(session string) bool {
		g, err := lease.Find(ctx, r.scripts.Grants, p, subject, session, nil)
		return err == nil && g != nil && g.Permissions.Run
	}
	if approves("") {
		return true
	}
	grants, _, err := r.scripts.Grants.List(ctx)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(grants, func(g policy.Grant) bool {
		return g.Session != "" && g.Principal == p && g.Subject == subject && approves(g.Session)
	})
}
