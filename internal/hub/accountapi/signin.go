package accountapi

import (
	"context"
	"errors"
	"net/http"

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

// Credentials are a name and a password.
type Credentials struct {
	Name     string `json:"name" minLength:"1" maxLength:"256"`
	Password string `json:"password" minLength:"1" maxLength:"1024"`
}

// setupRequest is a request to create the first administrator.
type setupRequest struct {
	Link string `json:"link" minLength:"1" maxLength:"1000" doc:"The part after /setup/ of the address that the hub printed"`
	Credentials
}

// withCookie is a response that sets the sign-in cookie of a browser.
type withCookie[T any] struct {
	SetCookie http.Cookie `header:"Set-Cookie"`
	Body      T
}

func (h *Handlers) signInAPI() {
	api.Add(h.Server, api.PublicOperation("get-ways-to-sign-in", "GET", "/login", "Get the ways to sign in"), h.getSignInMethods)
	api.Add(h.Server, api.PublicOperation("sign-in", "POST", "/login", "Sign a browser in by name and password"), h.login)
	api.Add(h.Server, api.PublicOperation("make-first-admin", "POST", "/setup", "Create the first administrator, with the link that the hub printed"), h.setup)
	api.Add(h.Server, api.PublicOperation("sign-out", "POST", "/logout", "Sign this browser out"), h.logout)
	api.Add(h.Server, api.Operation("get-me", "GET", "/me", "Get the current user and their permissions"), h.me)
}

func (h *Handlers) getSignInMethods(ctx context.Context, _ *api.NoBody) (*api.Body[waysJSON], error) {
	return api.BodyOf(h.signInMethods(ctx))
}

func (h *Handlers) signInMethods(ctx context.Context) (waysJSON, error) {
	if h.Single {
		return waysJSON{Mode: "single"}, nil
	}
	vacant, err := h.Directory.SignIns.HasNoAdmin(ctx)
	w := waysJSON{Mode: "accounts", Setup: vacant, Password: true}
	if h.Gate.OIDC != nil {
		w.Provider = h.Public + "/login/oidc"
	}
	return w, err
}

func (h *Handlers) login(ctx context.Context, in *struct{ Body Credentials }) (*withCookie[meJSON], error) {
	if err := h.requireAccounts(); err != nil {
		return nil, err
	}
	v := api.RequestFrom(ctx)
	attempt, err := h.Gate.CountSignIn(ctx, v, in.Body.Name)
	if err != nil {
		return nil, err
	}
	login, cookie := h.Gate.Logins.Prepare(v.HTTP.UserAgent())
	client := account.NetworkClient(v.Client, in.Body.Name, attempt.Known)
	user, err := h.Directory.SignIns.ByPassword(ctx, client, in.Body.Name, in.Body.Password, login)
	if errors.Is(err, account.ErrBusy) {
		attempt.Undo()
	}
	h.Metrics.CountSignIn("password", err)
	if err != nil {
		return nil, err
	}
	return h.finishSignIn(ctx, in.Body.Name, user, cookie)
}

func (h *Handlers) setup(ctx context.Context, in *struct{ Body setupRequest }) (*withCookie[meJSON], error) {
	if err := h.requireAccounts(); err != nil {
		return nil, err
	}
	if err := h.Gate.CountAttempt(api.RequestFrom(ctx)); err != nil {
		return nil, err
	}
	user, err := h.Directory.SignIns.CreateFirstAdmin(ctx, in.Body.Link, in.Body.Name, in.Body.Password)
	h.Metrics.CountSignIn("setup", err)
	if err != nil {
		return nil, err
	}
	cookie, err := h.Gate.Logins.Start(ctx, user, api.RequestFrom(ctx).HTTP.UserAgent())
	if err != nil {
		return nil, err
	}
	return h.finishSignIn(ctx, in.Body.Name, user, cookie)
}

// requireAccounts returns an error if the hub has no user accounts.
func (h *Handlers) requireAccounts() error {
	if !h.Single {
		return nil
	}
	return &api.Problem{Status: 409, Code: "single", Detail: "this hub serves one user, without sign-in", Next: "to have accounts, start it with: loadout serve --accounts"}
}

// finishSignIn gives the requesting browser the cookie of a new sign-in, after
// ending its previous sign-in.
func (h *Handlers) finishSignIn(ctx context.Context, name string, user account.UserID, cookie *http.Cookie) (*withCookie[meJSON], error) {
	v := api.RequestFrom(ctx)
	if err := h.Gate.SignedIn(ctx, v, name, user); err != nil {
		return nil, err
	}
	if _, err := h.Gate.Logins.End(ctx, v.HTTP); err != nil {
		return nil, err
	}
	p, err := h.Directory.SignIns.Principal(ctx, user)
	if err != nil {
		return nil, err
	}
	me, err := h.currentUser(ctx, p)
	return &withCookie[meJSON]{*cookie, me}, err
}

// onlyCookie is a response without a body that sets or deletes the sign-in cookie of a
// browser, unless SetCookie is "".
type onlyCookie struct {
	SetCookie string `header:"Set-Cookie"`
}

func (h *Handlers) logout(ctx context.Context, _ *api.NoBody) (*onlyCookie, error) {
	gone, err := h.Gate.Logins.End(ctx, api.RequestFrom(ctx).HTTP)
	if err != nil {
		return nil, err
	}
	return &onlyCookie{gone.String()}, nil
}
