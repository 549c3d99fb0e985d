package mcpapi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/assembly"
	"github.com/loadout-dev/loadout/internal/serverskill"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/policy"
)

// publishedSkillJSON is a skill that an MCP server publishes.
type publishedSkillJSON struct {
	Name        string               `json:"name" doc:"Name in the catalog: mcp.LABEL/PATH"`
	Path        string               `json:"path" doc:"Path among the skills of the server"`
	URI         string               `json:"uri" doc:"URI of its SKILL.md at the server"`
	Description string               `json:"description"`
	Files       int                  `json:"files"`
	Bytes       int64                `json:"bytes"`
	Digest      string               `json:"digest,omitempty" doc:"Digest of the files, for approving them; absent if the server generates them, so that they cannot be approved"`
	State       string               `json:"state" enum:"not_approved,approved,changed,not_required" doc:"State of your approval. changed: you approved other files. not_required: skills: allow is set for the server"`
	Approved    *time.Time           `json:"approved,omitempty" doc:"Time of your approval"`
	Changes     []publishedFilesJSON `json:"changes,omitempty" doc:"Differences from the files that you approved; only in the state changed"`
}

// publishedFilesJSON is a difference between two versions of a skill.
type publishedFilesJSON struct {
	Path string `json:"path"`
	Kind string `json:"kind" enum:"added,removed,changed"`
}

// publishedSkillsJSON lists the skills of an MCP server.
type publishedSkillsJSON struct {
	Label    string               `json:"label"`
	Server   string               `json:"server" doc:"Name of the server"`
	Endpoint string               `json:"endpoint" doc:"Path of the MCP endpoint that serves these skills"`
	Listed   time.Time            `json:"listed" doc:"When the server listed them"`
	Partial  string               `json:"partial,omitempty" doc:"Why skills are missing; absent if the list is complete"`
	Problems []string             `json:"problems,omitempty" doc:"Skills that cannot be used"`
	Skills   []publishedSkillJSON `json:"skills" nullable:"false"`
}

// LabelPath is the path parameter for an MCP server whose skills are used.
type LabelPath struct {
	Label string `path:"label" minLength:"1" maxLength:"64" doc:"Label of the MCP server, which is derived from its name if none is configured"`
}

// publishedSkillPath identifies a skill of a server.
type publishedSkillPath struct {
	Path   string `json:"path" minLength:"1" maxLength:"4096" doc:"Path of the skill, as listed"`
	Digest string `json:"digest" minLength:"1" maxLength:"80" doc:"Digest of the files that you inspected; any other is rejected"`
}

func (h *Handlers) publishedSkillsAPI() {
	api.Add(h.Server, api.Operation("list-published-skills", "GET", "/published-skills/{label}", "List the skills that an MCP server with skills: ask or allow publishes, with your approvals"), h.listPublished)
	api.Add(h.Server, api.Operation("approve-published-skill", "POST", "/published-skills/{label}/approve", "Let your agents read and use a skill of an MCP server, in the version that you inspected"), h.approvePublished)
	api.Add(h.Server, api.Operation("revoke-published-skill", "DELETE", "/published-skills/{label}/approve", "Revoke your approval of a skill of an MCP server"), h.revokePublished)
}

// withPublisher calls f with the server with the given label. A server that the user may
// not use is not found.
func (h *Handlers) withPublisher(ctx context.Context, p account.Principal, label string, f func(*assembly.Setup, *assembly.Publisher) error) error {
	e, err := h.endpoints.acquire(ctx, p, agentRef{})
	if err != nil {
		return err
	}
	defer h.endpoints.release(e)
	s := e.setup.Publisher(label)
	if s == nil {
		return fmt.Errorf("MCP server with skills and the label %.80q: %w", label, store.ErrNotFound)
	}
	return f(e.setup, s)
}

