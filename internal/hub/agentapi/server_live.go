package agentapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/assembly"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/untrusted"
)

// serverLiveJSON is the connection state of a server on this node.
type serverLiveJSON struct {
	Node          string    `json:"node" doc:"The answering node; other nodes have their own connections"`
	State         string    `json:"state" enum:"INIT,READY,DEGRADED,DEAD" doc:"INIT: not connected yet; DEGRADED: disconnected, its tools are still listed; DEAD: failed to connect, possibly several times"`
	Since         time.Time `json:"since"`
	Error         string    `json:"error,omitempty" doc:"Last error; absent while connected"`
	Tools         int       `json:"tools" doc:"Number of tools"`
	Era           string    `json:"era,omitempty" enum:"modern,legacy" doc:"Version of the protocol"`
	Transport     string    `json:"transport,omitempty"`
	Latency       float64   `json:"latency_ms,omitempty" doc:"Duration of the last health check or call"`
	Warnings      []string  `json:"warnings,omitempty"`
	Connections   int       `json:"connections" doc:"Open connections, yours and shared ones; for administrators all"`
	Conversations int       `json:"conversations" doc:"Your active conversations on this node that have it; for administrators all"`
}

func (h *Handlers) newServerLiveJSON(l assembly.ServerStatus) *serverLiveJSON {
	return &serverLiveJSON{Node: h.Node, State: string(l.State), Since: l.Since, Error: l.Error, Tools: l.Tools, Era: l.Era, Transport: l.Transport,
		Latency: float64(l.Latency.Microseconds()) / 1000, Warnings: l.Warnings, Connections: l.Connections, Conversations: l.Conversations}
}

// heldToolJSON is a new or changed tool that is awaiting acceptance.
type heldToolJSON struct {
	Name   string          `json:"name" doc:"Name at the server"`
	Digest string          `json:"digest" doc:"Digest of the current definition, for accepting it"`
	Seen   time.Time       `json:"seen" doc:"First time"`
	New    json.RawMessage `json:"new,omitempty" doc:"Current definition; only when listing the servers of one item"`
	Old    json.RawMessage `json:"old,omitempty" doc:"Last accepted definition; absent for a new tool"`
}

func (h *Handlers) serverLive() {
	api.Add(h.Server, api.Operation("restart-server", "POST", "/servers/{kind}/{namespace}/{name}/restart", "Close the connections of this node to a server and reset its failures; the next use reconnects"), h.restartServer)
	api.Add(h.Server, api.Operation("restart-operators-server", "POST", "/servers/operator/{name}/restart", "Restart a server of the operator"), h.restartOperators)
	api.Add(h.Server, api.Operation("accept-tools", "POST", "/servers/{kind}/{namespace}/{name}/accept-tools", "Accept new or changed tools of a server, which are unavailable until then"), h.acceptTools)
	h.skillTools()
	api.Add(h.Server, api.Operation("accept-operators-tools", "POST", "/servers/operator/{name}/accept-tools", "Accept tools of a server of the operator with pin: strict"), h.acceptOperators)
}

func (h *Handlers) skillTools() {
	api.Add(h.Server, api.Operation("list-held-tools", "GET", "/skills/{skill}/held-tools", "List new or changed tools of the servers that a skill provides"), h.listPendingTools)
	api.Add(h.Server, api.Operation("accept-skill-tools", "POST", "/skills/{skill}/accept-tools", "Accept tools of the servers that a skill provides"), h.acceptSkillTools)
}

func (h *Handlers) listPendingTools(ctx context.Context, in *api.SkillPath) (*api.Body[api.ListBody[heldToolJSON]], error) {
	all, err := h.Library.ListPendingTools(ctx, account.FromContext(ctx), in.Skill)
	return api.ListOf(pendingTools(all), "", err)
}

func (h *Handlers) acceptSkillTools(ctx context.Context, in *struct {
	api.SkillPath
	Body definitionsToAccept
}) (*api.Body[acceptedJSON], error) {
	names, err := h.Library.AcceptTools(ctx, account.FromContext(ctx), in.Skill, in.Body.Digests)
	return api.BodyOf(acceptedJSON{names}, err)
}

// addLiveState adds to each server its connection state on this node and its
// pending tools.
func (h *Handlers) addLiveState(ctx context.Context, p account.Principal, servers []serverJSON) error {
	digests := make([]string, len(servers))
	for i, s := range servers {
		digests[i] = s.Digest
	}
	held, err := h.Agents.ListPendingTools(ctx, digests)
	if err != nil {
		return err
	}
	live := h.Assemblies.ServerStatuses(p)
	for i := range servers {
		s := &servers[i]
		if l, ok := live[s.Digest]; ok {
			s.Live = h.newServerLiveJSON(l)
		}
		for _, d := range held[s.Digest] {
			s.PendingTools = append(s.PendingTools, heldToolJSON{Name: d.Tool, Digest: d.Digest, Seen: d.Seen})
		}
	}
	return nil
}

