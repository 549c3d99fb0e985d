package mcpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/assembly"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/tools"
)

// grantJSON is a saved permission to call a tool without approval.
type grantJSON struct {
	ID      string `json:"id"`
	User    string `json:"user" doc:"ID of the user"`
	Name    string `json:"name" doc:"Name of the tool, for display"`
	Origin  string `json:"origin,omitempty" doc:"Origin of the tool, for display"`
	Subject string `json:"subject" doc:"Digest of the tool definition and the server configuration; a change invalidates the grant"`
	Scope   string `json:"scope" enum:"once,session,always"`
	Session string `json:"session,omitempty" doc:"Conversation that it is valid for"`
	// ReadOnly has the same meaning as in [policy.Grant].
	ReadOnly bool       `json:"read_only,omitempty" doc:"Whether read_tool may call the tool, because the user saw that it declares that it only reads"`
	Created  time.Time  `json:"created"`
	Expires  *time.Time `json:"expires,omitempty"`
}

func newGrantJSON(g policy.Grant) grantJSON {
	return grantJSON{ID: g.ID, User: g.Principal.ID, Name: g.Name, Origin: g.Origin, Subject: string(g.Subject), Scope: string(g.Scope),
		Session: g.Session, ReadOnly: g.ReadOnly, Created: g.Created, Expires: api.OptionalTime(g.Expires)}
}

// grantRequest is a request for permission to call an agent's tool.
type grantRequest struct {
	Tool      string          `json:"tool" minLength:"1" maxLength:"256" doc:"Name for calls"`
	Kind      string          `json:"kind,omitempty" enum:"Ghost,Bot,Team" doc:"Agent with the tool; default everything that you can access"`
	Namespace string          `json:"namespace,omitempty" maxLength:"128"`
	Name      string          `json:"name,omitempty" maxLength:"512"`
	Arguments json.RawMessage `json:"arguments,omitempty" doc:"An object; grants only calls with exactly these arguments"`
	Subject   string          `json:"subject,omitempty" maxLength:"100" doc:"Digest of the tool that you inspected; any other is rejected"`
	Scope     policy.Scope    `json:"scope" enum:"once,session,always"`
	Session   string          `json:"session,omitempty" maxLength:"64" doc:"Conversation, for scope session"`
	ReadOnly  bool            `json:"read_only,omitempty" doc:"Confirms that you were shown the tool's read-only declaration: with scope always and without arguments, read_tool may call it too"`
	Expires   *time.Time      `json:"expires,omitempty" doc:"Default never for scope always, otherwise a day"`
}

func (h *Handlers) grantsAPI() {
	api.Add(h.Server, api.Operation("list-grants", "GET", "/grants", "List the saved permissions of a user, oldest first"), h.listGrants)
	api.Add(h.Server, api.WithCreated(api.Operation("give-grant", "POST", "/grants", "Save a permission for a tool as it is now. Rules that deny still apply")), h.createGrant)
	api.Add(h.Server, api.Operation("withdraw-grant", "DELETE", "/grants/{grant}", "Revoke a saved permission"), h.revokeGrant)
}

func (h *Handlers) listGrants(ctx context.Context, in *struct {
	api.UserQuery
	api.Paging
}) (*api.Body[api.ListBody[grantJSON]], error) {
	p := account.FromContext(ctx)
	user := api.UserID(p, in.User)
	if err := h.authorizeGrants(ctx, p, account.GrantRead, user); err != nil {
		return nil, err
	}
	var after int64
	if in.After != "" {
		var err error
		if after, err = strconv.ParseInt(in.After, 10, 64); err != nil {
			return nil, store.ErrInvalid
		}
	}
	rows, err := h.DB.Grants.List(ctx, grantee(user), after)
	if err != nil {
		return nil, err
	}
	next := ""
	if len(rows) > in.Limit {
		rows = rows[:in.Limit]
		next = strconv.FormatInt(rows[in.Limit-1].Seq, 10)
	}
	grants := make([]policy.Grant, 0, len(rows))
	for _, r := range rows {
		if g, ok := toolGrant(r); ok {
			grants = append(grants, g)
		}
	}
	return api.PageOf(grants, next, nil, newGrantJSON)
}

// toolGrant decodes a row. It returns false if the row is not a tool grant.
func toolGrant(r store.Grant) (policy.Grant, bool) {
	g, err := policy.ReadGrant(r.Data)
	return g, err == nil && g.Permissions.Call
}

// grantee returns the principal that stands for a user in stored grants.
func grantee(u account.UserID) string { return policy.UserPrincipal + ":" + string(u) }

func (h *Handlers) createGrant(ctx context.Context, in *struct{ Body grantRequest }) (*api.Body[grantJSON], error) {
	p, want := account.FromContext(ctx), in.Body
	if err := h.authorizeGrants(ctx, p, account.GrantWrite, p.User); err != nil {
		return nil, err
	}
	if err := want.check(time.Now()); err != nil {
		return nil, err
	}
	at, err := Agent{Kind: want.Kind, Namespace: want.Namespace, Name: want.Name}.position()
	if err != nil {
		return nil, err
	}
	// The agent is opened with all of the user's scopes, regardless of the token.
	p.Scopes = agentScopes
	e, err := h.endpoints.acquire(ctx, p, at)
	if err != nil {
		return nil, err
	}
	defer h.endpoints.release(e)
	c := &tools.Call{Name: want.Tool, Arguments: want.Arguments, Subject: policy.Digest(want.Subject), Principal: assembly.UserPrincipal(p.User), Session: want.Session, Presence: "request to the hub", ReadOnlyShown: want.ReadOnly}
	if err := e.setup.Tools.Grant(ctx, c, want.Scope, len(want.Arguments) > 0, c.Principal); err != nil {
		return nil, grantProblem(err)
	}
	g, err := h.findGranted(ctx, p.User, want)
	return api.BodyOf(newGrantJSON(g), err)
}