func (h *Handlers) listPublished(ctx context.Context, in *struct {
	LabelPath
	Refresh bool `query:"refresh" doc:"Ask the server for its current list"`
}) (*api.Body[publishedSkillsJSON], error) {
	var out publishedSkillsJSON
	p := account.FromContext(ctx).LimitedTo(agentScopes)
	err := h.withPublisher(ctx, p, in.Label, func(_ *assembly.Setup, s *assembly.Publisher) error {
		l, err := s.ListSkills(ctx, in.Refresh)
		if err != nil {
			return publishedProblem(err)
		}
		out = publishedSkillsJSON{Label: s.Label, Server: untrusted.New(s.Server.Name).Visible(), Endpoint: api.MCPServerPath + s.Label, Listed: l.At,
			Partial: untrusted.New(l.Partial).ForPage(), Skills: make([]publishedSkillJSON, len(l.Skills))}
		for _, problem := range l.Problems {
			out.Problems = append(out.Problems, untrusted.New(problem.Error()).ForPage())
		}
		for i, one := range l.Skills {
			out.Skills[i] = newPublishedSkillJSON(one)
		}
		return nil
	})
	return api.BodyOf(out, err)
}

func newPublishedSkillJSON(s assembly.PublishedSkill) publishedSkillJSON {
	visible := func(text string) string { return untrusted.New(text).Visible() }
	out := publishedSkillJSON{Name: visible(s.Name), Path: visible(s.Path), URI: visible(s.Entry.URI), Description: untrusted.New(s.Description).ForPage(),
		Files: len(s.Entry.Resources), Digest: string(s.Digest), State: string(s.State)}
	for _, r := range s.Entry.Resources {
		out.Bytes += r.Size
	}
	if s.Approved != nil {
		out.Approved = api.OptionalTime(s.Approved.Created)
	}
	for _, c := range s.Changes {
		out.Changes = append(out.Changes, publishedFilesJSON{visible(c.Path), c.Kind})
	}
	return out
}

func (h *Handlers) approvePublished(ctx context.Context, in *struct {
	LabelPath
	Body publishedSkillPath
}) (*api.NoBody, error) {
	p := account.FromContext(ctx)
	if err := h.authorizeGrants(ctx, p, account.GrantWrite, p.User); err != nil {
		return nil, err
	}
	p.Scopes = agentScopes // regardless of the token, as for other grants
	return nil, h.withPublisher(ctx, p, in.Label, func(k *assembly.Setup, s *assembly.Publisher) error {
		return publishedProblem(s.ApproveSkill(ctx, k, in.Body.Path, policy.Digest(in.Body.Digest)))
	})
}

func (h *Handlers) revokePublished(ctx context.Context, in *struct {
	LabelPath
	Path string `query:"path" required:"true" minLength:"1" maxLength:"4096" doc:"Path of the skill, as listed"`
}) (*api.NoBody, error) {
	p := account.FromContext(ctx)
	if err := h.authorizeGrants(ctx, p, account.GrantWrite, p.User); err != nil {
		return nil, err
	}
	n, err := h.Assemblies.RevokeSkill(ctx, p.User, in.Label, in.Path)
	if err == nil && n == 0 {
		err = store.ErrNotFound
	}
	return nil, err
}

// publishedProblem converts an error about a skill of a server to a problem. It returns
// unknown errors unchanged.
func publishedProblem(err error) error {
	if errors.Is(err, assembly.ErrSkillChanged) {
		return &api.Problem{Status: 409, Code: "changed", Detail: err.Error(), Next: "inspect the skill again and send its current digest"}
	}
	if _, ok := errors.AsType[*catalog.NotFoundError](err); ok {
		return fmt.Errorf("%w: %w", store.ErrNotFound, err)
	}
	if errors.Is(err, assembly.ErrNotConfigured) {
		return &api.Problem{Status: 409, Code: "not_configured", Detail: err.Error(), Next: "set the missing values"}
	}
	if errors.Is(err, serverskill.ErrNotServed) {
		return &api.Problem{Status: 502, Code: "server", Detail: err.Error(), Next: "set skills: off for the server"}
	}
	if failed, ok := errors.AsType[*assembly.ServerError](err); ok {
		return &api.Problem{Status: 502, Code: "server", Detail: untrusted.New(failed.Error()).ForPage(), Next: "try again when the MCP server responds"}
	}
	return err
}
