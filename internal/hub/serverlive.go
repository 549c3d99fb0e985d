package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/hub/kinds"
	"github.com/loadout-dev/loadout/internal/hub/kit"
	"github.com/loadout-dev/loadout/internal/store"
)

// serverLiveJSON is how it is with a server on the node that answers.
type serverLiveJSON struct {
	Node          string    `json:"node" doc:"Which node says so: others have connections of their own"`
	State         string    `json:"state" enum:"INIT,READY,DEGRADED,DEAD" doc:"INIT is not connected yet, or on the way; DEGRADED has lost its connection and keeps the tools that it had; DEAD could not be connected, or again and again"`
	Since         time.Time `json:"since"`
	Error         string    `json:"error,omitempty" doc:"What went wrong last; not there while it is connected"`
	Tools         int       `json:"tools" doc:"How many it has"`
	Era           string    `json:"era,omitempty" enum:"modern,legacy" doc:"Of the protocol that it speaks"`
	Transport     string    `json:"transport,omitempty"`
	Latency       float64   `json:"latency_ms,omitempty" doc:"Of the last health check or call"`
	Warnings      []string  `json:"warnings,omitempty"`
	Connections   int       `json:"connections" doc:"That are open, yours and those that all share; for administrators all"`
	Conversations int       `json:"conversations" doc:"Under way on this node that have it at hand, yours; for administrators all"`
}

func (h *Hub) liveOf(l kit.Live) *serverLiveJSON {
	return &serverLiveJSON{Node: h.node, State: string(l.State), Since: l.Since, Error: l.Error, Tools: l.Tools, Era: l.Era, Transport: l.Transport,
		Latency: float64(l.Latency.Microseconds()) / 1000, Warnings: l.Warnings, Connections: l.Connections, Conversations: l.Conversations}
}

// heldToolJSON is a tool that is defined differently from what was accepted, or is new.
type heldToolJSON struct {
	Name   string          `json:"name" doc:"As the server calls it"`
	Digest string          `json:"digest" doc:"Of its definition now, which is what is accepted"`
	Seen   time.Time       `json:"seen" doc:"For the first time"`
	New    json.RawMessage `json:"new,omitempty" doc:"Its definition now; with one thing that defines servers"`
	Old    json.RawMessage `json:"old,omitempty" doc:"As it was accepted last; not there where it is new"`
}

func (h *Hub) serverLive(api huma.API) {
	add(h, api, operation("restart-server", "POST", "/servers/{kind}/{namespace}/{name}/restart", "End the connections of this node to a server and forget its failures: the next need connects again"), h.restartServer)
	add(h, api, operation("restart-operators-server", "POST", "/servers/operator/{name}/restart", "The same for a server of the operator"), h.restartOperators)
	add(h, api, operation("accept-tools", "POST", "/servers/{kind}/{namespace}/{name}/accept-tools", "Accept tools of a server that it defines differently by now, or did not have: until then they are held back"), h.acceptTools)
	h.skillTools(api)
	add(h, api, operation("accept-operators-tools", "POST", "/servers/operator/{name}/accept-tools", "The same for a server of the operator with pin: strict"), h.acceptOperators)
}

func (h *Hub) skillTools(api huma.API) {
	add(h, api, operation("list-held-tools", "GET", "/skills/{skill}/held-tools", "Tools of servers that a skill brings which changed, or are new, and are held back"), h.listHeldTools)
	add(h, api, operation("accept-skill-tools", "POST", "/skills/{skill}/accept-tools", "Accept tools of servers that a skill brings"), h.acceptSkillTools)
}

func (h *Hub) listHeldTools(ctx context.Context, in *SkillPath) (*body[listed[heldToolJSON]], error) {
	all, err := h.library.HeldTools(ctx, account.FromContext(ctx), in.Skill)
	return page(heldTools(all), "", err, func(t heldToolJSON) heldToolJSON { return t })
}

func (h *Hub) acceptSkillTools(ctx context.Context, in *struct {
	SkillPath
	Body definitionsToAccept
}) (*body[acceptedJSON], error) {
	names, err := h.library.AcceptTools(ctx, account.FromContext(ctx), in.Skill, in.Body.Digests)
	return answered(acceptedJSON{names}, err)
}

