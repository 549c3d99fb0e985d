package assembly

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/approver"
	"github.com/loadout-dev/loadout/internal/decision"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/serverskill"
	"github.com/loadout-dev/loadout/internal/store"
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
	rest, ok := strings.CutPrefix(refused.Skill, serverskill.OriginPrefix)
	label, _, below := strings.Cut(rest, "/")
	return label, ok && below
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
	approved, err := p.readApprovedFiles(ctx)
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

// storeApproval stores the user's approval of a skill of an MCP server, and which files
// it covers. The caller sets the By, Scope, Session, Expires and Presence of g.
func (k *Setup) storeApproval(ctx context.Context, req *loadout.ApprovalRequest, g policy.Grant) error {
	e := req.Entry
	g.Principal, g.Subject, g.Name, g.Origin, g.Permissions, g.Needs = k.base.policyPrincipal, req.Digest, e.Name, e.Origin, req.Permissions(), req.Needs
	grants := NewGrantStore(k.base.assembler.o.DB, g.Principal)
	kept, err := grants.Put(ctx, g)
	if err != nil {
		return fmt.Errorf("store approval of skill %s: %w", e.Name, err)
	}
	err = k.recordApproval(ctx, req, kept)
	if err != nil {
		_, undone := grants.Revoke(context.WithoutCancel(ctx), kept.ID)
		err = errors.Join(err, undone)
	}
	return err
}

// recordApproval stores the files that an approval covers, and adds it to the audit log.
func (k *Setup) recordApproval(ctx context.Context, req *loadout.ApprovalRequest, g policy.Grant) error {
	files := approvedFiles{Digest: req.Manifest.Digest(), Files: map[string]string{}}
	for _, f := range req.Manifest {
		files.Files[f.Path] = f.SHA256
	}
	data, err := json.Marshal(files)
	if err != nil {
		return err
	}
	principal := approvedFilesPrefix + g.Principal.ID
	if err := k.base.assembler.o.DB.Grants.Put(ctx, store.Grant{ID: principal + ":" + g.Name, Principal: principal, Subject: string(g.Subject), Name: g.Name, Data: data}); err != nil {
		return fmt.Errorf("store approved files of skill %s: %w", g.Name, err)
	}
	return k.base.assembler.auditor().Append(ctx, policy.Record{Principal: g.By, Action: "approve", Subject: g.Subject, Name: g.Name, Decision: policy.Allow,
		Details: map[string]string{"grant": g.ID, "scope": string(g.Scope), "presence": g.Presence}})
}

// ReviewSkill returns the prompt for a skill of an MCP server that needs approval;
// see [mcpserver.Options.ReviewSkill].
func (k *Setup) ReviewSkill(ctx context.Context, name string) (*mcpserver.SkillReview, error) {
	req, err := k.servedRequest(ctx, name, "")
	if err != nil || req == nil {
		return nil, err
	}
	return &mcpserver.SkillReview{Text: fmt.Sprintf("Let the agent read and use the skill %s? Note that %s", req.Entry.Name, req.Reason), Digest: req.Digest,
		Approve: func(ctx context.Context, scope policy.Scope, presence string) error {
			g := policy.Grant{By: k.base.policyPrincipal, Scope: scope, Presence: presence}
			if scope == policy.ForSession { // connections have no session for skills
				g.Scope = policy.Always
			}
			if scope != policy.Always {
				g.Expires = time.Now().Add(24 * time.Hour)
			}
			return k.storeApproval(ctx, req, g)
		}}, nil
}

// ErrSkillChanged is returned if a skill of an MCP server is not the version that the
// user inspected.
var ErrSkillChanged = errors.New("the skill has changed")

// ApproveSkill approves the skill of the server with the given path for the setup's
// user, in the version with the given digest.
func (p *Publisher) ApproveSkill(ctx context.Context, k *Setup, path string, digest policy.Digest) error {
	req, err := k.Runtime.ReadApprovalRequest(ctx, p.source.Origin()+"/"+path)
	if err != nil {
		return err
	}
	if req.Entry.Origin != p.source.Origin() {
		return &catalog.NotFoundError{Ref: path}
	}
	if req.Manifest.Digest() != string(digest) {
		return fmt.Errorf("%w: digest is now %s", ErrSkillChanged, policy.Digest(req.Manifest.Digest()).Short())
	}
	return k.storeApproval(ctx, req, policy.Grant{By: k.base.policyPrincipal, Scope: policy.Always, Presence: requestedOfHub})
}

