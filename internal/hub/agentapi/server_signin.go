package agentapi

import (
	"context"
	"crypto/rand"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/page"
	"github.com/loadout-dev/loadout/internal/hub/serverauth"
	"github.com/loadout-dev/loadout/internal/oauth"
	"github.com/loadout-dev/loadout/internal/upstream"
)

// serverCallback is the path to which authorization servers redirect users.
const serverCallback = "/servers/callback"

// serverSignInJSON is the state of a user's sign-in to an MCP server.
type serverSignInJSON struct {
	State   string     `json:"state" enum:"needed,signed_in,ended" doc:"ended: refused or expired, sign in again"`
	Since   *time.Time `json:"since,omitempty"`
	Issuer  string     `json:"issuer,omitempty" doc:"Issuer of the token"`
	Scopes  []string   `json:"scopes,omitempty"`
	Expires *time.Time `json:"expires,omitempty" doc:"Expiry of the current token"`
	Renewed bool       `json:"renewed,omitempty" doc:"Whether it is renewed automatically"`
}

// beginSignIn selects the server to sign in to and the page to return to.
type beginSignIn struct {
	Server string `json:"server,omitempty" maxLength:"256" doc:"Name of the server of a Ghost or Bot"`
	Back   string `json:"back,omitempty" maxLength:"1000" doc:"Path of the page to return to; the result is in the parameter signin"`
}

type beginOperatorsSignIn struct {
	Back string `json:"back,omitempty" maxLength:"1000" doc:"Path of the page to return to; the result is in the parameter signin"`
}

type signInStartedJSON struct {
	URL  string    `json:"url" doc:"Page to open in the browser that received the cookie of this response"`
	Ends time.Time `json:"ends" doc:"Deadline for the browser to come back"`
}

type signInStarted struct {
	SetCookie http.Cookie `header:"Set-Cookie"`
	Body      signInStartedJSON
}

type signedOutJSON struct {
	SignedOut bool `json:"signedOut" doc:"false if you were not signed in"`
	Revoked   bool `json:"revoked" doc:"Whether the issuer revoked the token; otherwise it may work until it expires"`
}

func (h *Handlers) serverSignIns() {
	api.Add(h.Server, api.Operation("begin-server-sign-in", "POST", "/servers/{kind}/{namespace}/{name}/sign-in", "Start a sign-in to a server; the response has the page to open"), h.beginServerSignIn)
	api.Add(h.Server, api.Operation("begin-operators-sign-in", "POST", "/servers/operator/{name}/sign-in", "Start a sign-in to a server of the operator"), h.beginOperators)
	api.Add(h.Server, api.Operation("end-server-sign-in", "DELETE", "/servers/{kind}/{namespace}/{name}/sign-in", "Sign out of a server: delete the token and revoke it"), h.endServerSignIn)
	api.Add(h.Server, api.Operation("list-server-sign-ins", "GET", "/servers/sign-ins", "List the servers that you are signed in to, including deleted and changed ones"), h.listServerSignIns)
	api.Add(h.Server, api.Operation("forget-server-sign-in", "DELETE", "/servers/sign-ins/{id}", "Sign out by the ID of a sign-in, even if its server is gone"), h.forgetServerSignIn)
	api.Add(h.Server, api.Operation("end-operators-sign-in", "DELETE", "/servers/operator/{name}/sign-in", "Sign out of a server of the operator"), h.endOperators)
}

func (h *Handlers) beginServerSignIn(ctx context.Context, in *struct {
	DefiningPath
	Body beginSignIn
}) (*signInStarted, error) {
	return h.startServerSignIn(ctx, agents.Subject{Kind: in.Kind, Namespace: in.Namespace, Name: in.Name, Server: in.Body.Server}, in.Body.Back)
}

func (h *Handlers) beginOperators(ctx context.Context, in *struct {
	OperatorsPath
	Body beginOperatorsSignIn
}) (*signInStarted, error) {
	return h.startServerSignIn(ctx, agents.Subject{Server: in.Name}, in.Body.Back)
}

