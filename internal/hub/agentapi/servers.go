package agentapi

import (
	"context"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/policy"
)

// serverJSON is an MCP server configuration with unresolved variables. For
// operator servers, it contains only the address.
type serverJSON struct {
	Name         string                 `json:"name"`
	Kind         string                 `json:"kind,omitempty" doc:"Kind of the defining item; absent for servers of the operator"`
	Namespace    string                 `json:"namespace,omitempty"`
	Thing        string                 `json:"thing,omitempty" doc:"Name of the defining item"`
	Digest       string                 `json:"digest" doc:"Reviews and grants of secrets apply to it"`
	Target       string                 `json:"target" doc:"Hosts or command, without secrets"`
	Command      []string               `json:"command,omitempty" doc:"With arguments"`
	Env          map[string]string      `json:"env,omitempty"`
	URLs         []string               `json:"urls,omitempty"`
	Uses         []upstream.VariableUse `json:"uses,omitempty" doc:"Variables, and where their values go"`
	State        string                 `json:"state" enum:"ready,not_configured,waits_for_review,rejected,disabled" doc:"Whether it can be connected; missing values are reported by profiles only"`
	Missing      []string               `json:"missing,omitempty" doc:"Variables without a value for you, and what to do"`
	Review       *serverReviewJSON      `json:"review,omitempty" doc:"Review of the command; absent for servers of the operator"`
	By           string                 `json:"by,omitempty" doc:"ID of the last user who changed it, and who cannot review it"`
	Live         *serverLiveJSON        `json:"live,omitempty" doc:"State on this node; absent if unused here"`
	SignIn       *serverSignInJSON      `json:"signIn,omitempty" doc:"Your sign-in; absent if none is known to be needed"`
	Skills       *serverSkillsJSON      `json:"skills,omitempty" doc:"How the skills that the server publishes are used; absent if they are not used"`
	PendingTools []heldToolJSON         `json:"held,omitempty" doc:"New or changed tools that are unavailable until accepted"`
}

// serverSkillsJSON says how the skills that a server publishes are used.
type serverSkillsJSON struct {
	Use   string `json:"use" enum:"ask,allow" doc:"ask: each user approves each skill"`
	Label string `json:"label" doc:"Label of the server in GET /published-skills/{label} and in the names of its skills"`
}

type serverReviewJSON struct {
	Decision string `json:"decision" enum:"pending,approved,rejected"`
	By       string `json:"by,omitempty"`
	Note     string `json:"note,omitempty"`
}

const (
	serverReady         = "ready"
	serverNotConfigured = "not_configured"
	serverPending       = "waits_for_review"
	serverRejected      = "rejected"
	serverDisabled      = "disabled"
)

func newServerJSON(s agents.Server) serverJSON {
	out := serverJSON{Name: s.Name, Kind: s.Kind, Digest: s.Digest(), Target: visible(s.Target()), State: serverState(s), By: s.By}
	if s.PublishesSkills() && (s.Owner == "" || s.Kind == agents.ServerKind) {
		out.Skills = &serverSkillsJSON{s.Config.Skills, s.SkillLabel()}
	}
	if s.ID == "" && s.Owner == "" {
		return out
	}
	out.URLs = visibleTexts(s.URLs)
	for name, value := range s.Env {
		if out.Env == nil {
			out.Env = map[string]string{}
		}
		out.Env[visible(name)] = visible(value)
	}
	if s.Command != "" {
		out.Command = visibleTexts(append([]string{s.Command}, s.Args...))
	}
	out.Uses = s.Variables()
	for i, u := range out.Uses {
		u.Name, u.Where, u.Target = visible(u.Name), visible(u.Where), visible(u.Target)
		out.Uses[i] = u
	}
	if s.Review != "" {
		out.Review = &serverReviewJSON{string(s.Review), s.Reviewer, untrusted.New(s.Note).ForPage()}
	}
	return out
}

// visible makes disallowed characters in a part of a server's configuration
// visible, because reviewers must see everything that they approve.
func visible(s string) string { return untrusted.New(s).Visible() }

func visibleTexts(list []string) (out []string) {
	for _, s := range list {
		out = append(out, visible(s))
	}
	return out
}

