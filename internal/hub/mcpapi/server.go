package mcpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/encryption"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/assembly"
	"github.com/loadout-dev/loadout/internal/hub/auth"
	"github.com/loadout-dev/loadout/internal/hub/metrics"
	"github.com/loadout-dev/loadout/internal/rpcmessage"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/mcpserver"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/tools"
)

// newEndpoint opens the endpoint for a principal and agent.
func (h *Handlers) newEndpoint(ctx context.Context, p account.Principal, key slotKey, made state) (*endpoint, error) {
	if key.at.kind == agents.ServerKind {
		return h.newPassthrough(ctx, p, key, made)
	}
	k, err := h.Assemblies.Open(ctx, assembly.Request{Principal: p, Kind: key.at.kind, Namespace: key.at.namespace, Name: key.at.name})
	if err != nil {
		return nil, err
	}
	e := &endpoint{user: key.user, scopes: key.scopes, at: key.at, current: made, setup: k, gone: make(chan struct{})}
	o := &mcpserver.Options{Tools: k.Tools, FirstSkills: func() ([]string, bool) { return k.FirstSkills(context.Background()) }, Remote: true, Principal: k.Principal, Refresh: k.Refresh, SharedAnswers: h.sharedAnswers(p.User, key.at), HowToApprove: key.at.howToApprove,
		OnUse: func(u mcpserver.Use) { h.Metrics.CountUse(u); h.countUse(e, u); e.setup.RecordRun(u) }, Version: h.Version, Logger: h.Log}
	if len(k.Publishers()) > 0 {
		o.ReviewSkill = k.ReviewSkill
	}
	if k.Profile != nil {
		o.Preamble = k.Profile.SystemPrompt
	}
	o.Middleware = h.watchTools(e)
	if key.at.kind == "" && len(k.Publishers()) > 0 {
		watch, republish := o.Middleware, h.republish(e)
		o.Middleware = func(next mcp.MethodHandler) mcp.MethodHandler { return watch(republish(next)) }
	}
	server := mcpserver.New(k.Runtime, o)
	e.server, e.handler = server, server.Endpoint(&mcpserver.HTTPOptions{Stateless: true})
	return e, nil
}

// settingNamespaces returns the namespaces whose settings apply to an endpoint.
func (e *endpoint) settingNamespaces() []store.Namespace {
	if e.setup.Profile != nil {
		return e.setup.Profile.SettingsNamespaces
	}
	return []store.Namespace{store.UserNamespace(string(e.user))}
}

// watchTools returns middleware that records connections. It also cancels calls
// when skills are disabled or the node shuts down.
func (h *Handlers) watchTools(e *endpoint) mcp.Middleware {
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
				ctx, forget := h.Credentials.EndWith(ctx, account.FromContext(ctx))
				defer forget()
				return h.Metrics.Instrument(ctx, func(ctx context.Context) (mcp.Result, error) { return h.callAs(ctx, e, method, req, next) })
			}
			return next(ctx, method, req)
		}
	}
}

// callAs calls next with a context that the kill switch cancels.
func (h *Handlers) callAs(ctx context.Context, e *endpoint, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	held, stop, err := h.Agents.WithKillSwitch(ctx, e.settingNamespaces()...)
	off, isOff := errors.AsType[*agents.DisabledError](err)
	if isOff {
		return disabledResult(ctx, off), nil
	}
	if err != nil {
		return nil, err
	}
	defer stop()
	res, err := next(held, method, req)
	if errors.Is(context.Cause(held), auth.ErrTokenEnded) {
		return failedResult(ctx, auth.ErrTokenEnded.Detail, "Create another one and reconnect."), nil
	}
	if off, isOff := errors.AsType[*agents.DisabledError](context.Cause(held)); isOff {
		return disabledResult(ctx, off), nil
	}
	return res, err
}

func disabledResult(ctx context.Context, why error) *mcp.CallToolResult {
	return failedResult(ctx, why.Error(), "Ask an administrator.")
}

// failedResult returns the result of a call that was refused or cancelled.
func failedResult(ctx context.Context, why, next string) *mcp.CallToolResult {
	metrics.RecordRefusal(ctx, true)
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "Not done: " + why + ". " + next}}}
}