// startServerSignIn starts a sign-in for the calling browser.
func (h *Handlers) startServerSignIn(ctx context.Context, subject agents.Subject, back string) (*signInStarted, error) {
	v := api.RequestFrom(ctx)
	redirect, err := h.redirectURL(v.HTTP)
	if err == nil {
		err = h.Gate.CountAttempt(v)
	}
	if err != nil {
		return nil, err
	}
	cookie := h.browserCookie(v.HTTP)
	page, err := h.SignIns.Begin(ctx, v.Principal, subject, serverauth.Redirection{URL: redirect, Browser: cookie.Value, ReturnPath: back})
	if err != nil {
		return nil, err
	}
	return &signInStarted{*cookie, signInStartedJSON{page, time.Now().Add(serverauth.Timeout)}}, nil
}

// redirectURL returns the redirect URL for a browser, at the hub's public address
// or at its loopback address.
func (h *Handlers) redirectURL(r *http.Request) (string, error) {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	at, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if h.Public == "" && host != "localhost" && (err != nil || !at.IsLoopback()) {
		return "", &api.Problem{Status: 409, Code: "no_public", Detail: "the public address of the hub is not set, but servers have to send browsers back there",
			Next: "ask the operator to set the public address of the hub"}
	}
	return h.Server.Origin(r) + serverCallback, nil
}

// browserCookie returns a new cookie that identifies the browser. It reuses the
// value of an earlier sign-in's cookie.
func (h *Handlers) browserCookie(r *http.Request) *http.Cookie {
	c := &http.Cookie{Name: "loadout-servers", Path: "/", MaxAge: int(serverauth.Timeout.Seconds()), Secure: h.Gate.Secure, HttpOnly: true, SameSite: http.SameSiteLaxMode}
	if c.Secure {
		c.Name = "__Host-" + c.Name
	}
	c.Value = rand.Text() + rand.Text()
	if had, err := r.Cookie(c.Name); err == nil && len(had.Value) == len(c.Value) {
		c.Value = had.Value
	}
	return c
}

// finishServerSignIn completes a sign-in after the redirect. The page gets only a
// status code, because an attacker could put any text into the URL.
func (h *Handlers) finishServerSignIn(w http.ResponseWriter, r *http.Request) {
	back, err := h.completeServerSignIn(r)
	if err != nil && !page.IsPageRequest(r) {
		h.Server.WriteProblem(w, r, err)
		return
	}
	said := "done"
	if err != nil {
		p := h.Server.Problem(r.Context(), err)
		h.Log.Warn("sign-in to a server failed", "request", p.Request, "code", p.Code, "error", p.Detail)
		said = p.Code
	}
	http.Redirect(w, r, addSignInStatus(back, said), http.StatusSeeOther)
}

func (h *Handlers) completeServerSignIn(r *http.Request) (back string, err error) {
	v, browser := api.RequestFrom(r.Context()), ""
	if had, err := r.Cookie(h.browserCookie(r).Name); err == nil { // without the cookie, any page could have sent the browser here
		if err := h.Gate.CountAttempt(v); err != nil {
			return "", err
		}
		browser = had.Value
	}
	ctx, stop := context.WithTimeoutCause(r.Context(), api.OperationTimeout, api.ErrTimeout)
	defer stop()
	return h.SignIns.Finish(ctx, v.Principal, browser, r.URL.Query())
}

// addSignInStatus appends the sign-in status to a page's path as a query
// parameter.
func addSignInStatus(back, status string) string {
	u, err := url.Parse(back)
	if err != nil || back == "" {
		u = &url.URL{Path: "/servers"}
	}
	q := u.Query()
	q.Set("signin", status)
	u.RawQuery = q.Encode()
	return u.String()
}

func (h *Handlers) endServerSignIn(ctx context.Context, in *struct {
	DefiningPath
	Server string `query:"server" maxLength:"256" doc:"Name of the server of a Ghost or Bot"`
}) (*api.Body[signedOutJSON], error) {
	return h.signOutOfServer(ctx, agents.Subject{Kind: in.Kind, Namespace: in.Namespace, Name: in.Name, Server: in.Server})
}

