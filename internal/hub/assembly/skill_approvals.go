package assembly

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/decision"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/serverskill"
	"github.com/loadout-dev/loadout/internal/skillname"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/skill"
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
}

// ReadApprovals returns the approvals of the setup's user.
func (p *Publisher) ReadApprovals(ctx context.Context) (*SkillApprovals, error) {
	all, _, err := NewGrantStore(p.base.assembler.o.DB, p.base.policyPrincipal).List(ctx)
	if err != nil {
		return nil, err
	}
	out := &SkillApprovals{publisher: p}
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

// IsApproved reports whether the user may use the files of an entry: they are approved,
// or the server needs no approval.
func (p *Publisher) IsApproved(ctx context.Context, e *serverskill.Entry) bool {
	if p.Server.Skills == upstream.SkillsAllow {
		return true
	}
	c := p.source.CatalogEntry(e)
	m, err := e.Manifest()
	if c == nil || err != nil {
		return false
	}
	g, err := NewGrantStore(p.base.assembler.o.DB, p.base.policyPrincipal).Find(ctx, p.base.policyPrincipal, subjectOf(c, m), "")
	return err == nil && g.Name == c.Name && g.Origin == c.Origin && g.Permissions.Run
}

// subjectOf returns the subject of grants for the skill with the given files.
func subjectOf(c *catalog.Entry, m skill.Manifest) policy.Digest {
	return decision.SubjectOf(c.Name, c.Origin, m.Digest())
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
	if err := k.base.assembler.o.DB.Grants.Put(ctx, store.Grant{ID: approvedFilesID(g.Principal, g.Name), Principal: approvedFilesPrefix + g.Principal.ID, Subject: string(g.Subject), Name: g.Name, Data: data}); err != nil {
		return fmt.Errorf("store approved files of skill %s: %w", g.Name, err)
	}
	return k.base.assembler.auditor().Append(ctx, policy.Record{Principal: g.By, Action: "approve", Subject: g.Subject, Name: g.Name, Decision: policy.Allow,
		Details: map[string]string{"grant": g.ID, "scope": string(g.Scope), "presence": g.Presence}})
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

// RevokeSkill revokes all approvals by a user of the skill with the given path of the
// MCP server with the given label, which may have been removed. It returns their number.
func (k *Assembler) RevokeSkill(ctx context.Context, user account.UserID, label, path string) (int, error) {
	p, name := UserPrincipal(user), skillname.ServedPrefix+label+"/"+path
	revoked, err := NewGrantStore(k.o.DB, p).Revoke(ctx, name)
	if errors.Is(err, policy.ErrNotGranted) {
		return 0, nil
	}
	if err != nil {
		return len(revoked), err
	}
	return len(revoked), k.auditor().Append(ctx, policy.Record{Principal: p, Action: "revoke", Name: name, Decision: policy.Allow})
}

// approvedFilesPrefix is the prefix of the principals of rows that store which files
// users approved. Grants have only a digest of them.
const approvedFilesPrefix = "files:"

// approvedFilesID returns the ID of the row for a skill.
func approvedFilesID(p policy.Principal, name string) string {
	return approvedFilesPrefix + p.ID + ":" + name
}

// approvedFiles lists the files of the version of a skill that a user approved last.
type approvedFiles struct {
	Digest string            `json:"digest"`
	Files  map[string]string `json:"files"` // SHA-256 by path
}

// readApprovedFiles returns the files that the user approved of the named skills.
func (p *Publisher) readApprovedFiles(ctx context.Context, names ...string) (map[string]approvedFiles, error) {
	out := map[string]approvedFiles{}
	for some := range slices.Chunk(names, store.MaxPage) {
		ids := make([]string, len(some))
		for i, name := range some {
			ids[i] = approvedFilesID(p.base.policyPrincipal, name)
		}
		rows, err := p.base.assembler.o.DB.Grants.Get(ctx, ids)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			var f approvedFiles
			if json.Unmarshal(r.Data, &f) == nil {
				out[r.Name] = f
			}
		}
	}
	return out, nil
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
