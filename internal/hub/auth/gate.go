// Package auth authenticates HTTP requests with tokens, cookies or OpenID Connect,
// and limits the rate of requests and the number of connections. It ends
// long-running requests if their token is revoked or permissions change. Start
// reading at [Gate].
package auth

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/address"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/users"
	"github.com/loadout-dev/loadout/internal/store"
)

// maxKeys is the maximum number of keys tracked by a rate limiter, at about 300
// bytes each.
const maxKeys = 20_000

// tokenProtocol is the prefix of a WebSocket subprotocol that contains a token.
// Pages that have a token but no cookie use it, because they cannot set headers. A
// token in the URL would be logged by proxies.
const tokenProtocol = "loadout.token."

// maxRate is the maximum number of requests per second and user. A higher
// [Options.Rate] is reduced to it.
const maxRate = 100_000

// Gate authenticates requests and enforces rate limits.
type Gate struct {
	users   *users.Directory
	tokens  *account.Tokens
	Logins  *account.Logins
	Origins *account.OriginGuard
	Proxies address.Proxies
	OIDC    *account.OIDC // nil if there is no provider
	single  bool          // whether the hub has no accounts
	public  string        // URL of the hub, without a slash at the end; "" if unknown
	Secure  bool          // whether browsers reach the hub over https

	requests *account.Limiter // limits requests by user, or by network if anonymous; nil for no limit
	signIns  *account.Backoff // sign-in attempts
	guesses  *account.Limiter // attempts to enter the current password, by user
	tried    *account.Limiter // unknown access tokens of the provider, by network; each can cause a request to it
	verified verifiedTokens   // access tokens that were valid before
}

// Options configures a [Gate]. DB and Users are required.
type Options struct {
	DB       *store.DB
	Users    *users.Directory
	Single   bool                 // whether the hub has no accounts
	Public   string               // public URL of the hub; "" if unknown
	Proxies  []string             // addresses and networks of trusted proxies
	Rate     int                  // maximum requests per second and user; 0 or less for no limit
	Provider *account.OIDCOptions // identity provider; nil if there is none
}

// New returns a gate. It returns an error if an option is invalid.
func New(o Options) (*Gate, error) {
	d := &Gate{users: o.Users, tokens: account.NewTokens(users.NewTokenStore(o.DB)), single: o.Single, public: strings.TrimSuffix(o.Public, "/"), Secure: strings.HasPrefix(o.Public, "https:"),
		signIns: account.NewBackoff(maxKeys), guesses: account.NewLimiter(10*time.Second, 10, maxKeys), tried: account.NewLimiter(time.Second, 60, maxKeys)}
	if o.Rate > 0 {
		d.requests = account.NewLimiter(time.Second/time.Duration(min(o.Rate, maxRate)), 4*min(o.Rate, maxRate), maxKeys)
	}
	d.Logins = account.NewLogins(users.NewLoginStore(o.DB), &account.LoginOptions{Secure: d.Secure})
	var own []string
	if o.Public != "" {
		own = append(own, o.Public)
	}
	var err error
	if d.Origins, err = account.NewOriginGuard(own...); err != nil {
		return nil, fmt.Errorf("parse public address: %w", err)
	}
	if d.Proxies, err = address.ParseProxies(o.Proxies); err != nil {
		return nil, err
	}
	if o.Provider == nil {
		return d, nil
	}
	if o.Public == "" || d.single {
		return nil, errors.New("provider sign-in requires accounts and a public hub address")
	}
	p := *o.Provider
	p.Redirect = o.Public + CallbackPath
	d.OIDC, err = account.NewOIDC(p)
	return d, err
}

// admitTimeout is the timeout for authenticating a request. It is needed
// because a database that hangs does not close its connections.
const admitTimeout = 5 * time.Second