func (h *Handlers) endOperators(ctx context.Context, in *OperatorsPath) (*api.Body[signedOutJSON], error) {
	return h.signOutOfServer(ctx, agents.Subject{Server: in.Name})
}

func (h *Handlers) signOutOfServer(ctx context.Context, subject agents.Subject) (*api.Body[signedOutJSON], error) {
	p := account.FromContext(ctx)
	digest, found, revoked, err := h.SignIns.SignOut(ctx, p, subject)
	if err != nil {
		return nil, err
	}
	h.Assemblies.CloseConnections(p.User, digest)
	return api.BodyOf(signedOutJSON{found, revoked}, nil)
}

// mySignInJSON is one of the user's own sign-ins.
type mySignInJSON struct {
	ID     string           `json:"id"`
	Server string           `json:"server,omitempty" doc:"Address; absent if the stored data cannot be read"`
	SignIn serverSignInJSON `json:"signIn"`
}

func (h *Handlers) listServerSignIns(ctx context.Context, _ *struct{}) (*api.Body[api.ListBody[mySignInJSON]], error) {
	all, err := h.SignIns.List(ctx, account.FromContext(ctx))
	return api.PageOf(all, "", err, func(m serverauth.UserSignIn) mySignInJSON {
		return mySignInJSON{m.ID, m.Server, *newServerSignInJSON(m.Status)}
	})
}

func (h *Handlers) forgetServerSignIn(ctx context.Context, in *struct {
	ID string `path:"id" maxLength:"64"`
}) (*api.Body[signedOutJSON], error) {
	p := account.FromContext(ctx)
	revoked, err := h.SignIns.Forget(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	h.Assemblies.CloseConnections(p.User, "")
	return api.BodyOf(signedOutJSON{true, revoked}, nil)
}

func newServerSignInJSON(now serverauth.Status) *serverSignInJSON {
	out := &serverSignInJSON{State: string(now.State), Since: api.OptionalTime(now.Since)}
	if g := now.Info; g != nil {
		out.Issuer, out.Scopes, out.Expires, out.Renewed = g.Issuer, g.Scopes, api.OptionalTime(g.Expiry), g.Renewed
	}
	return out
}

// withSignIns adds the user's sign-in states to servers.
func (h *Handlers) withSignIns(ctx context.Context, p account.Principal, found []agents.ServerDefinition, servers []serverJSON) error {
	configs := make([]*upstream.Config, len(found))
	for i, d := range found {
		configs[i] = d.Config
	}
	states, err := h.SignIns.States(ctx, p.User, configs)
	if err != nil {
		return err
	}
	for i := range servers {
		s := &servers[i]
		now, ok := states[s.Digest]
		if !ok || now.State == serverauth.Needed && s.Live != nil && s.Live.State == string(upstream.Ready) {
			continue // the server works without a sign-in
		}
		if now.State == serverauth.SignedIn && s.Live != nil && s.Live.State == string(upstream.Dead) && now.Since.After(s.Live.Since) {
			s.Live = nil // the connection failed before the sign-in
		}
		s.SignIn = newServerSignInJSON(now)
	}
	return nil
}

// trialSignIn returns a function that provides the OAuth handler for a test
// connection. The handler uses the user's token.
func (h *Handlers) trialSignIn(ctx context.Context, s agents.Server) func(*upstream.Config, string) auth.OAuthHandler {
	return func(c *upstream.Config, at string) auth.OAuthHandler {
		if isDraft(s) {
			return oauth.NewRefusingHandler("if it needs a sign-in, save it first and then sign in")
		}
		return h.SignIns.Handler(account.FromContext(ctx).User, c, at)
	}
}

// isDraft reports whether a server is an unsaved draft.
func isDraft(s agents.Server) bool { return s.ID == "" && s.Owner != "" }
