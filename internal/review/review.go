// Package review collects the information for a user who reviews a skill before
// agents can run it: its files, scripts and servers, the requested permissions
// and limits, and the findings of a scan. It displays nothing and records
// nothing. Start reading at [New].
package review

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/decision"
	"github.com/loadout-dev/loadout/internal/execution"
	"github.com/loadout-dev/loadout/internal/requestedbounds"
	"github.com/loadout-dev/loadout/internal/scan"
	"github.com/loadout-dev/loadout/internal/skillcheck"
	"github.com/loadout-dev/loadout/internal/skillname"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/skill"
)

// Review describes a skill to the user who reviews it.
type Review struct {
	Name        string             `json:"name"`
	Origin      string             `json:"origin"`
	Path        string             `json:"path"`
	Digest      policy.Digest      `json:"digest"` // of the files, as shown to users
	Files       int                `json:"files"`
	Bytes       int64              `json:"bytes"`
	Scripts     []string           `json:"scripts"`
	Permissions policy.Permissions `json:"asks"` // permissions that the approval grants
	Inject      []policy.Injection `json:"inject"`
	Needs       []policy.Need      `json:"needs"`
	Limits      *Limits            `json:"limits,omitempty"` // nil if the skill requests none
	Problems    []policy.Problem   `json:"problems"`
	// Servers lists the servers that start or connect when the skill is loaded.
	Servers []loadout.RequestedService `json:"servers"`
	// Hidden lists the lines with hidden characters; nil if there are none.
	Hidden *Hidden `json:"hidden,omitempty"`
	// Missing lists the files of the skill's provider that the package does not
	// have; see [skill.CheckFiles].
	Missing skill.Diagnostics `json:"missing,omitempty"`
	// AllowedTools are the allowed-tools of a skill of an MCP server. They are
	// ignored unless the user grants them; see [Review.ServedGrants].
	AllowedTools []string `json:"allowed_tools,omitempty"`
	// Findings is the result of the scan. Findings never block the approval.
	Findings *Findings `json:"findings"`

	// Request is the approval request of the skill.
	Request *loadout.ApprovalRequest `json:"-"`
}

// Options adds permissions to those that a skill requests.
type Options struct {
	// Secrets lists secrets that are already granted to the skill.
	Secrets []string
	// The user grants these permissions explicitly; a request cannot.
	WorkspaceWrite, HostNetwork, Unsandboxed bool
}

// New returns the review of an approval request. It does not set Limits,
// Hidden, Missing or Findings; see [Review.ReadLimits], [Review.ReadHidden] and
// [Review.Scan].
func New(request *loadout.ApprovalRequest, o Options) *Review {
	e := request.Entry
	r := &Review{Name: e.Name, Origin: e.Origin, Path: e.Path, Digest: policy.Digest(request.Manifest.Digest()), Files: len(request.Manifest), Bytes: request.Manifest.Size(),
		Scripts: []string{}, Permissions: reviewPermissions(request, o), Inject: append([]policy.Injection{}, request.Injections...), Needs: append([]policy.Need{}, request.Needs...),
		Problems: append([]policy.Problem{}, request.Problems...), Servers: append([]loadout.RequestedService{}, request.Services...), AllowedTools: request.AllowedTools, Request: request}
	for _, f := range request.Manifest {
		if f.Script {
			r.Scripts = append(r.Scripts, f.Path)
		}
	}
	return r
}

// reviewPermissions returns the requested permissions, plus the secrets that
// servers use and those already granted.
func reviewPermissions(request *loadout.ApprovalRequest, o Options) policy.Permissions {
	p := request.Permissions()
	p.WorkspaceWrite, p.HostNetwork, p.Unsandboxed = o.WorkspaceWrite, o.HostNetwork, o.Unsandboxed
	add := func(secret string) {
		if !slices.Contains(p.Secrets, secret) {
			p.Secrets = append(slices.Clone(p.Secrets), secret)
		}
	}
	for _, name := range o.Secrets {
		add(name)
	}
	return p
}

// Grant returns a permanent grant of the reviewed permissions to the local
// user.
func (r *Review) Grant() policy.Grant {
	return policy.Grant{Principal: policy.LocalUser(), By: policy.LocalUser(), Subject: r.Request.Digest, Name: r.Name, Origin: r.Origin,
		Permissions: r.Permissions, Needs: r.Request.Needs, Scope: policy.Always}
}