// withChanges adds the definitions of pending tools to a server.
func (h *Handlers) withChanges(ctx context.Context, s *serverJSON) error {
	if len(s.PendingTools) == 0 {
		return nil
	}
	all, err := h.Agents.ListToolChanges(ctx, s.Digest)
	if err != nil {
		return err
	}
	s.PendingTools = pendingTools(all)
	return nil
}

// pendingTools pairs each pending definition with the accepted one it replaces.
func pendingTools(all []store.ToolDefinition) (out []heldToolJSON) {
	var old *store.ToolDefinition // accepted definition of the current tool
	for i, d := range all {
		if d.Accepted {
			old = &all[i]
			continue
		}
		t := heldToolJSON{Name: visible(d.Tool), Digest: d.Digest, Seen: d.Seen, New: untrusted.VisibleJSON(d.Definition)}
		if old != nil && old.Server == d.Server && old.Tool == d.Tool {
			t.Old = untrusted.VisibleJSON(old.Definition)
		}
		out = append(out, t)
	}
	return out
}

// serverRestart selects the server to restart.
type serverRestart struct {
	Server string `json:"server,omitempty" maxLength:"256" doc:"Name of the server of a Ghost or Bot"`
}

// restartedJSON is the result of a restart.
type restartedJSON struct {
	Node    string `json:"node" doc:"The answering node; other nodes keep their connections"`
	Servers int    `json:"servers" doc:"Closed connections, one for each set of values; 0 if none was open"`
}

func (h *Handlers) restartServer(ctx context.Context, in *struct {
	DefiningPath
	Body serverRestart
}) (*api.Body[restartedJSON], error) {
	return h.restart(ctx, agents.Subject{Kind: in.Kind, Namespace: in.Namespace, Name: in.Name, Server: in.Body.Server})
}

// OperatorsPath is the path parameter for an operator server.
type OperatorsPath struct {
	Name string `path:"name" minLength:"1" maxLength:"256" doc:"Name of a server of the operator"`
}

func (h *Handlers) restartOperators(ctx context.Context, in *OperatorsPath) (*api.Body[restartedJSON], error) {
	return h.restart(ctx, agents.Subject{Server: in.Name})
}

func (h *Handlers) restart(ctx context.Context, subject agents.Subject) (*api.Body[restartedJSON], error) {
	digest, err := h.Agents.AuthorizeRestart(ctx, account.FromContext(ctx), subject)
	if err != nil {
		return nil, err
	}
	return api.BodyOf(restartedJSON{h.Node, h.Assemblies.RestartServer(digest)}, nil)
}

// definitionsToAccept lists the tool definitions that the user inspected and
// wants to accept.
type definitionsToAccept struct {
	Digests []string `json:"digests" minItems:"1" maxItems:"500" nullable:"false" doc:"Digests of the inspected definitions, as in held"`
}

type serverAcceptance struct {
	Server  string   `json:"server,omitempty" maxLength:"256" doc:"Name of the server of a Ghost or Bot"`
	Digests []string `json:"digests" minItems:"1" maxItems:"500" nullable:"false" doc:"Digests of the inspected definitions, as in held"`
}

// acceptedJSON lists the tools whose definitions were accepted.
type acceptedJSON struct {
	Tools []string `json:"tools" nullable:"false"`
}

func (h *Handlers) acceptTools(ctx context.Context, in *struct {
	DefiningPath
	Body serverAcceptance
}) (*api.Body[acceptedJSON], error) {
	return h.accept(ctx, agents.Subject{Kind: in.Kind, Namespace: in.Namespace, Name: in.Name, Server: in.Body.Server}, in.Body.Digests)
}

func (h *Handlers) acceptOperators(ctx context.Context, in *struct {
	OperatorsPath
	Body definitionsToAccept
}) (*api.Body[acceptedJSON], error) {
	return h.accept(ctx, agents.Subject{Server: in.Name}, in.Body.Digests)
}

func (h *Handlers) accept(ctx context.Context, subject agents.Subject, digests []string) (*api.Body[acceptedJSON], error) {
	names, err := h.Agents.AcceptTools(ctx, account.FromContext(ctx), subject, digests)
	if errors.Is(err, store.ErrConflict) {
		err = fmt.Errorf("%w; inspect the server again", err)
	}
	return api.BodyOf(acceptedJSON{names}, err)
}