// RevokeSkill revokes all approvals of a skill by the setup's user. It returns their
// number.
func (p *Publisher) RevokeSkill(ctx context.Context, path string) (int, error) {
	all, _, err := NewGrantStore(p.base.assembler.o.DB, p.base.policyPrincipal).List(ctx)
	if err != nil {
		return 0, err
	}
	name, n := p.source.Origin()+"/"+path, 0
	for _, g := range all {
		if g.Name != name || g.Origin != p.source.Origin() || !g.Permissions.Run {
			continue
		}
		if _, err := p.base.assembler.o.DB.Grants.Delete(ctx, g.ID); err != nil && !errors.Is(err, store.ErrNotFound) {
			return n, err
		}
		n++
	}
	if n == 0 {
		return 0, nil
	}
	return n, p.base.assembler.auditor().Append(ctx, policy.Record{Principal: p.base.policyPrincipal, Action: "revoke", Name: name, Decision: policy.Allow})
}

// approvedFilesPrefix is the prefix of the principals of rows that store which files
// users approved. Grants have only a digest of them.
const approvedFilesPrefix = "files:"

// approvedFiles lists the files of the version of a skill that a user approved last.
type approvedFiles struct {
	Digest string            `json:"digest"`
	Files  map[string]string `json:"files"` // SHA-256 by path
}

// readApprovedFiles returns the files that the user approved, by name of the skill.
func (p *Publisher) readApprovedFiles(ctx context.Context) (map[string]approvedFiles, error) {
	out := map[string]approvedFiles{}
	principal := approvedFilesPrefix + p.base.policyPrincipal.ID
	for after := int64(0); ; {
		rows, err := p.base.assembler.o.DB.Grants.List(ctx, principal, after)
		if err != nil || len(rows) == 0 {
			return out, err
		}
		for _, r := range rows {
			after = r.Seq
			var f approvedFiles
			if strings.HasPrefix(r.Name, p.source.Origin()+"/") && json.Unmarshal(r.Data, &f) == nil {
				out[r.Name] = f
			}
		}
	}
}

// compare returns the differences between the approved files and those of m, sorted by
// path.
func (f approvedFiles) compare(m skill.Manifest) []serverskill.Change {
	now := map[string]string{}
	for _, one := range m {
		now[one.Path] = one.SHA256
	}
	all := maps.Clone(now)
	maps.Copy(all, f.Files)
	var out []serverskill.Change
	for _, path := range slices.Sorted(maps.Keys(all)) {
		before, was := f.Files[path]
		after, is := now[path]
		switch {
		case !was:
			out = append(out, serverskill.Change{Path: path, Kind: "added"})
		case !is:
			out = append(out, serverskill.Change{Path: path, Kind: "removed"})
		case before != after:
			out = append(out, serverskill.Change{Path: path, Kind: "changed"})
		}
	}
	return out
}

// PublishedSkill describes a skill of a server to the setup's user.
type PublishedSkill struct {
	Entry       *serverskill.Entry
	Name        string // in the catalog
	Path        string // in the source
	Description string
	Digest      policy.Digest // of the files; "" if the server generates them
	State       ApprovalState
	Approved    *policy.Grant        // nil if there is none
	Changes     []serverskill.Change // since the approval; only in the state Changed
}

// PublishedSkills lists the skills of a server, as far as the settings do not hide
// them.
type PublishedSkills struct {
	*serverskill.Listing
	Skills []PublishedSkill
}

// ServerError is a failure of a server. Its text is safe to show to the setup's user.
type ServerError struct{ Err error }

func (e *ServerError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *ServerError) Unwrap() error { return e.Err }

// ListSkills lists the skills of the server, with the state of each. If they were never
// listed for this user, or if fresh is set, it asks the server.
func (p *Publisher) ListSkills(ctx context.Context, fresh bool) (*PublishedSkills, error) {
	l, err := p.source.Skills(ctx, fresh)
	if err != nil {
		return nil, &ServerError{err}
	}
	approvals, err := p.ReadApprovals(ctx)
	if err != nil {
		return nil, err
	}
	out := &PublishedSkills{Listing: l}
	for _, e := range l.Entries {
		c := p.source.CatalogEntry(e)
		if c == nil || p.HiddenReason(e) != "" {
			continue
		}
		one := PublishedSkill{Entry: e, Name: c.Name, Path: c.Dir, Description: c.Description}
		one.State, one.Approved = approvals.State(e)
		if m, err := e.Manifest(); err == nil {
			one.Digest = policy.Digest(m.Digest())
			if old, ok := approvals.files[c.Name]; ok && one.State == Changed {
				one.Changes = old.compare(m)
			}
		}
		out.Skills = append(out.Skills, one)
	}
	return out, nil
}

// subjectOf returns the subject of grants for the skill with the given files.
func subjectOf(c *catalog.Entry, m skill.Manifest) policy.Digest {
	return decision.SubjectOf(c.Name, c.Origin, m.Digest())
}
