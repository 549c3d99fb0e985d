package loadout

import (
	"context"
	"errors"
	"slices"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/decision"
	"github.com/loadout-dev/loadout/internal/execution"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/skill"
)

// ApprovalRequest lists the permissions that a skill's scripts and servers get
// if the user approves them. An [Approver] also receives requests for tool
// calls, which set only Reason and Call.
type ApprovalRequest struct {
	Reason string       // why approval is needed; set for an [Approver]
	Script string       // script to run; "" for servers
	Call   *CallRequest // tool call; nil for a skill's code

	Entry *catalog.Entry
	// Digest is the digest to be approved: that of Manifest or, for a skill of an
	// MCP server, of its name and Manifest.
	Digest     policy.Digest
	Manifest   skill.Manifest     // all files of the skill
	Needs      []policy.Need      // dependencies, installed packages and targets of platform values, to be approved
	Requested  policy.Bounds      // requested bounds, within the bounds of this runtime
	Injections []policy.Injection // secrets that only the sandbox's proxy uses
	Problems   []policy.Problem   // ignored parts of the skill's request
	// AllowedTools are the allowed-tools of a skill of an MCP server. They apply
	// only after a separate approval, which this request does not include.
	AllowedTools []string
	// Services are the skill's servers and its provider. The installed packages
	// of servers started by npx or uvx are in Needs; see
	// [Runtime.InstallPackages]. Without [Scripts.ReadServers], the list has no
	// servers, and none is started.
	Services []RequestedService
}

// Permissions returns the permissions that an approval of a skill's code
// grants: those that the skill requests, except write access to the workspace,
// and the secrets that its servers use. It ignores servers with a
// RefusedReason.
func (r *ApprovalRequest) Permissions() policy.Permissions {
	p := r.Requested.Permissions()
	p.Run, p.WorkspaceWrite = true, false
	p.Secrets = slices.Clone(p.Secrets)
	for _, s := range r.Services {
		if s.RefusedReason != "" {
			continue
		}
		for _, v := range s.Variables {
			if v.Kind == "secret" && !slices.Contains(p.Secrets, v.Name) {
				p.Secrets = append(p.Secrets, v.Name)
			}
		}
	}
	return p
}

// ReadApprovalRequest returns the approval request for the skill that ref
// names, in its current version. It runs no code, and does not set Script,
// Reason or Call. If the skill cannot be read, ReadApprovalRequest returns the
// error of [Runtime.Fetch]; if the skill changes in the meantime, it returns a
// [*sandbox.ChangedError]. Any other error means that the skill's servers
// cannot be read and that the skill must not be approved.
func (r *Runtime) ReadApprovalRequest(ctx context.Context, ref string) (*ApprovalRequest, error) {
	e, err := r.catalog.Resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	if e.Server != "" {
		return r.readServedRequest(ctx, e)
	}
	order, err := r.catalog.LoadOrder(ctx, e)
	if err != nil {
		return nil, err
	}
	w := &ApprovalRequest{Entry: e}
	for _, l := range order {
		m, err := r.catalog.CompleteManifest(ctx, l.Entry)
		if err != nil {
			return nil, err
		}
		if l.Entry != e {
			w.Needs = append(w.Needs, policy.Need{Name: l.Entry.Name, Digest: policy.Digest(m.Digest())})
			continue
		}
		w.Manifest, w.Digest = m, policy.Digest(m.Digest())
	}
	s := order[len(order)-1].Skill
	if err := execution.CheckManifest(w.Manifest, order[len(order)-1].Source); err != nil {
		return nil, err
	}
	if w.Services, err = r.requestedServices(e, s); err != nil && !errors.Is(err, errNoServers) {
		return nil, err
	}
	w.Needs = append(append(w.Needs, variableNeeds(w.Services)...), r.setPackages(e, w.Services)...)
	w.Services = append(w.Services, borrowedProviders(s, order[:len(order)-1])...)
	w.Requested, w.Injections, w.Problems, err = execution.RequestedBounds(s, r.bounds())
	return w, err
}

// bounds returns the limits of what skills are granted.
func (r *Runtime) bounds() policy.Bounds {
	if r.scripts == nil {
		return policy.Bounds{}
	}
	return r.scripts.Bounds
}

// readServedRequest is like ReadApprovalRequest for a skill of an MCP server. It
// reads only what the server listed: no file is fetched for an approval.
func (r *Runtime) readServedRequest(ctx context.Context, e *catalog.Entry) (*ApprovalRequest, error) {
	m, err := r.catalog.CompleteManifest(ctx, e)
	if err != nil {
		return nil, err
	}
	s, err := r.catalog.Head(e)
	if err != nil {
		return nil, err
	}
	now, err := r.catalog.CompleteManifest(ctx, e)
	if err != nil {
		return nil, err
	}
	if now.Digest() != m.Digest() { // the frontmatter may be that of another version
		return nil, changedError(e)
	}
	w := &ApprovalRequest{Entry: e, Manifest: m, AllowedTools: r.catalog.RequestedTools(e), Digest: decision.SubjectOf(e.Name, e.Origin, m.Digest())}
	w.Requested, w.Injections, w.Problems, err = execution.RequestedBounds(s, r.bounds())
	return w, err
}