func serverState(s agents.Server) string {
	switch {
	case s.Disabled:
		return serverDisabled
	case s.Review == store.Rejected:
		return serverRejected
	case !s.Usable():
		return serverPending
	}
	return serverReady
}

func unsetNames(unset []upstream.UnsetVariable) []string {
	out := make([]string, len(unset))
	for i, u := range unset {
		out[i] = u.String()
	}
	return out
}

func (h *Handlers) serversAPI() {
	api.Add(h.Server, api.Operation("list-servers", "GET", "/servers", "List MCP servers: those of the operator, then those defined by Ghosts, Bots and MCPServers"), h.listServers)
	api.Add(h.Server, api.Operation("get-servers", "GET", "/servers/{kind}/{namespace}/{name}", "List the MCP servers that an item defines"), h.getServers)
	api.Add(h.Server, api.Operation("review-server", "PUT", "/servers/{kind}/{namespace}/{name}/review", "Approve or reject the command of a server, as it is now"), h.reviewServer)
	h.serverTests()
	h.serverLive()
	h.serverSignIns()
}

func (h *Handlers) listServers(ctx context.Context, in *api.Paging) (*api.Body[api.ListBody[serverJSON]], error) {
	p := account.FromContext(ctx)
	found, next, err := h.Agents.ListServers(ctx, p, in.Page())
	out, err := api.PageOf(found, next, err, newDefinedServerJSON)
	if err == nil {
		err = h.addLiveState(ctx, p, out.Body.Items)
	}
	if err == nil {
		err = h.withSignIns(ctx, p, found, out.Body.Items)
	}
	return out, err
}

func newDefinedServerJSON(d agents.ServerDefinition) serverJSON {
	out := newServerJSON(d.Server)
	out.Thing = d.Resource
	if d.Kind != "" {
		if out.Namespace = d.Namespace; out.Namespace == "" {
			out.Namespace = api.OwnNamespace
		}
	}
	return out
}

func definitions(found []agents.Server) []agents.ServerDefinition {
	out := make([]agents.ServerDefinition, len(found))
	for i, s := range found {
		out[i].Server = s
	}
	return out
}

// DefiningPath identifies a resource that may define servers.
type DefiningPath struct {
	Kind      string `path:"kind" enum:"MCPServer,Ghost,Bot"`
	Namespace string `path:"namespace" minLength:"1" maxLength:"150" doc:"As in /kinds"`
	Name      string `path:"name" minLength:"1" maxLength:"1024"`
}

func (h *Handlers) getServers(ctx context.Context, in *DefiningPath) (*api.Body[api.ListBody[serverJSON]], error) {
	p := account.FromContext(ctx)
	found, err := h.Agents.DefinedServers(ctx, p, in.Kind, in.Namespace, in.Name)
	out, err := api.PageOf(found, "", err, func(s agents.Server) serverJSON {
		return newDefinedServerJSON(agents.ServerDefinition{Server: s, Namespace: in.Namespace, Resource: in.Name})
	})
	if err == nil {
		err = h.addLiveState(ctx, p, out.Body.Items)
	}
	if err == nil {
		err = h.withSignIns(ctx, p, definitions(found), out.Body.Items)
	}
	for i := 0; err == nil && i < len(out.Body.Items); i++ {
		err = h.withChanges(ctx, &out.Body.Items[i])
	}
	return out, err
}

type serverDecision struct {
	Server   string `json:"server,omitempty" maxLength:"256" doc:"Name of the server of a Ghost or Bot"`
	Digest   string `json:"digest" minLength:"1" maxLength:"80" doc:"Digest of the inspected server"`
	Decision string `json:"decision" enum:"pending,approved,rejected"`
	Note     string `json:"note,omitempty" maxLength:"1000"`
}

func (h *Handlers) reviewServer(ctx context.Context, in *struct {
	DefiningPath
	Body serverDecision
}) (*api.NoBody, error) {
	of := agents.Subject{Kind: in.Kind, Namespace: in.Namespace, Name: in.Name, Server: in.Body.Server}
	return nil, h.Agents.ReviewServer(ctx, account.FromContext(ctx), of, policy.Digest(in.Body.Digest), store.Review(in.Body.Decision), in.Body.Note)
}