// ServedGrants returns the additional grants that come with the approval of a skill
// of an MCP server: for the hidden characters that the user was shown and, if tools
// is set, for its allowed-tools.
func (r *Review) ServedGrants(tools bool) []policy.Grant {
	if !r.isServed() {
		return nil
	}
	var subjects []policy.Digest
	if r.Hidden != nil {
		for _, hash := range r.Hidden.hashes {
			subjects = append(subjects, decision.HiddenTextSubject(r.Name, hash))
		}
	}
	if tools && len(r.AllowedTools) > 0 {
		subjects = append(subjects, decision.ToolsSubject(r.Name, string(r.Digest), r.AllowedTools))
	}
	var out []policy.Grant
	for _, s := range subjects {
		g := r.Grant()
		g.Subject, g.Permissions = s, policy.Permissions{Call: true}
		out = append(out, g)
	}
	return out
}

// isServed reports whether an MCP server publishes the skill. No file of it is
// fetched for an approval, which covers the hashes that the server listed.
func (r *Review) isServed() bool { return r.Request.Entry.Server != "" }

// UninstalledServers returns the names of the servers whose packages are not
// installed. The approval does not cover these packages.
func (r *Review) UninstalledServers() []string {
	var out []string
	for _, s := range r.Servers {
		if s.NeedsInstall && s.Package == nil {
			out = append(out, s.Name)
		}
	}
	return out
}

// Limits holds the limits that a skill requests for its scripts. They can only
// lower the configured ones.
type Limits struct {
	Seconds   int `json:"seconds,omitempty"`
	MemoryMB  int `json:"memory_mb,omitempty"`
	Processes int `json:"processes,omitempty"`
	DiskMB    int `json:"disk_mb,omitempty"`
	MinTier   int `json:"min_tier,omitempty"`
}

// ReadLimits reads the limits that the skill requests and sets Limits.
func (r *Review) ReadLimits(ctx context.Context, rt *loadout.Runtime) error {
	read := func() (*skill.Skill, error) {
		s, _, err := rt.Catalog().Read(ctx, r.Request.Entry)
		return s, err
	}
	if r.isServed() {
		read = func() (*skill.Skill, error) { return rt.Catalog().Head(r.Request.Entry) }
	}
	s, err := read()
	if err != nil {
		return err
	}
	front, err := s.FrontmatterJSON()
	if err != nil {
		return err
	}
	b, _ := requestedbounds.Parse(front) // problems are already reported with the requested permissions
	if l := (Limits{b.Seconds, b.MemoryMB, b.Processes, b.DiskMB, b.MinTier}); l != (Limits{}) {
		r.Limits = &l
	}
	return nil
}

// Scan scans the skill for up to limit and sets Findings and Missing.
func (r *Review) Scan(ctx context.Context, rt *loadout.Runtime, limit time.Duration) {
	if r.isServed() {
		r.Findings = &Findings{Counts: skillcheck.CountFindings(), List: []scan.Finding{},
			Problem: "files of an MCP server are fetched only when they are used"}
		return
	}
	r.Findings = ScanEntry(ctx, rt, r.Request.Entry, limit)
	r.Missing = missingFiles(ctx, rt, r.Request.Entry)
}

// missingFiles returns findings about missing files of a skill's provider. If
// the skill cannot be read, it returns nil, because the scan reports that.
func missingFiles(ctx context.Context, rt *loadout.Runtime, e *catalog.Entry) skill.Diagnostics {
	s, src, err := rt.Catalog().Read(ctx, e)
	if err != nil || s.Provider == nil {
		return nil
	}
	b, err := rt.Catalog().Open(ctx, e)
	if err != nil {
		return nil
	}
	defer b.Close()
	return skill.CheckFiles(b.FS, src, s)
}

// ChangedGrants returns the IDs of the grants that no longer apply, because the
// skill or one of its dependencies changed.
func ChangedGrants(ctx context.Context, rt *loadout.Runtime, grants []policy.Grant) map[string]bool {
	out := map[string]bool{}
	for _, g := range grants {
		if g.Permissions.Call { // a changed tool is detected when it is called
			continue
		}
		ref := g.Origin + "/" + g.Name
		if skillname.IsServed(g.Name, g.Origin) { // of an MCP server
			ref = g.Name
			if _, err := rt.Catalog().Snapshot().Get(ref); err != nil { // resolving it would ask the server, for each grant
				continue
			}
		}
		request, err := rt.ReadApprovalRequest(ctx, ref)
		if _, unreadable := errors.AsType[*execution.ServersError](err); unreadable {
			out[g.ID] = true // cannot be approved in its current state
			continue
		}
		if err != nil { // missing or invalid
			continue
		}
		out[g.ID] = request.Digest != g.Subject || !g.NeedsExactly(request.Needs)
	}
	return out
}

// PromptScanTimeout is the time limit for scanning a skill while the user waits
// for a prompt.
const PromptScanTimeout = 10 * time.Second
