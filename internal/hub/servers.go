package hub

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/hub/kinds"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/upstream"
)

// serverJSON is an MCP server as it is configured, with variables in place of their
// values. Of the operator's own no more is told than where it is.
type serverJSON struct {
	Name      string            `json:"name"`
	Kind      string            `json:"kind,omitempty" doc:"Of what defines it; not there for the operator's own"`
	Namespace string            `json:"namespace,omitempty"`
	Thing     string            `json:"thing,omitempty" doc:"The name of what defines it"`
	Digest    string            `json:"digest" doc:"What is reviewed, and what secrets are granted to"`
	Target    string            `json:"target" doc:"The hosts or the command, without what may be secret"`
	Command   []string          `json:"command,omitempty" doc:"With its arguments"`
	Env       map[string]string `json:"env,omitempty"`
	URLs      []string          `json:"urls,omitempty"`
	Uses      []serverUseJSON   `json:"uses,omitempty" doc:"Variables, and what gets their values"`
	State     string            `json:"state" enum:"ready,not_configured,waits_for_review,rejected,disabled" doc:"Whether it would be connected; only a profile says whether values are missing"`
	Missing   []string          `json:"missing,omitempty" doc:"Variables without a value for you, and what to do"`
	Review    *serverReviewJSON `json:"review,omitempty" doc:"Of a command that is not the operator's own"`
	By        string            `json:"by,omitempty" doc:"The id of who applied it as it is now, and so does not review it"`
	Live      *serverLiveJSON   `json:"live,omitempty" doc:"How it is with it on this node; not there where nobody has needed it here"`
	SignIn    *serverSignInJSON `json:"signIn,omitempty" doc:"How it is with your sign-in to it; not there where none is needed, as far as is known"`
	Held      []heldToolJSON    `json:"held,omitempty" doc:"Tools that changed, or are new, and are held back until somebody accepts them"`
}

type serverReviewJSON struct {
	Decision string `json:"decision" enum:"pending,approved,rejected"`
	By       string `json:"by,omitempty"`
	Note     string `json:"note,omitempty"`
}

type serverUseJSON struct {
	Kind   string `json:"kind" doc:"As user or secret"`
	Name   string `json:"name"`
	Where  string `json:"where" doc:"As: header Authorization"`
	Target string `json:"target" doc:"The host or command that its value goes to"`
}

const (
	serverReady    = "ready"
	serverUnset    = "not_configured"
	serverWaits    = "waits_for_review"
	serverRejected = "rejected"
	serverDisabled = "disabled"
)

func serverOf(s kinds.Server) serverJSON {
	out := serverJSON{Name: s.Name, Kind: s.Kind, Digest: s.Digest(), Target: s.Target(), State: serverState(s), By: s.By}
	if s.ID == "" && s.Owner == "" {
		return out
	}
	out.Env, out.URLs = s.Env, s.URLs
	if s.Command != "" {
		out.Command = append([]string{s.Command}, s.Args...)
	}
	for _, u := range s.Uses() {
		out.Uses = append(out.Uses, serverUseJSON(u))
	}
	if s.Review != "" {
		out.Review = &serverReviewJSON{string(s.Review), s.Reviewer, s.Note}
	}
	return out
}

func serverState(s kinds.Server) string {
	switch {
	case s.Disabled:
		return serverDisabled
	case s.Review == store.Rejected:
		return serverRejected
	case !s.Usable():
		return serverWaits
	}
	return serverReady
}

func missing(unset []upstream.Unset) []string {
	out := make([]string, len(unset))
	for i, u := range unset {
		out[i] = u.String()
	}
	return out
}

func (h *Hub) serversAPI(api huma.API) {
	add(h, api, operation("list-servers", "GET", "/servers", "MCP servers: those of the operator, then those that Ghosts, Bots and MCPServers which you see define"), h.listServers)
	add(h, api, operation("get-servers", "GET", "/servers/{kind}/{namespace}/{name}", "The MCP servers that one thing defines"), h.getServers)
	add(h, api, operation("review-server", "PUT", "/servers/{kind}/{namespace}/{name}/review", "Say whether the command of a server may run, as it is now"), h.reviewServer)
	h.serverTests(api)
	h.serverLive(api)
	h.serverSignIns(api)
}

func (h *Hub) listServers(ctx context.Context, in *Paging) (*body[listed[serverJSON]], error) {
	p := account.FromContext(ctx)
	found, next, err := h.kinds.AllServers(ctx, p, in.page())
	out, err := page(found, next, err, definitionOf)
	if err == nil {
		err = h.withLive(ctx, p, out.Body.Items)
	}
	if err == nil {
		err = h.withSignIns(ctx, p, found, out.Body.Items)
	}
	return out, err
}

func definitionOf(d kinds.Definition) serverJSON {
	out := serverOf(d.Server)
	out.Thing = d.Thing
	if d.Kind != "" {
		if out.Namespace = d.Namespace; out.Namespace == "" {
			out.Namespace = ownNamespace
		}
	}
	return out
}

func definitions(found []kinds.Server) []kinds.Definition {
	out := make([]kinds.Definition, len(found))
	for i, s := range found {
		out[i].Server = s
	}
	return out
}

// DefiningPath names what may define servers.
type DefiningPath struct {
	Kind      string `path:"kind" enum:"MCPServer,Ghost,Bot"`
	Namespace string `path:"namespace" minLength:"1" maxLength:"150" doc:"As in /kinds"`
	Name      string `path:"name" minLength:"1" maxLength:"1024"`
}

func (h *Hub) getServers(ctx context.Context, in *DefiningPath) (*body[listed[serverJSON]], error) {
	p := account.FromContext(ctx)
	found, err := h.kinds.Servers(ctx, p, in.Kind, in.Namespace, in.Name)
	out, err := page(found, "", err, func(s kinds.Server) serverJSON {
		return definitionOf(kinds.Definition{Server: s, Namespace: in.Namespace, Thing: in.Name})
	})
	if err == nil {
		err = h.withLive(ctx, p, out.Body.Items)
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
	Server   string `json:"server,omitempty" maxLength:"256" doc:"Which one, of a Ghost or Bot"`
	Digest   string `json:"digest" minLength:"1" maxLength:"80" doc:"Of the server that was looked at"`
	Decision string `json:"decision" enum:"pending,approved,rejected"`
	Note     string `json:"note,omitempty" maxLength:"1000"`
}

func (h *Hub) reviewServer(ctx context.Context, in *struct {
	DefiningPath
	Body serverDecision
}) (*nothing, error) {
	of := kinds.Subject{Kind: in.Kind, Namespace: in.Namespace, Name: in.Name, Server: in.Body.Server}
	return nil, h.kinds.Review(ctx, account.FromContext(ctx), of, policy.Digest(in.Body.Digest), store.Review(in.Body.Decision), in.Body.Note)
}