// recordConnection records a connection in the audit log, with the client's name
// and protocol version.
func (h *Handlers) recordConnection(ctx context.Context, e *endpoint, req mcp.Request) error {
	said := map[string]string{}
	switch p := req.GetParams().(type) {
	case *mcp.InitializeParams:
		said["protocol"] = p.ProtocolVersion
		if p.ClientInfo != nil {
			said["client"] = truncate(p.ClientInfo.Name + " " + p.ClientInfo.Version)
		}
	default:
		said["protocol"] = rpcmessage.ModernVersion
	}
	details, err := json.Marshal(said)
	if err != nil {
		return err
	}
	return h.DB.Audit.Append(ctx, store.AuditRecord{Actor: string(e.user), Action: string(account.MCPConnect), Namespace: store.UserNamespace(string(e.user)),
		Subject: e.at.String(), Decision: "allowed", Details: details})
}

// truncate truncates text from a client to 100 characters.
func truncate(s string) string {
	if r := []rune(s); len(r) > 100 {
		return string(r[:100])
	}
	return s
}

// howToApprove explains how to allow a denied call if the client cannot prompt the
// user. A skill's code always requires a review.
func (at agentRef) howToApprove(err error) string {
	if e, ok := errors.AsType[*tools.NotReadOnlyError](err); ok && e.Approvable {
		return at.grantHint(grantRequest{Tool: e.Tool.Name, ReadOnly: true})
	}
	refused, ok := errors.AsType[*loadout.RefusedError](err)
	label, served := assembly.PublisherOf(err)
	switch {
	case !ok:
		return ""
	case served:
		return fmt.Sprintf("review it on the page of the MCP server in the hub, and approve it there, or with POST %s/published-skills/%s/approve", api.Prefix, label)
	case refused.Call == nil:
		return fmt.Sprintf("ask an owner or maintainer of skill %s to review this version (GET %s/reviews)", refused.Skill, api.Prefix)
	case refused.NeedsApproval:
		return at.grantHint(grantRequest{Tool: refused.Call.Tool})
	}
	return ""
}

// grantHint returns a hint that completes the sentence "The user can …". It
// says how to grant the permission permanently.
func (at agentRef) grantHint(g grantRequest) string {
	g.Kind, g.Namespace, g.Name, g.Scope = at.kind, at.namespace, at.name, policy.Always
	body, err := json.Marshal(g)
	switch {
	case err != nil:
		return ""
	case g.ReadOnly:
		return "look at the tool's definition, and send POST " + api.Prefix + "/grants with " + string(body)
	}
	return "allow it on the page of the hub, or with POST " + api.Prefix + "/grants with " + string(body)
}

// sharedAnswers lets any node accept the answer to a question that another node
// asked. Each answer is accepted only once.
func (h *Handlers) sharedAnswers(u account.UserID, at agentRef) *mcpserver.SharedAnswers {
	label := encryption.Label{Owner: "mcp-answer/" + string(u), Name: at.String()}
	return &mcpserver.SharedAnswers{
		Encrypt: func(question []byte) []byte {
			sealed, err := h.Cipher.Encrypt(question, label)
			if err != nil { // too long: the answer cannot be decrypted, and the question is asked again
				h.Log.Warn("couldn't encrypt a question to a user", "error", err)
			}
			return []byte(sealed)
		},
		Decrypt:  func(sealed []byte) ([]byte, error) { return h.Cipher.Decrypt(string(sealed), label) },
		MarkUsed: func(ctx context.Context, answer string, _ time.Time) bool { return h.useAnswer(ctx, u, answer) },
	}
}

// useAnswer records that an answer was used and reports whether this was the first
// use. The record is pruned with resolved approval requests, long after the answer
// has expired.
func (h *Handlers) useAnswer(ctx context.Context, u account.UserID, answer string) bool {
	id := "mcp-" + answer
	err := h.DB.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.ApprovalRequests.Add(ctx, store.ApprovalRequest{ID: id, Session: "mcp", Data: json.RawMessage(`{"by":"` + string(u) + `"}`)}); err != nil {
			return err
		}
		_, _, err := tx.ApprovalRequests.Resolve(ctx, id, json.RawMessage(`true`))
		return err
	})
	if err != nil && !errors.Is(err, store.ErrExists) {
		h.Log.Error("couldn't check whether an answer was used before", "error", err)
	}
	return err == nil
}
