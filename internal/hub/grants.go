package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/hub/kit"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/tools"
)

// grantJSON is leave that somebody gave: what would be done for him is done without
// asking him again.
type grantJSON struct {
	ID      string     `json:"id"`
	User    string     `json:"user" doc:"The id of the user whose calls it is for"`
	Name    string     `json:"name" doc:"Of the tool, for people"`
	Origin  string     `json:"origin,omitempty" doc:"Whose tool it is, for people"`
	Subject string     `json:"subject" doc:"The digest of the tool as it is defined and its server configured; for another one it does not count"`
	Scope   string     `json:"scope" enum:"once,session,always"`
	Session string     `json:"session,omitempty" doc:"The conversation that it is for"`
	Created time.Time  `json:"created"`
	Expires *time.Time `json:"expires,omitempty"`
}

func grantOf(g policy.Grant) grantJSON {
	return grantJSON{ID: g.ID, User: g.Principal.ID, Name: g.Name, Origin: g.Origin, Subject: string(g.Subject), Scope: string(g.Scope),
		Session: g.Session, Created: g.Created, Expires: when(g.Expires)}
}

// grantRequest gives leave for a tool, as one finds it with an agent.
type grantRequest struct {
	Tool      string          `json:"tool" minLength:"1" maxLength:"256" doc:"The name by which it is called"`
	Kind      string          `json:"kind,omitempty" enum:"Ghost,Bot,Team" doc:"Of the agent that has the tool; without it, it is all that you reach"`
	Namespace string          `json:"namespace,omitempty" maxLength:"128"`
	Name      string          `json:"name,omitempty" maxLength:"512"`
	Arguments json.RawMessage `json:"arguments,omitempty" doc:"An object: leave for calls with these arguments and no others"`
	Subject   string          `json:"subject,omitempty" maxLength:"100" doc:"The digest of the tool that you looked at; another one is refused"`
	Scope     policy.Scope    `json:"scope" enum:"once,session,always"`
	Session   string          `json:"session,omitempty" maxLength:"64" doc:"The conversation that it is for, where its scope is that"`
	Expires   *time.Time      `json:"expires,omitempty" doc:"Without it, leave for always never does, and other leave after a day"`
}

func (h *Hub) grantsAPI(api huma.API) {
	add(h, api, operation("list-grants", "GET", "/grants", "What tools somebody is not asked about, in the order in which he said so"), h.listGrants)
	add(h, api, created(operation("give-grant", "POST", "/grants", "Be asked no more about a tool that you use, as it is now. What a rule denies stays denied")), h.giveGrant)
	add(h, api, operation("withdraw-grant", "DELETE", "/grants/{grant}", "Be asked again"), h.withdrawGrant)
}

func (h *Hub) listGrants(ctx context.Context, in *struct {
	TokenOwner
	Paging
}) (*body[listed[grantJSON]], error) {
	p := account.FromContext(ctx)
	user := userID(p, in.User)
	if err := h.mayGrant(ctx, p, account.GrantRead, user); err != nil {
		return nil, err
	}
	var after int64
	if in.After != "" {
		var err error
		if after, err = strconv.ParseInt(in.After, 10, 64); err != nil {
			return nil, store.ErrInvalid
		}
	}
	rows, err := h.db.Grants.List(ctx, grantee(user), after)
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
	return page(grants, next, nil, grantOf)
}

// toolGrant is a row as leave for a tool, where it is that.
func toolGrant(r store.Grant) (policy.Grant, bool) {
	g, err := policy.ReadGrant(r.Data)
	return g, err == nil && g.Allows.Call
}

// grantee is a user as the rows of grants have him.
func grantee(u account.UserID) string { return policy.Person + ":" + string(u) }

func (h *Hub) giveGrant(ctx context.Context, in *struct{ Body grantRequest }) (*body[grantJSON], error) {
	p, want := account.FromContext(ctx), in.Body
	if err := h.mayGrant(ctx, p, account.GrantWrite, p.User); err != nil {
		return nil, err
	}
	if err := want.check(time.Now()); err != nil {
		return nil, err
	}
	at, err := Agent{Kind: want.Kind, Namespace: want.Namespace, Name: want.Name}.place()
	if err != nil {
		return nil, err
	}
	// It is found as the person has it, whatever else the token may do.
	p.Scopes = mcpScopes | account.ScopeChat
	e, err := h.endpoints.enter(ctx, p, at)
	if err != nil {
		return nil, err
	}
	defer h.endpoints.leave(e)
	c := &tools.Call{Name: want.Tool, Arguments: want.Arguments, Subject: policy.Digest(want.Subject), Principal: personOf(p.User), Session: want.Session}
	if err := e.kit.Tools.Grant(ctx, c, want.Scope, len(want.Arguments) > 0, c.Principal); err != nil {
		return nil, refusedGrant(err)
	}
	g, err := h.given(ctx, p.User, want)
	return answered(grantOf(g), err)
}

