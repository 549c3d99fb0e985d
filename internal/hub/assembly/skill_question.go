package assembly

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/approver"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/skillname"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/mcpserver"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/session"
	"github.com/loadout-dev/loadout/skill"
)

// Values of [policy.Grant.Presence] for approvals of skills of MCP servers.
const (
	answeredInHub  = "answered in a conversation of the hub"
	requestedOfHub = "request to the hub"
)

// PublisherOf returns the label of the MCP server that publishes the skill that err
// refuses to use. ok is false if err has another cause.
func PublisherOf(err error) (label string, ok bool) {
	refused, is := errors.AsType[*loadout.RefusedError](err)
	if !is || refused.Call != nil {
		return "", false
	}
	label = skillname.ServerLabel(refused.Skill)
	return label, label != ""
}

// approvalContext is where a conversation asks for the approval of a skill.
type approvalContext struct {
	tools   *chat.ToolContext
	session string // ID
}

// setApprovalContext sets where loadSkill asks the user.
func (t *conversation) setApprovalContext(c *chat.ToolContext, s *session.Session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.served = &approvalContext{c, s.ID()}
}

// loadSkill asks the user about a skill of an MCP server that needs approval, and loads
// the skill; see [agent.Options.LoadSkill]. If the user declines, the load is refused.
func (t *conversation) loadSkill(ctx context.Context, name string, load func() (*session.LoadResult, error)) (*session.LoadResult, error) {
	t.mu.Lock()
	c := t.served
	t.mu.Unlock()
	if c != nil {
		if err := t.requestApproval(ctx, c, name); err != nil {
			return nil, err
		}
	}
	return load()
}

// requestApproval asks the user to approve a skill of an MCP server that needs it, for a
// session or always.
func (t *conversation) requestApproval(ctx context.Context, c *approvalContext, name string) error {
	req, err := t.setup.servedRequest(ctx, name, c.session)
	if err != nil || req == nil {
		return err
	}
	answer, err := approver.New(c.tools.Approvals, c.tools.ID, c.tools.User)(ctx, req)
	if err != nil || !answer.Approved {
		return err
	}
	g := policy.Grant{By: answer.By, Scope: policy.ForSession, Session: c.session, Presence: answeredInHub}
	if answer.Scope == policy.Always {
		g.Scope, g.Session = policy.Always, ""
	}
	return t.setup.storeApproval(ctx, req, g)
}

// servedRequest returns the approval request for a skill of an MCP server that a model
// must not read yet, or nil if nothing needs approval. It fetches no file. If the skill
// is not found, it returns nil, because loading it reports that.
func (k *Setup) servedRequest(ctx context.Context, name, session string) (*loadout.ApprovalRequest, error) {
	e, err := k.Runtime.Catalog().Resolve(ctx, name)
	if err != nil || e.Server == "" || e.DisableModelInvocation || k.Runtime.IsServedApproved(ctx, e, session) {
		return nil, ctx.Err()
	}
	req, err := k.Runtime.ReadApprovalRequest(ctx, e.Key())
	if err != nil {
		return nil, ctx.Err()
	}
	req.Reason, err = k.describeServed(ctx, e, req.Manifest)
	return req, err
}

// maxDescribed is the maximum number of files that a prompt names.
const maxDescribed = 20

// describeServed describes what the user approves: the files of a skill or, if other
// ones were approved before, the differences.
func (k *Setup) describeServed(ctx context.Context, e *catalog.Entry, m skill.Manifest) (string, error) {
	p := k.Publisher(e.Server)
	if p == nil {
		return "", fmt.Errorf("skill %s: its MCP server is no longer configured", e.Name)
	}
	approved, err := p.readApprovedFiles(ctx, e.Name)
	if err != nil {
		return "", err
	}
	var lines []string
	what := "not approved yet"
	if old, ok := approved[e.Name]; ok && old.Digest != m.Digest() {
		what = "changed since you approved it"
		for _, c := range old.compare(m) {
			lines = append(lines, c.Kind+": "+c.Path)
		}
	} else {
		for _, f := range m {
			lines = append(lines, fmt.Sprintf("%s (%d bytes)", f.Path, f.Size))
		}
	}
	if more := len(lines) - maxDescribed; more > 0 {
		lines = append(lines[:maxDescribed], fmt.Sprintf("and %d more", more))
	}
	text := fmt.Sprintf("the MCP server %s, a third party, publishes this skill, which is %s. Files: %s", e.Server, what, strings.Join(lines, ", "))
	text += ". Digest: " + m.Digest() // an answer is for these files, even if it is used after a restart
	return untrusted.New(text).Visible(), nil
}

// ReviewSkill returns the prompt for a skill of an MCP server that needs approval;
// see [mcpserver.Options.ReviewSkill].
func (k *Setup) ReviewSkill(ctx context.Context, name string) (*mcpserver.SkillReview, error) {
	req, err := k.servedRequest(ctx, name, "")
	if err != nil || req == nil {
		return nil, err
	}
	return &mcpserver.SkillReview{Text: fmt.Sprintf("Let the agent read and use the skill %s? Note that %s", req.Entry.Name, req.Reason), Digest: req.Digest,
		Approve: func(ctx context.Context, scope policy.Scope, expires time.Time, presence string) error {
			return k.storeApproval(ctx, req, policy.Grant{By: k.base.policyPrincipal, Scope: scope, Expires: expires, Presence: presence})
		}}, nil
}