// Admit authenticates a request and sets its principal in v. If it returns a
// cookie, the response must set it. A request without credentials or with an
// invalid cookie is anonymous. Admit fails with [store.ErrUnavailable] if the
// database does not answer within 5 s.
func (d *Gate) Admit(r *http.Request, v *api.Request) (*http.Cookie, error) {
	ctx, stop := context.WithTimeoutCause(r.Context(), admitTimeout, store.ErrUnavailable)
	defer stop()
	cookie, err := d.identify(r.WithContext(ctx), v)
	if limit := d.CountRequest(v); limit != nil {
		return nil, limit
	}
	return cookie, err
}

func (d *Gate) identify(r *http.Request, v *api.Request) (next *http.Cookie, err error) {
	ctx := r.Context()
	if d.single {
		if err := account.LocalOnly(r); err != nil {
			return nil, &api.Problem{Status: 403, Code: "not_local", Detail: err.Error(), Next: "start the hub with accounts: loadout serve --accounts"}
		}
		if err := d.Origins.Check(r); err != nil {
			return nil, err
		}
		v.Principal, err = d.users.SignIns.LocalPrincipal(ctx)
		return nil, err
	}
	if authorization := r.Header.Get("Authorization"); authorization != "" {
		token, basic := account.BearerToken(authorization)
		if basic {
			if err := d.Origins.Check(r); err != nil {
				return nil, err
			}
		}
		if d.OIDC != nil && account.IsJWT(token) && api.IsMCP(r.URL.Path) {
			return nil, d.identifyAccessToken(ctx, r, token, v)
		}
		return nil, d.identifyToken(ctx, token, v)
	}
	if token := socketToken(r); token != "" {
		return nil, d.identifyToken(ctx, token, v)
	}
	if err := d.Origins.Check(r); err != nil {
		return nil, err
	}
	row, next, err := d.Logins.Find(ctx, r)
	if err == nil {
		v.Principal, err = d.users.SignIns.Principal(ctx, row.User)
	}
	if errors.Is(err, account.ErrInvalidCredentials) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	v.Login = row.Hash
	return next, nil
}

func (d *Gate) identifyToken(ctx context.Context, text string, v *api.Request) error {
	token, err := d.tokens.Find(ctx, text)
	if err != nil {
		return err
	}
	p, err := d.users.SignIns.Principal(ctx, token.User)
	if err != nil {
		return err
	}
	v.Principal = p.LimitedTo(token.Scopes)
	v.Principal.Token = token.ID
	return nil
}

// identifyAccessToken sets the principal for an access token of the provider. The
// token must be issued for the MCP endpoint of the request, and its user must have
// signed in before. The principal can run code only if the token has the scope run.
func (d *Gate) identifyAccessToken(ctx context.Context, r *http.Request, token string, v *api.Request) error {
	network := d.ClientNetwork(v)
	known := d.verified.contains(token)
	if !known {
		if err := d.tried.Allow(network); err != nil {
			return err
		}
	}
	id, scopes, err := d.OIDC.CheckAccessToken(ctx, token, d.public+r.URL.EscapedPath())
	if err != nil {
		return err
	}
	if !known {
		d.tried.Undo(network)
		d.verified.add(token)
	}
	p, err := d.users.SignIns.ByIdentity(ctx, id)
	if err != nil {
		return err
	}
	v.Principal = p.LimitedTo(account.ScopeMCP | scopes&account.ScopeRun)
	return nil
}

// CountRequest counts a request. It returns an error if there are too many.
func (d *Gate) CountRequest(v *api.Request) error {
	switch {
	case d.requests == nil:
		return nil
	case v.Principal.Anonymous():
		return d.requests.Allow("network " + d.ClientNetwork(v))
	}
	return d.requests.Allow("user " + string(v.Principal.User))
}

// CountSignIn counts a sign-in attempt for a user name from the network of a request.
// It returns an error if there are too many; see [account.Backoff].
func (d *Gate) CountSignIn(ctx context.Context, v *api.Request, name string) (*account.Attempt, error) {
	return d.signIns.Check(name, v.Client, func(network netip.Prefix) (bool, error) {
		return d.users.SignIns.KnowsNetwork(ctx, name, network)
	})
}

