package hub

import (
	"context"
	"maps"
	"net/http"
	"slices"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
)

// waysJSON lists the ways to sign in.
type waysJSON struct {
	Mode     string `json:"mode" enum:"single,accounts" doc:"single: one user, without sign-in"`
	Setup    bool   `json:"setup" doc:"Whether there is no administrator yet"`
	Password bool   `json:"password" doc:"By name and password: POST /api/v1/login"`
	Provider string `json:"provider,omitempty" doc:"Address to open in a browser for OpenID Connect, with the path to return to as back"`
}

// meJSON describes the current user.
type meJSON struct {
	User   userJSON         `json:"user"`
	Groups []membershipJSON `json:"groups" nullable:"false"`
	Scopes []string         `json:"scopes" nullable:"false" doc:"All for a browser; a token may have fewer"`
	Can    canJSON          `json:"can" doc:"Actions that a page should offer"`
}

type membershipJSON struct {
	Group string `json:"group" doc:"ID of the group"`
	Role  string `json:"role" enum:"reporter,developer,maintainer,owner"`
}

// Credentials are a name and a password.
type Credentials struct {
	Name     string `json:"name" minLength:"1" maxLength:"256"`
	Password string `json:"password" minLength:"1" maxLength:"1024"`
}

// setupRequest asks to create the first administrator.
type setupRequest struct {
	Link string `json:"link" minLength:"1" maxLength:"1000" doc:"The part after /setup/ of the address that the hub printed"`
	Credentials
}

// withCookie is a response that signs a browser in.
type withCookie[T any] struct {
	SetCookie http.Cookie `header:"Set-Cookie"`
	Body      T
}

func (h *Hub) signIn() {
	api.Add(h.server, api.PublicOperation("get-ways-to-sign-in", "GET", "/login", "Get the ways to sign in"), h.signInMethods)
	api.Add(h.server, api.PublicOperation("sign-in", "POST", "/login", "Sign a browser in by name and password"), h.login)
	api.Add(h.server, api.PublicOperation("make-first-admin", "POST", "/setup", "Create the first administrator, with the link that the hub printed"), h.setup)
	api.Add(h.server, api.PublicOperation("sign-out", "POST", "/logout", "Sign this browser out"), h.logout)
	api.Add(h.server, api.Operation("get-me", "GET", "/me", "Get the current user and their permissions"), h.me)
}

func (h *Hub) signInMethods(ctx context.Context, _ *api.NoBody) (*api.Body[waysJSON], error) {
	if h.Single() {
		return api.BodyOf(waysJSON{Mode: "single"}, nil)
	}
	vacant, err := h.directory.SignIns.HasNoAdmin(ctx)
	w := waysJSON{Mode: "accounts", Setup: vacant, Password: true}
	if h.gate.OIDC != nil {
		w.Provider = h.opts.Public + "/login/oidc"
	}
	return api.BodyOf(w, err)
}

func (h *Hub) login(ctx context.Context, in *struct{ Body Credentials }) (*withCookie[meJSON], error) {
	if err := h.hasAccounts(); err != nil {
		return nil, err
	}
	if err := h.gate.CountSignIn(api.RequestFrom(ctx), in.Body.Name); err != nil {
		return nil, err
	}
	user, err := h.directory.SignIns.ByPassword(ctx, in.Body.Name, in.Body.Password)
	h.metrics.CountSignIn("password", err)
	if err != nil {
		return nil, err
	}
	return h.startSignIn(ctx, user)
}

func (h *Hub) setup(ctx context.Context, in *struct{ Body setupRequest }) (*withCookie[meJSON], error) {
	if err := h.hasAccounts(); err != nil {
		return nil, err
	}
	if err := h.gate.CountSignIn(api.RequestFrom(ctx), ""); err != nil {
		return nil, err
	}
	user, err := h.directory.SignIns.CreateFirstAdmin(ctx, in.Body.Link, in.Body.Name, in.Body.Password)
	h.metrics.CountSignIn("setup", err)
	if err != nil {
		return nil, err
	}
	return h.startSignIn(ctx, user)
}

// hasAccounts fails on a hub without accounts.
func (h *Hub) hasAccounts() error {
	if !h.Single() {
		return nil
	}
	return &api.Problem{Status: 409, Code: "single", Detail: "this hub serves one user, without sign-in", Next: "to have accounts, start it with: loadout serve --accounts"}
}

// startSignIn signs the browser of a request in, and out of its previous
// sign-in.
func (h *Hub) startSignIn(ctx context.Context, user account.UserID) (*withCookie[meJSON], error) {
	v := api.RequestFrom(ctx)
	if _, err := h.gate.Logins.End(ctx, v.HTTP); err != nil {
		return nil, err
	}
	cookie, err := h.gate.Logins.Start(ctx, user, v.HTTP.UserAgent())
	if err != nil {
		return nil, err
	}
	p, err := h.directory.SignIns.Principal(ctx, user)
	if err != nil {
		return nil, err
	}
	me, err := h.currentUser(ctx, p)
	return &withCookie[meJSON]{*cookie, me}, err
}

func (h *Hub) logout(ctx context.Context, _ *api.NoBody) (*struct {
	SetCookie http.Cookie `header:"Set-Cookie"`
}, error) {
	gone, err := h.gate.Logins.End(ctx, api.RequestFrom(ctx).HTTP)
	if err != nil {
		return nil, err
	}
	return &struct {
		SetCookie http.Cookie `header:"Set-Cookie"`
	}{*gone}, nil
}

func (h *Hub) me(ctx context.Context, _ *api.NoBody) (*api.Body[meJSON], error) {
	return api.BodyOf(h.currentUser(ctx, account.FromContext(ctx)))
}

// currentUser describes a principal, regardless of the scopes of the request.
func (h *Hub) currentUser(ctx context.Context, p account.Principal) (meJSON, error) {
	whole := p
	whole.Scopes = account.AllScopes
	user, err := h.directory.Users.Get(ctx, whole, p.User)
	if err != nil {
		return meJSON{}, err
	}
	return meJSON{User: userOf(user), Groups: memberships(p), Scopes: p.Scopes.Names(), Can: canOf(p)}, nil
}

// memberships returns the groups of a principal.
func memberships(p account.Principal) []membershipJSON {
	out := []membershipJSON{}
	for _, g := range slices.Sorted(maps.Keys(p.Groups)) {
		if role := p.Groups[g]; role != account.Outsider {
			out = append(out, membershipJSON{string(g), role.String()})
		}
	}
	return out
}