// withLive adds to servers what this node and the database know of them.
func (h *Hub) withLive(ctx context.Context, p account.Principal, servers []serverJSON) error {
	digests := make([]string, len(servers))
	for i, s := range servers {
		digests[i] = s.Digest
	}
	held, err := h.kinds.Held(ctx, digests)
	if err != nil {
		return err
	}
	live := h.kits.Live(p)
	for i := range servers {
		s := &servers[i]
		if l, ok := live[s.Digest]; ok {
			s.Live = h.liveOf(l)
		}
		for _, d := range held[s.Digest] {
			s.Held = append(s.Held, heldToolJSON{Name: d.Tool, Digest: d.Digest, Seen: d.Seen})
		}
	}
	return nil
}

// withChanges adds to the tools of a server that are held back how they are defined.
func (h *Hub) withChanges(ctx context.Context, s *serverJSON) error {
	if len(s.Held) == 0 {
		return nil
	}
	all, err := h.kinds.Changes(ctx, s.Digest)
	if err != nil {
		return err
	}
	s.Held = heldTools(all)
	return nil
}

// heldTools are changes as they are told, of what was accepted and what is there now.
func heldTools(all []store.Definition) (out []heldToolJSON) {
	var old *store.Definition // of the tool
	for i, d := range all {
		if d.Accepted {
			old = &all[i]
			continue
		}
		t := heldToolJSON{Name: d.Tool, Digest: d.Digest, Seen: d.Seen, New: d.Definition}
		if old != nil && old.Server == d.Server && old.Tool == d.Tool {
			t.Old = old.Definition
		}
		out = append(out, t)
	}
	return out
}

// serverRestart says which server is meant.
type serverRestart struct {
	Server string `json:"server,omitempty" maxLength:"256" doc:"Which one, of a Ghost or Bot"`
}

// restartedJSON is what a restart came to.
type restartedJSON struct {
	Node    string `json:"node" doc:"Where: other nodes keep their connections"`
	Servers int    `json:"servers" doc:"How many were ended, one for each who has values of his own; 0 where nobody had needed it here"`
}

func (h *Hub) restartServer(ctx context.Context, in *struct {
	DefiningPath
	Body serverRestart
}) (*body[restartedJSON], error) {
	return h.restart(ctx, kinds.Subject{Kind: in.Kind, Namespace: in.Namespace, Name: in.Name, Server: in.Body.Server})
}

// OperatorsPath names a server of the operator.
type OperatorsPath struct {
	Name string `path:"name" minLength:"1" maxLength:"256" doc:"Of a server of the operator"`
}

func (h *Hub) restartOperators(ctx context.Context, in *OperatorsPath) (*body[restartedJSON], error) {
	return h.restart(ctx, kinds.Subject{Server: in.Name})
}

func (h *Hub) restart(ctx context.Context, of kinds.Subject) (*body[restartedJSON], error) {
	digest, err := h.kinds.Restart(ctx, account.FromContext(ctx), of)
	if err != nil {
		return nil, err
	}
	return answered(restartedJSON{h.node, h.kits.Restart(digest)}, nil)
}

// definitionsToAccept are tools that somebody looked at.
type definitionsToAccept struct {
	Digests []string `json:"digests" minItems:"1" maxItems:"500" nullable:"false" doc:"Of the definitions that were looked at, as in held"`
}

type serverAcceptance struct {
	Server  string   `json:"server,omitempty" maxLength:"256" doc:"Which one, of a Ghost or Bot"`
	Digests []string `json:"digests" minItems:"1" maxItems:"500" nullable:"false" doc:"Of the definitions that were looked at, as in held"`
}

// acceptedJSON are the tools that may be used now.
type acceptedJSON struct {
	Tools []string `json:"tools" nullable:"false"`
}

func (h *Hub) acceptTools(ctx context.Context, in *struct {
	DefiningPath
	Body serverAcceptance
}) (*body[acceptedJSON], error) {
	return h.accept(ctx, kinds.Subject{Kind: in.Kind, Namespace: in.Namespace, Name: in.Name, Server: in.Body.Server}, in.Body.Digests)
}

func (h *Hub) acceptOperators(ctx context.Context, in *struct {
	OperatorsPath
	Body definitionsToAccept
}) (*body[acceptedJSON], error) {
	return h.accept(ctx, kinds.Subject{Server: in.Name}, in.Body.Digests)
}

func (h *Hub) accept(ctx context.Context, of kinds.Subject, digests []string) (*body[acceptedJSON], error) {
	names, err := h.kinds.AcceptTools(ctx, account.FromContext(ctx), of, digests)
	if errors.Is(err, store.ErrConflict) {
		err = fmt.Errorf("%w; look at the server again", err)
	}
	return answered(acceptedJSON{names}, err)
}
