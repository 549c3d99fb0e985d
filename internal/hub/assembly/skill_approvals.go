package assembly

import (
	"context"
	"time"

	"github.com/loadout-dev/loadout/internal/serverskill"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/policy"
)

// ApprovalState says whether a user approved a skill of an MCP server.
type ApprovalState string

// Approval states.
const (
	NotApproved ApprovalState = "not_approved"
	Approved    ApprovalState = "approved"
	Changed     ApprovalState = "changed"      // other files were approved
	NotRequired ApprovalState = "not_required" // the server has skills: allow
)

// SkillApprovals holds a user's approvals of the skills of a server, as they were
// when they were read.
type SkillApprovals struct {
	publisher *Publisher
	grants    []policy.Grant
	files     map[string]approvedFiles // by name of the skill
}

// ReadApprovals returns the approvals of the setup's user.
func (p *Publisher) ReadApprovals(ctx context.Context) (*SkillApprovals, error) {
	all, _, err := NewGrantStore(p.base.assembler.o.DB, p.base.policyPrincipal).List(ctx)
	if err != nil {
		return nil, err
	}
	out := &SkillApprovals{publisher: p}
	if out.files, err = p.readApprovedFiles(ctx); err != nil {
		return nil, err
	}
	for _, g := range all {
		if g.Origin == p.source.Origin() && g.Permissions.Run {
			out.grants = append(out.grants, g)
		}
	}
	return out, nil
}

// State returns the state of a skill and the approval that causes it, which is nil
// if there is none. Approvals for a single conversation do not count.
func (a *SkillApprovals) State(e *serverskill.Entry) (ApprovalState, *policy.Grant) {
	c := a.publisher.source.CatalogEntry(e)
	m, err := e.Manifest()
	if c == nil || err != nil {
		return NotApproved, nil
	}
	subject, now := subjectOf(c, m), time.Now()
	state, from := NotApproved, (*policy.Grant)(nil)
	if a.publisher.Server.Skills == upstream.SkillsAllow {
		state = NotRequired
	}
	for i, g := range a.grants {
		switch {
		case g.Name != c.Name || g.Session != "" || g.Expired(now):
		case g.Subject == subject:
			return Approved, &a.grants[i]
		case state != NotRequired:
			state, from = Changed, &a.grants[i]
		}
	}
	return state, from
}
