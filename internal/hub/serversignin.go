package hub

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/hub/kinds"
	"github.com/loadout-dev/loadout/internal/hub/signin"
	"github.com/loadout-dev/loadout/internal/oauth"
	"github.com/loadout-dev/loadout/upstream"
)

// serverCallback is where people come back who signed in to an MCP server.
const serverCallback = "/servers/callback"

// serverSignInJSON is how it is with somebody's sign-in to a server.
type serverSignInJSON struct {
	State   string     `json:"state" enum:"needed,signed_in,ended" doc:"ended is that it was refused, or is over: sign in again"`
	Since   *time.Time `json:"since,omitempty"`
	Issuer  string     `json:"issuer,omitempty" doc:"Where the token is from"`
	Scopes  []string   `json:"scopes,omitempty"`
	Expires *time.Time `json:"expires,omitempty" doc:"Of the token that there is"`
	Renewed bool       `json:"renewed,omitempty" doc:"Whether it is renewed without you"`
}

// beginSignIn says which server is meant, and where the browser returns to.
type beginSignIn struct {
	Server string `json:"server,omitempty" maxLength:"256" doc:"Which one, of a Ghost or Bot"`
	Back   string `json:"back,omitempty" maxLength:"1000" doc:"A path of the page to return to; with signin it is told there what became of it"`
}

type beginOperatorsSignIn struct {
	Back string `json:"back,omitempty" maxLength:"1000" doc:"A path of the page to return to; with signin it is told there what became of it"`
}

type signInBegunJSON struct {
	URL  string    `json:"url" doc:"The page to open in the browser that has the cookie of this answer"`
	Ends time.Time `json:"ends" doc:"Until when the browser has to come back"`
}

type signInBegun struct {
	SetCookie http.Cookie `header:"Set-Cookie"`
	Body      signInBegunJSON
}

type signedOutJSON struct {
	SignedOut bool `json:"signedOut" doc:"false where nobody was signed in"`
	Revoked   bool `json:"revoked" doc:"Whether the token is good for nothing any more where it is from; else it may be until it ends"`
}

func (h *Hub) serverSignIns(api huma.API) {
	add(h, api, operation("begin-server-sign-in", "POST", "/servers/{kind}/{namespace}/{name}/sign-in", "Begin to sign in to a server that wants it: the answer has the page to open in a browser"), h.beginServerSignIn)
	add(h, api, operation("begin-operators-sign-in", "POST", "/servers/operator/{name}/sign-in", "The same for a server of the operator"), h.beginOperators)
	add(h, api, operation("end-server-sign-in", "DELETE", "/servers/{kind}/{namespace}/{name}/sign-in", "Sign out of a server: the token is forgotten here, and revoked where it is from"), h.endServerSignIn)
	add(h, api, operation("list-server-sign-ins", "GET", "/servers/sign-ins", "The servers that you are signed in to, also those that are gone or defined differently by now"), h.listServerSignIns)
	add(h, api, operation("forget-server-sign-in", "DELETE", "/servers/sign-ins/{id}", "Sign out by the id of a sign-in, whatever became of its server"), h.forgetServerSignIn)
	add(h, api, operation("end-operators-sign-in", "DELETE", "/servers/operator/{name}/sign-in", "The same for a server of the operator"), h.endOperators)
}

func (h *Hub) beginServerSignIn(ctx context.Context, in *struct {
	DefiningPath
	Body beginSignIn
}) (*signInBegun, error) {
	return h.toServer(ctx, kinds.Subject{Kind: in.Kind, Namespace: in.Namespace, Name: in.Name, Server: in.Body.Server}, in.Body.Back)
}

func (h *Hub) beginOperators(ctx context.Context, in *struct {
	OperatorsPath
	Body beginOperatorsSignIn
}) (*signInBegun, error) {
	return h.toServer(ctx, kinds.Subject{Server: in.Name}, in.Body.Back)
}

