package hub

import (
	"context"
	"maps"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loadout-dev/loadout/internal/account"
)

// waysJSON is how people sign in here.
type waysJSON struct {
	Mode     string `json:"mode" enum:"single,accounts" doc:"single: one person, who signs in nowhere"`
	Setup    bool   `json:"setup" doc:"Whether there is no administrator yet"`
	Password bool   `json:"password" doc:"By name and password: POST /api/v1/login"`
	Provider string `json:"provider,omitempty" doc:"By OpenID Connect: the address to open in a browser, with back for the path to return to"`
}

// meJSON is who is signed in.
type meJSON struct {
	User   userJSON         `json:"user"`
	Groups []membershipJSON `json:"groups" nullable:"false"`
	Scopes []string         `json:"scopes" nullable:"false" doc:"What this way in is good for: all for a browser, some for a token"`
	Can    canJSON          `json:"can" doc:"What a page may show him"`
}

type membershipJSON struct {
	Group string `json:"group" doc:"The id of the group"`
	Role  string `json:"role" enum:"reporter,developer,maintainer,owner"`
}

// Credentials are what somebody signs in with.
type Credentials struct {
	Name     string `json:"name" minLength:"1" maxLength:"256"`
	Password string `json:"password" minLength:"1" maxLength:"1024"`
}

// setupRequest makes the first administrator.
type setupRequest struct {
	Link string `json:"link" minLength:"1" maxLength:"1000" doc:"What stands behind /setup/ in the address that the hub printed"`
	Credentials
}

// withCookie is an answer that signs a browser in.
type withCookie[T any] struct {
	SetCookie http.Cookie `header:"Set-Cookie"`
	Body      T
}

func (h *Hub) signIn(api huma.API) {
	add(h, api, public("get-ways-to-sign-in", "GET", "/login", "How people sign in"), h.ways)
	add(h, api, public("sign-in", "POST", "/login", "Sign a browser in by name and password"), h.login)
	add(h, api, public("make-first-admin", "POST", "/setup", "Make the first administrator, with the link that the hub printed"), h.setup)
	add(h, api, public("sign-out", "POST", "/logout", "Sign this browser out"), h.logout)
	add(h, api, operation("get-me", "GET", "/me", "Who is signed in, and what he may"), h.me)
}

func (h *Hub) ways(ctx context.Context, _ *nothing) (*body[waysJSON], error) {
	if h.Single() {
		return answered(waysJSON{Mode: "single"}, nil)
	}
	vacant, err := h.people.SignIns.Vacant(ctx)
	w := waysJSON{Mode: "accounts", Setup: vacant, Password: true}
	if h.door.oidc != nil {
		w.Provider = h.opts.Public + "/login/oidc"
	}
	return answered(w, err)
}

func (h *Hub) login(ctx context.Context, in *struct{ Body Credentials }) (*withCookie[meJSON], error) {
	if err := h.hasAccounts(); err != nil {
		return nil, err
	}
	if err := h.door.attempt(visitOf(ctx), in.Body.Name); err != nil {
		return nil, err
	}
	user, err := h.people.SignIns.ByPassword(ctx, in.Body.Name, in.Body.Password)
	h.metrics.signedIn("password", err)
	if err != nil {
		return nil, err
	}
	return h.begin(ctx, user)
}

func (h *Hub) setup(ctx context.Context, in *struct{ Body setupRequest }) (*withCookie[meJSON], error) {
	if err := h.hasAccounts(); err != nil {
		return nil, err
	}
	if err := h.door.attempt(visitOf(ctx), ""); err != nil {
		return nil, err
	}
	user, err := h.people.SignIns.FirstAdmin(ctx, in.Body.Link, in.Body.Name, in.Body.Password)
	h.metrics.signedIn("setup", err)
	if err != nil {
		return nil, err
	}
	return h.begin(ctx, user)
}

// hasAccounts refuses to sign in where nobody does.
func (h *Hub) hasAccounts() error {
	if !h.Single() {
		return nil
	}
	return &Problem{Status: 409, Code: "single", Detail: "this hub serves one person, who signs in nowhere", Next: "to have accounts, start it as: loadout serve --accounts"}
}

// begin signs the browser of a request in, and out of what it was before.
func (h *Hub) begin(ctx context.Context, user account.UserID) (*withCookie[meJSON], error) {
	v := visitOf(ctx)
	if _, err := h.door.logins.End(ctx, v.request); err != nil {
		return nil, err
	}
	cookie, err := h.door.logins.Begin(ctx, user, v.request.UserAgent())
	if err != nil {
		return nil, err
	}
	p, err := h.people.SignIns.Principal(ctx, user)
	if err != nil {
		return nil, err
	}
	me, err := h.whoIs(ctx, p)
	return &withCookie[meJSON]{*cookie, me}, err
}

func (h *Hub) logout(ctx context.Context, _ *nothing) (*struct {
	SetCookie http.Cookie `header:"Set-Cookie"`
}, error) {
	gone, err := h.door.logins.End(ctx, visitOf(ctx).request)
	if err != nil {
		return nil, err
	}
	return &struct {
		SetCookie http.Cookie `header:"Set-Cookie"`
	}{*gone}, nil
}

func (h *Hub) me(ctx context.Context, _ *nothing) (*body[meJSON], error) {
	return answered(h.whoIs(ctx, account.FromContext(ctx)))
}

// whoIs tells somebody of himself, whatever his way in allows.
func (h *Hub) whoIs(ctx context.Context, p account.Principal) (meJSON, error) {
	whole := p
	whole.Scopes = account.AllScopes
	user, err := h.people.Users.Get(ctx, whole, p.User)
	if err != nil {
		return meJSON{}, err
	}
	return meJSON{User: userOf(user), Groups: memberships(p), Scopes: p.Scopes.Names(), Can: canOf(p)}, nil
}

// memberships are the groups that somebody is in.
func memberships(p account.Principal) []membershipJSON {
	out := []membershipJSON{}
	for _, g := range slices.Sorted(maps.Keys(p.Groups)) {
		if role := p.Groups[g]; role != account.Outsider {
			out = append(out, membershipJSON{string(g), role.String()})
		}
	}
	return out
}
