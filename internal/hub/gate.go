package hub

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

// maxKeys limits the keys that a rate limiter tracks, at about 300 bytes each.
const maxKeys = 20_000

// tokenProtocol starts a subprotocol of a WebSocket, before a token. A page with
// a token but no cookie offers it, because it cannot set headers. Tokens are
// never in addresses, which proxies log.
const tokenProtocol = "loadout.token."

// maxRate limits [Options.Rate].
const maxRate = 100_000

// gate authenticates requests and enforces rate limits.
type gate struct {
	users   *users.Directory
	tokens  *account.Tokens
	logins  *account.Logins
	origins *account.OriginGuard
	proxies address.Proxies
	oidc    *account.OIDC // nil without a provider
	single  bool
	secure  bool // browsers reach the hub over https

	requests *account.Limiter // by user, or by network if anonymous; nil for no limit
	networks *account.Limiter // sign-in attempts by network
	names    *account.Limiter // sign-in attempts by user name
}

// gateOptions are the options of a gate.
type gateOptions struct {
	db       *store.DB
	users    *users.Directory
	single   bool                 // without accounts
	public   string               // address of the hub, "" if unknown
	proxies  []string             // addresses and networks of trusted proxies
	rate     int                  // requests per second; at most 0 for no limit
	provider *account.OIDCOptions // nil for none
}

func newGate(o gateOptions) (*gate, error) {
	d := &gate{users: o.users, tokens: account.NewTokens(users.NewTokenStore(o.db)), single: o.single, secure: strings.HasPrefix(o.public, "https:"),
		networks: account.NewLimiter(time.Second, 60, maxKeys), names: account.NewLimiter(10*time.Second, 10, maxKeys)}
	if o.rate > 0 {
		d.requests = account.NewLimiter(time.Second/time.Duration(min(o.rate, maxRate)), 4*min(o.rate, maxRate), maxKeys)
	}
	d.logins = account.NewLogins(users.NewLoginStore(o.db), &account.LoginOptions{Secure: d.secure})
	var own []string
	if o.public != "" {
		own = append(own, o.public)
	}
	var err error
	if d.origins, err = account.NewOriginGuard(own...); err != nil {
		return nil, fmt.Errorf("public address: %w", err)
	}
	if d.proxies, err = address.ParseProxies(o.proxies); err != nil {
		return nil, err
	}
	if o.provider == nil {
		return d, nil
	}
	if o.public == "" || d.single {
		return nil, errors.New("sign-in through a provider needs accounts and the public address of the hub")
	}
	p := *o.provider
	p.Redirect = o.public + callbackPath
	d.oidc, err = account.NewOIDC(p)
	return d, err
}

// admit sets the principal of a request. If it returns a cookie, the response
// must set it. Requests without credentials or with an invalid cookie are
// anonymous.
func (d *gate) admit(r *http.Request, v *api.Request) (*http.Cookie, error) {
	cookie, err := d.identify(r, v)
	if limit := d.countRequest(v); limit != nil {
		return nil, limit
	}
	return cookie, err
}

func (d *gate) identify(r *http.Request, v *api.Request) (next *http.Cookie, err error) {
	ctx := r.Context()
	if d.single {
		if err := account.LocalOnly(r); err != nil {
			return nil, &api.Problem{Status: 403, Code: "not_local", Detail: err.Error(), Next: "start the hub with accounts: loadout serve --accounts"}
		}
		if err := d.origins.Check(r); err != nil {
			return nil, err
		}
		v.Principal, err = d.users.SignIns.LocalPrincipal(ctx)
		return nil, err
	}
	if authorization := r.Header.Get("Authorization"); authorization != "" {
		token, basic := account.Bearer(authorization)
		if basic {
			if err := d.origins.Check(r); err != nil {
				return nil, err
			}
		}
		return nil, d.identifyToken(ctx, token, v)
	}
	if token := socketToken(r); token != "" {
		return nil, d.identifyToken(ctx, token, v)
	}
	if err := d.origins.Check(r); err != nil {
		return nil, err
	}
	row, next, err := d.logins.Find(ctx, r)
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

func (d *gate) identifyToken(ctx context.Context, text string, v *api.Request) error {
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

// countRequest counts a request and fails if there are too many.
func (d *gate) countRequest(v *api.Request) error {
	switch {
	case d.requests == nil:
		return nil
	case v.Principal.Anonymous():
		return d.requests.Allow("network " + d.network(v))
	}
	return d.requests.Allow("user " + string(v.Principal.User))
}

// countSignIn counts an attempt to sign in, as name unless it is "".
func (d *gate) countSignIn(v *api.Request, name string) error {
	if err := d.networks.Allow(d.network(v)); err != nil || name == "" {
		return err
	}
	return d.names.Allow("name " + strings.ToLower(name))
}

// countPasswordGuess counts that somebody says what his own password is.
func (d *gate) countPasswordGuess(v *api.Request) error {
	return d.names.Allow("user " + string(v.Principal.User))
}

func (d *gate) network(v *api.Request) string { return address.CustomerNetwork(v.Client).String() }

func (d *gate) client(r *http.Request) netip.Addr {
	return d.proxies.Client(r.RemoteAddr, r.Header.Values("X-Forwarded-For"))
}

// socketToken returns the token that a request offers as a subprotocol, "" if
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

// callbackPath is the path to which the provider sends users back.
const callbackPath = "/login/callback"

// checkValid fails if a long request has to end, because its sign-in or token
// is no longer valid or its permissions changed. If that is unknown, it
// succeeds.
func (d *gate) checkValid(ctx context.Context, v *api.Request) error {
	now, err := d.currentPrincipal(ctx, v)
	if err == nil && (now.Admin != v.Principal.Admin || !maps.Equal(now.Groups, v.Principal.Groups)) {
		return &api.Problem{Status: 403, Code: "rights", Detail: "your permissions have changed", Next: "reconnect"}
	}
	return err
}

// currentPrincipal returns the principal that a long request would have if it
// started now. It fails like [gate.checkValid], but ignores changes of groups
// and of the admin flag. If the current state is unknown, it returns the
// original principal.
func (d *gate) currentPrincipal(ctx context.Context, v *api.Request) (account.Principal, error) {
	ctx, stop := context.WithTimeout(ctx, api.OperationTimeout)
	defer stop()
	r := v.HTTP.Clone(ctx)
	r.Header.Del("Sec-Fetch-Mode") // without it the request would not rotate the cookie
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

// principalOf returns the current principal of a user.
func (d *gate) principalOf(ctx context.Context, user account.UserID) (account.Principal, error) {
	if d.single {
		return d.users.SignIns.LocalPrincipal(ctx)
	}
	return d.users.SignIns.Principal(ctx, user)
}