// check refuses leave that means nothing.
func (g *grantRequest) check(now time.Time) error {
	var faults []Fault
	add := func(field, why string) { faults = append(faults, Fault{"body." + field, why}) }
	if (g.Session != "") != (g.Scope == policy.ForSession) {
		add("session", "it is given with the scope session, and with no other")
	}
	var object map[string]json.RawMessage
	if len(g.Arguments) > 0 && json.Unmarshal(g.Arguments, &object) != nil {
		add("arguments", "they are an object")
	}
	if g.Expires != nil && !g.Expires.After(now) {
		add("expires", "it is over")
	}
	if g.Subject != "" {
		if _, err := policy.ParseDigest(g.Subject); err != nil {
			add("subject", err.Error())
		}
	}
	if len(faults) > 0 {
		return &Problem{Status: 422, Code: "invalid", Detail: "the request cannot be taken as it is", Next: "mend what is in errors", Errors: faults}
	}
	return nil
}

// refusedGrant is why leave for a tool was not kept, over HTTP.
func refusedGrant(err error) error {
	if e, ok := errors.AsType[*tools.UnknownToolError](err); ok {
		return &Problem{Status: 404, Code: "not_found", Detail: e.Error(), Next: "see what there is: GET " + base + "/capabilities?connect=true"}
	}
	if e, ok := errors.AsType[*tools.RefusedError](err); ok && e.Ask {
		return &Problem{Status: 409, Code: "changed", Detail: e.Error(), Next: "look at the tool again, and send the subject that it has now"}
	} else if ok {
		return &Problem{Status: 403, Code: "by_rule", Detail: e.Error(), Next: "ask who keeps the rules of the agent"}
	}
	if e, ok := errors.AsType[*tools.FailedError](err); ok {
		return &Problem{Status: 502, Code: "server", Detail: e.Error(), Next: "try again when the MCP server answers"}
	}
	return err
}

// given is the leave that was just kept, until when it was wanted.
func (h *Hub) given(ctx context.Context, u account.UserID, want grantRequest) (policy.Grant, error) {
	var g policy.Grant
	err := h.eachGrant(ctx, u, func(r store.Grant) bool {
		if one, ok := toolGrant(r); ok && one.Name == want.Tool && one.Scope == want.Scope && one.Session == want.Session {
			g = one // the last one counts
		}
		return true
	})
	switch {
	case err != nil:
		return g, err
	case g.ID == "": // it was used up, or withdrawn, at once
		return g, fmt.Errorf("leave for %s: %w", want.Tool, store.ErrNotFound)
	case want.Expires == nil:
		return g, nil
	}
	g.Expires = *want.Expires
	return kit.NewGrants(h.db, g.Principal).Put(ctx, g)
}

// eachGrant calls f with the grants of a user until it returns false.
func (h *Hub) eachGrant(ctx context.Context, u account.UserID, f func(store.Grant) bool) error {
	for after := int64(0); ; {
		rows, err := h.db.Grants.List(ctx, grantee(u), after)
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

func (h *Hub) withdrawGrant(ctx context.Context, in *struct {
	Grant string `path:"grant" maxLength:"256" doc:"The id of a grant"`
}) (*nothing, error) {
	p := account.FromContext(ctx)
	if err := h.mayGrant(ctx, p, account.GrantWrite, p.User); err != nil {
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
	return nil, h.db.Tx(ctx, func(tx *store.Tx) error {
		if _, err := tx.Grants.Delete(ctx, in.Grant); err != nil {
			return err
		}
		return tx.Audit.Append(ctx, grantRecord(p, account.GrantWrite, p.User, "allowed", map[string]string{"withdrawn": g.Name, "subject": string(g.Subject)}))
	})
}

// mayGrant decides about the grants of a user, and records where it may not be.
func (h *Hub) mayGrant(ctx context.Context, p account.Principal, action account.Action, of account.UserID) error {
	err := account.Check(p, action, account.Of(of))
	if err == nil {
		return nil
	}
	return errors.Join(err, h.db.Audit.Append(ctx, grantRecord(p, action, of, "denied", nil)))
}

func grantRecord(p account.Principal, action account.Action, of account.UserID, decision string, details map[string]string) store.Record {
	r := store.Record{Actor: string(p.User), Action: string(action), Namespace: store.UserNamespace(string(of)), Decision: decision}
	if details != nil {
		r.Details, _ = json.Marshal(details) // it is text
	}
	return r
}
