package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/hub/kinds"
	"github.com/loadout-dev/loadout/internal/hub/kit"
	"github.com/loadout-dev/loadout/internal/seal"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/mcpserver"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/tools"
)

// newEndpoint puts together what a principal has at a place.
func (h *Hub) newEndpoint(ctx context.Context, p account.Principal, key slot, made string) (*endpoint, error) {
	k, err := h.kits.Open(ctx, kit.Want{Principal: p, Kind: key.at.kind, Namespace: key.at.namespace, Name: key.at.name})
	if err != nil {
		return nil, err
	}
	e := &endpoint{user: key.user, scopes: key.scopes, at: key.at, made: made, kit: k, uses: &tally{kit: k}, gone: make(chan struct{})}
	o := &mcpserver.Options{Tools: k.Tools, Remote: true, Person: k.Person, Refresh: k.Refresh, Answers: h.answers(p.User, key.at), Allow: key.at.allow,
		Used: func(u mcpserver.Use) { h.metrics.used(u); e.uses.add(u) }, Version: h.opts.Version, Logger: h.log}
	if k.Profile != nil {
		o.Lead = k.Profile.SystemPrompt
	}
	var sdk *mcp.Server
	o.Extend = func(s *mcp.Server) { sdk = s }
	e.server = mcpserver.New(k.Runtime, o)
	sdk.AddReceivingMiddleware(h.watched(e))
	e.handler = (&mcpserver.HTTPOptions{Stateless: true}).Endpoint(sdk, h.log)
	return e, nil
}

// personOf is a user to packages below, whom grants and decisions are of.
func personOf(u account.UserID) policy.Principal {
	return policy.Principal{ID: string(u), Kind: policy.Person}
}

// under are the namespaces whose settings count at an endpoint.
func (e *endpoint) under() []store.Namespace {
	if e.kit.Profile != nil {
		return e.kit.Profile.Under
	}
	return []store.Namespace{store.UserNamespace(string(e.user))}
}

// watched records who connects, and ends what is called when skills are switched off, or
// this node ends.
func (h *Hub) watched(e *endpoint) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			switch method {
			case "initialize", "server/discover":
				if err := h.recordConnection(ctx, e, req); err != nil {
					return nil, err
				}
			case "tools/call":
				ctx, stop := context.WithCancel(ctx)
				defer stop()
				defer context.AfterFunc(h.endpoints.cut, stop)()
				ctx, forget := h.inUse.while(ctx, account.FromContext(ctx))
				defer forget()
				return h.metrics.counted(ctx, func(ctx context.Context) (mcp.Result, error) { return h.callUnder(ctx, e, method, req, next) })
			}
			return next(ctx, method, req)
		}
	}
}

// callUnder makes a call under the kill switch.
func (h *Hub) callUnder(ctx context.Context, e *endpoint, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	held, stop, err := h.kinds.Hold(ctx, e.under()...)
	off, isOff := errors.AsType[*kinds.DisabledError](err)
	if isOff {
		return switchedOff(ctx, off), nil
	}
	if err != nil {
		return nil, err
	}
	defer stop()
	res, err := next(held, method, req)
	if errors.Is(context.Cause(held), errTokenEnded) {
		return notDone(ctx, errTokenEnded.Detail, "Make another, and connect with it."), nil
	}
	if off, isOff := errors.AsType[*kinds.DisabledError](context.Cause(held)); isOff {
		return switchedOff(ctx, off), nil
	}
	return res, err
}

func switchedOff(ctx context.Context, why error) *mcp.CallToolResult {
	return notDone(ctx, why.Error(), "Ask an administrator.")
}

// notDone says why a call was not made, or not to its end.
func notDone(ctx context.Context, why, next string) *mcp.CallToolResult {
	noteRefused(ctx, true)
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "Not done: " + why + ". " + next}}}
}

// recordConnection keeps in the audit log that a client began, which one it says it is,
// and by which protocol.
func (h *Hub) recordConnection(ctx context.Context, e *endpoint, req mcp.Request) error {
	said := map[string]string{}
	switch p := req.GetParams().(type) {
	case *mcp.InitializeParams:
		said["protocol"] = p.ProtocolVersion
		if p.ClientInfo != nil {
			said["client"] = clipped(p.ClientInfo.Name + " " + p.ClientInfo.Version)
		}
	default:
		said["protocol"] = "2026-07-28"
	}
	details, err := json.Marshal(said)
	if err != nil {
		return err
	}
	return h.db.Audit.Append(ctx, store.Record{Actor: string(e.user), Action: string(account.MCPConnect), Namespace: store.UserNamespace(string(e.user)),
		Subject: e.at.String(), Decision: "allowed", Details: details})
}

// clipped is what a client says of itself, no longer than anybody reads.
func clipped(s string) string {
	if r := []rune(s); len(r) > 100 {
		return string(r[:100])
	}
	return s
}

// allow says how a person allows what was refused, for a client that cannot ask. Only a
// review lets code of a skill run.
func (at place) allow(err error) string {
	if refused, ok := errors.AsType[*tools.RefusedError](err); ok && refused.Ask {
		body, err := json.Marshal(grantRequest{Tool: refused.Tool.Name, Kind: at.kind, Namespace: at.namespace, Name: at.name, Scope: policy.Always})
		if err != nil {
			return ""
		}
		return "a person allows it on the page of the hub, or by POST " + base + "/grants with " + string(body)
	}
	if refused, ok := errors.AsType[*loadout.RefusedError](err); ok {
		return fmt.Sprintf("have the code of the skill %s reviewed, for this version of it, by somebody who manages where it is: GET %s/reviews", refused.Skill, base)
	}
	return ""
}

// answers has any node take the answer to what another one asked, once.
func (h *Hub) answers(u account.UserID, at place) *mcpserver.Answers {
	label := seal.Label{Owner: "mcp-answer/" + string(u), Name: at.String()}
	return &mcpserver.Answers{
		Seal: func(question []byte) []byte {
			sealed, err := h.sealer.Seal(question, label)
			if err != nil { // it is too long: then the answer opens nothing, and is asked for again
				h.log.Warn("a question to a person could not be sealed", "error", err)
			}
			return []byte(sealed)
		},
		Open: func(sealed []byte) ([]byte, error) { return h.sealer.Open(string(sealed), label) },
		Use:  func(ctx context.Context, answer string, _ time.Time) bool { return h.useAnswer(ctx, u, answer) },
	}
}

// useAnswer notes that an answer is used, and reports whether it was not before. What is
// noted goes with other questions that were settled, long after it is good for nothing.
func (h *Hub) useAnswer(ctx context.Context, u account.UserID, answer string) bool {
	id := "mcp-" + answer
	err := h.db.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.Asks.Put(ctx, store.Ask{ID: id, Session: "mcp", Data: json.RawMessage(`{"by":"` + string(u) + `"}`)}); err != nil {
			return err
		}
		_, _, err := tx.Asks.Settle(ctx, id, json.RawMessage(`true`))
		return err
	})
	if err != nil && !errors.Is(err, store.ErrExists) {
		h.log.Error("whether an answer was used before cannot be known", "error", err)
	}
	return err == nil
}