// toServer begins a sign-in, for the browser that asks.
func (h *Hub) toServer(ctx context.Context, of kinds.Subject, back string) (*signInBegun, error) {
	v := visitOf(ctx)
	redirect, err := h.redirect(v.request)
	if err == nil {
		err = h.door.attempt(v, "")
	}
	if err != nil {
		return nil, err
	}
	cookie := h.browser(v.request)
	page, err := h.signIns.Begin(ctx, v.by, of, signin.Coming{Redirect: redirect, Browser: cookie.Value, Back: back})
	if err != nil {
		return nil, err
	}
	return &signInBegun{*cookie, signInBegunJSON{page, time.Now().Add(signin.Time)}}, nil
}

// redirect is where a browser comes back to: at the public address of the hub, or where it
// is, on its own machine.
func (h *Hub) redirect(r *http.Request) (string, error) {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	at, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if h.opts.Public == "" && host != "localhost" && (err != nil || !at.IsLoopback()) {
		return "", &Problem{Status: 409, Code: "no_public", Detail: "the hub does not know by which address browsers reach it, and servers have to send them back there",
			Next: "ask the operator to set the public address of the hub"}
	}
	return h.origin(r) + serverCallback, nil
}

// browser is the cookie by which a browser is known that comes back: the one that it has,
// where it began another sign-in before.
func (h *Hub) browser(r *http.Request) *http.Cookie {
	c := &http.Cookie{Name: "loadout-servers", Path: "/", MaxAge: int(signin.Time.Seconds()), Secure: h.door.secure, HttpOnly: true, SameSite: http.SameSiteLaxMode}
	if c.Secure {
		c.Name = "__Host-" + c.Name
	}
	c.Value = rand.Text() + rand.Text()
	if had, err := r.Cookie(c.Name); err == nil && len(had.Value) == len(c.Value) {
		c.Value = had.Value
	}
	return c
}

// fromServer signs in who comes back, and tells the page what became of it by a code: what
// stands in an address may be anybody's words.
func (h *Hub) fromServer(w http.ResponseWriter, r *http.Request) {
	back, err := h.cameFromServer(r)
	if err != nil && !wantsPage(r) {
		h.refuse(w, r, err)
		return
	}
	said := "done"
	if err != nil {
		p := h.problem(r.Context(), err)
		h.log.Warn("a sign-in to a server failed", "request", p.Request, "code", p.Code, "error", p.Detail)
		said = p.Code
	}
	http.Redirect(w, r, telling(back, said), http.StatusSeeOther)
}

func (h *Hub) cameFromServer(r *http.Request) (back string, err error) {
	v, browser := visitOf(r.Context()), ""
	if had, err := r.Cookie(h.browser(r).Name); err == nil { // any page can send a browser here without
		if err := h.door.attempt(v, ""); err != nil {
			return "", err
		}
		browser = had.Value
	}
	ctx, stop := context.WithTimeoutCause(r.Context(), operationTime, errSlow)
	defer stop()
	return h.signIns.Finish(ctx, v.by, browser, r.URL.Query())
}

// telling is a path of the page with what is told there.
func telling(back, said string) string {
	u, err := url.Parse(back)
	if err != nil || back == "" {
		u = &url.URL{Path: "/servers"}
	}
	q := u.Query()
	q.Set("signin", said)
	u.RawQuery = q.Encode()
	return u.String()
}

func (h *Hub) endServerSignIn(ctx context.Context, in *struct {
	DefiningPath
	Server string `query:"server" maxLength:"256" doc:"Which one, of a Ghost or Bot"`
}) (*body[signedOutJSON], error) {
	return h.leaveServer(ctx, kinds.Subject{Kind: in.Kind, Namespace: in.Namespace, Name: in.Name, Server: in.Server})
}

func (h *Hub) endOperators(ctx context.Context, in *OperatorsPath) (*body[signedOutJSON], error) {
	return h.leaveServer(ctx, kinds.Subject{Server: in.Name})
}

func (h *Hub) leaveServer(ctx context.Context, of kinds.Subject) (*body[signedOutJSON], error) {
	p := account.FromContext(ctx)
	digest, found, revoked, err := h.signIns.SignOut(ctx, p, of)
	if err != nil {
		return nil, err
	}
	h.kits.SignedOut(p.User, digest)
	return answered(signedOutJSON{found, revoked}, nil)
}

