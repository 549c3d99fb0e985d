package hub

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/address"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/users"
)

// maxKeys limits the keys that a rate limiter tracks, at about 300 bytes each.
const maxKeys = 20_000

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

func newGate(h *Hub) (*gate, error) {
	o := h.opts
	d := &gate{users: h.directory, tokens: account.NewTokens(users.NewTokenStore(h.db)), single: !o.Accounts, secure: strings.HasPrefix(o.Public, "https:"),
		networks: account.NewLimiter(time.Second, 60, maxKeys), names: account.NewLimiter(10*time.Second, 10, maxKeys)}
	if o.Rate > 0 {
		d.requests = account.NewLimiter(time.Second/time.Duration(min(o.Rate, maxRate)), 4*min(o.Rate, maxRate), maxKeys)
	}
	d.logins = account.NewLogins(users.NewLoginStore(h.db), &account.LoginOptions{Secure: d.secure})
	var own []string
	if o.Public != "" {
		own = append(own, o.Public)
	}
	var err error
	if d.origins, err = account.NewOriginGuard(own...); err != nil {
		return nil, fmt.Errorf("public address: %w", err)
	}
	if d.proxies, err = address.ParseProxies(o.Proxies); err != nil {
		return nil, err
	}
	if o.Provider == nil {
		return d, nil
	}
	if o.Public == "" || d.single {
		return nil, errors.New("sign-in through a provider needs accounts and the public address of the hub")
	}
	d.oidc, err = account.NewOIDC(account.OIDCOptions{
		Issuer: o.Provider.Issuer, ClientID: o.Provider.ClientID, ClientSecret: o.Provider.ClientSecret, Redirect: o.Public + callbackPath,
		Scopes: o.Provider.Scopes, NameClaim: o.Provider.NameClaim, GroupsClaim: o.Provider.GroupsClaim, Cipher: h.cipher,
	})
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