// CountAttempt counts a sign-in attempt without a user name from the network of a
// request. It returns an error if there are too many.
func (d *Gate) CountAttempt(v *api.Request) error { return d.signIns.CheckNetwork(v.Client) }

// SignedIn records that a user signed in from the network of a request. name is ""
// if the user gave no name.
func (d *Gate) SignedIn(ctx context.Context, v *api.Request, name string, user account.UserID) error {
	if name != "" {
		d.signIns.Succeed(name, v.Client)
	}
	return d.users.SignIns.RememberNetwork(ctx, user, address.CustomerNetwork(v.Client))
}

// CountPasswordGuess counts an attempt by a signed-in user to enter the current
// password. It returns an error if there are too many.
func (d *Gate) CountPasswordGuess(v *api.Request) error {
	return d.guesses.Allow("user " + string(v.Principal.User))
}

// ClientNetwork returns the client network to which rate limits attribute a
// request.
func (d *Gate) ClientNetwork(v *api.Request) string {
	return address.CustomerNetwork(v.Client).String()
}

func (d *Gate) Client(r *http.Request) netip.Addr {
	return d.Proxies.Client(r.RemoteAddr, r.Header.Values("X-Forwarded-For"))
}

// socketToken returns the token in a request's WebSocket subprotocol, or "" if
// there is none.
func socketToken(r *http.Request) string {
	if r.URL.Path != "/ws" {
		return ""
	}
	for _, line := range r.Header.Values("Sec-Websocket-Protocol") {
		for protocol := range strings.SplitSeq(line, ",") {
			if token, ok := strings.CutPrefix(strings.TrimSpace(protocol), tokenProtocol); ok {
				return token
			}
		}
	}
	return ""
}

// CallbackPath is the path to which the identity provider redirects users.
const CallbackPath = "/login/callback"

// CheckValid returns an error if a long-running request must end because its
// sign-in or token is no longer valid or its permissions have changed. It returns
// nil if the current state cannot be read.
func (d *Gate) CheckValid(ctx context.Context, v *api.Request) error {
	now, err := d.CurrentPrincipal(ctx, v)
	if err == nil && (now.Admin != v.Principal.Admin || !maps.Equal(now.Groups, v.Principal.Groups)) {
		return &api.Problem{Status: 403, Code: "rights", Detail: "your permissions have changed", Next: "reconnect"}
	}
	return err
}

// CurrentPrincipal returns the principal that a long-running request would have if
// it started now. Like [Gate.CheckValid], it returns an error if the sign-in or
// token is no longer valid. If the current state cannot be read, it returns the
// original principal.
func (d *Gate) CurrentPrincipal(ctx context.Context, v *api.Request) (account.Principal, error) {
	ctx, stop := context.WithTimeout(ctx, api.OperationTimeout)
	defer stop()
	r := v.HTTP.Clone(ctx)
	r.Header.Del("Sec-Fetch-Mode") // prevents the cookie from being replaced
	now := &api.Request{Client: v.Client}
	_, err := d.identify(r, now)
	switch {
	case ctx.Err() != nil, errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrBusy):
		return v.Principal, nil
	case err != nil:
		return v.Principal, err
	case now.Principal.User != v.Principal.User || now.Principal.Scopes != v.Principal.Scopes:
		return v.Principal, &account.DeniedError{Action: account.SessionRead, SignIn: true}
	}
	return now.Principal, nil
}

// PrincipalOf returns the current principal of a user, or of a hub without
// accounts.
func (d *Gate) PrincipalOf(ctx context.Context, user account.UserID) (account.Principal, error) {
	if d.single {
		return d.users.SignIns.LocalPrincipal(ctx)
	}
	return d.users.SignIns.Principal(ctx, user)
}