// mySignInJSON is one of somebody's sign-ins.
type mySignInJSON struct {
	ID     string           `json:"id"`
	Server string           `json:"server,omitempty" doc:"Its address; not there where what is kept cannot be read"`
	SignIn serverSignInJSON `json:"signIn"`
}

func (h *Hub) listServerSignIns(ctx context.Context, _ *struct{}) (*body[listed[mySignInJSON]], error) {
	all, err := h.signIns.Mine(ctx, account.FromContext(ctx))
	return page(all, "", err, func(m signin.Mine) mySignInJSON { return mySignInJSON{m.ID, m.Server, *standingOf(m.Standing)} })
}

func (h *Hub) forgetServerSignIn(ctx context.Context, in *struct {
	ID string `path:"id" maxLength:"64"`
}) (*body[signedOutJSON], error) {
	p := account.FromContext(ctx)
	revoked, err := h.signIns.Forget(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	h.kits.SignedOut(p.User, "")
	return answered(signedOutJSON{true, revoked}, nil)
}

// standingOf is how it is with a sign-in.
func standingOf(now signin.Standing) *serverSignInJSON {
	out := &serverSignInJSON{State: string(now.State), Since: when(now.Since)}
	if g := now.Granted; g != nil {
		out.Issuer, out.Scopes, out.Expires, out.Renewed = g.Issuer, g.Scopes, when(g.Expiry), g.Renewed
	}
	return out
}

// withSignIns adds to servers how it is with somebody's sign-ins.
func (h *Hub) withSignIns(ctx context.Context, p account.Principal, found []kinds.Definition, servers []serverJSON) error {
	configs := make([]*upstream.Config, len(found))
	for i, d := range found {
		configs[i] = d.Config
	}
	states, err := h.signIns.States(ctx, p.User, configs)
	if err != nil {
		return err
	}
	for i := range servers {
		s := &servers[i]
		now, ok := states[s.Digest]
		if !ok || now.State == signin.Needed && s.Live != nil && s.Live.State == string(upstream.Ready) {
			continue // it lets us in as we are
		}
		if now.State == signin.SignedIn && s.Live != nil && s.Live.State == string(upstream.Dead) && now.Since.After(s.Live.Since) {
			s.Live = nil // it was refused before
		}
		s.SignIn = standingOf(now)
	}
	return nil
}

// trialSignIn gives the connection of a trial the token of who tries.
func (h *Hub) trialSignIn(ctx context.Context, s kinds.Server) func(*upstream.Config, string) auth.OAuthHandler {
	return func(c *upstream.Config, at string) auth.OAuthHandler {
		if isDraft(s) {
			return oauth.Refuse("where it wants a sign-in, keep it first, and sign in then")
		}
		return h.signIns.Handler(account.FromContext(ctx).User, c, at)
	}
}

// isDraft says whether a server was written down to be tried, and is not kept.
func isDraft(s kinds.Server) bool { return s.ID == "" && s.Owner != "" }

// signInProblem is why somebody could not sign in to a server.
func signInProblem(err error) *Problem {
	failed, ok := errors.AsType[*signin.FailedError](err)
	if !ok {
		return nil
	}
	if denied, ok := errors.AsType[*oauth.DeniedError](err); ok {
		return &Problem{Status: 403, Code: "signin_denied", Detail: denied.Error(), Next: "begin again, and agree there"}
	}
	if other, ok := errors.AsType[*oauth.IssuerError](err); ok {
		return &Problem{Status: 409, Code: "signin_issuer", Detail: other.Error(), Next: "ask who runs the server whether it moved; if so, sign out of it, and sign in again"}
	}
	if private, ok := errors.AsType[*oauth.AddressError](err); ok {
		return &Problem{Status: 422, Code: "signin_address", Detail: private.Error(), Next: "if it may go there, ask the operator of the hub to list it in sandbox.private"}
	}
	if unwanted, ok := errors.AsType[*oauth.UnwantedError](err); ok {
		return &Problem{Status: 409, Code: "signin_unwanted", Detail: unwanted.Error(), Next: "use the server as it is"}
	}
	return &Problem{Status: 502, Code: "signin_failed", Detail: failed.Error(),
		Next: "try again; if it goes on, ask who runs the server: a client that was registered there by hand goes into its configuration, as oauth: {clientId: …}"}
}