// check returns an error that lists the invalid fields.
func (g *grantRequest) check(now time.Time) error {
	var faults []api.Fault
	add := func(field, why string) { faults = append(faults, api.Fault{Where: "body." + field, Message: why}) }
	if (g.Session != "") != (g.Scope == policy.ForSession) {
		add("session", "is needed with scope session, and only then")
	}
	var object map[string]json.RawMessage
	if len(g.Arguments) > 0 && json.Unmarshal(g.Arguments, &object) != nil {
		add("arguments", "must be an object")
	}
	if g.Expires != nil && !g.Expires.After(now) {
		add("expires", "must be in the future")
	}
	if g.Subject != "" {
		if err := policy.Digest(g.Subject).Check(); err != nil {
			add("subject", err.Error())
		}
	}
	if len(faults) > 0 {
		return api.InvalidFields(faults...)
	}
	return nil
}

// grantProblem converts an error from granting a permission to a problem. It
// returns unknown errors unchanged.
func grantProblem(err error) error {
	if e, ok := errors.AsType[*tools.UnknownToolError](err); ok {
		return &api.Problem{Status: 404, Code: "not_found", Detail: e.Error(), Next: "list the tools: GET " + api.Prefix + "/capabilities?connect=true"}
	}
	if e, ok := errors.AsType[*loadout.RefusedError](err); ok && e.NeedsApproval {
		return &api.Problem{Status: 409, Code: "changed", Detail: e.Error(), Next: "inspect the tool again and send its current subject"}
	} else if ok {
		return &api.Problem{Status: 403, Code: "by_rule", Detail: e.Error(), Next: "ask the owner of the agent's rules"}
	}
	if e, ok := errors.AsType[*tools.FailedError](err); ok {
		return &api.Problem{Status: 502, Code: "server", Detail: e.Error(), Next: "try again when the MCP server responds"}
	}
	return err
}

// findGranted returns the grant that was just stored, with the requested expiry.
func (h *Handlers) findGranted(ctx context.Context, u account.UserID, want grantRequest) (policy.Grant, error) {
	var g policy.Grant
	err := h.eachGrant(ctx, u, func(r store.Grant) bool {
		if one, ok := toolGrant(r); ok && one.Name == want.Tool && one.Scope == want.Scope && one.Session == want.Session {
			g = one // the last match is the newest
		}
		return true
	})
	switch {
	case err != nil:
		return g, err
	case g.ID == "": // already used or revoked
		return g, fmt.Errorf("get grant for %s: %w", want.Tool, store.ErrNotFound)
	case want.Expires == nil:
		return g, nil
	}
	g.Expires = *want.Expires
	return assembly.NewGrantStore(h.DB, g.Principal).Put(ctx, g)
}

// eachGrant calls f for each of a user's grants until f returns false.
func (h *Handlers) eachGrant(ctx context.Context, u account.UserID, f func(store.Grant) bool) error {
	for after := int64(0); ; {
		rows, err := h.DB.Grants.List(ctx, grantee(u), after)
		if err != nil || len(rows) == 0 {
			return err
		}
		for _, r := range rows {
			if after = r.Seq; !f(r) {
				return nil
			}
		}
	}
}

func (h *Handlers) revokeGrant(ctx context.Context, in *struct {
	Grant string `path:"grant" maxLength:"256" doc:"ID of a grant"`
}) (*api.NoBody, error) {
	p := account.FromContext(ctx)
	if err := h.authorizeGrants(ctx, p, account.GrantWrite, p.User); err != nil {
		return nil, err
	}
	var g policy.Grant
	err := h.eachGrant(ctx, p.User, func(r store.Grant) bool {
		one, ok := toolGrant(r)
		if ok = ok && r.ID == in.Grant; ok {
			g = one
		}
		return !ok
	})
	if err != nil {
		return nil, err
	}
	if g.ID == "" {
		return nil, store.ErrNotFound
	}
	return nil, h.DB.Tx(ctx, func(tx *store.Tx) error {
		if _, err := tx.Grants.Delete(ctx, in.Grant); err != nil {
			return err
		}
		return tx.Audit.Append(ctx, grantRecord(p, account.GrantWrite, p.User, "allowed", map[string]string{"withdrawn": g.Name, "subject": string(g.Subject)}))
	})
}

// authorizeGrants checks access to a user's grants and records a denial.
func (h *Handlers) authorizeGrants(ctx context.Context, p account.Principal, action account.Action, of account.UserID) error {
	err := account.Check(p, action, account.OwnedBy(of))
	if err == nil {
		return nil
	}
	return errors.Join(err, h.DB.Audit.Append(ctx, grantRecord(p, action, of, "denied", nil)))
}

func grantRecord(p account.Principal, action account.Action, of account.UserID, decision string, details map[string]string) store.AuditRecord {
	r := store.AuditRecord{Actor: string(p.User), Action: string(action), Namespace: store.UserNamespace(string(of)), Decision: decision}
	if details != nil {
		r.Details, _ = json.Marshal(details) // cannot fail for strings
	}
	return r
}
