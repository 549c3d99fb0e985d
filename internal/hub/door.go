package hub

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/address"
	"github.com/loadout-dev/loadout/internal/hub/people"
)

// maxKeys bounds whose requests are counted at once, at about 300 bytes each.
const maxKeys = 20_000

// maxRate bounds [Options.Rate].
const maxRate = 100_000

// door finds out who a request is from, and turns away what is not to be served at all.
type door struct {
	people  *people.People
	tokens  *account.Tokens
	logins  *account.Logins
	pages   *account.Pages
	proxies address.Proxies
	oidc    *account.OIDC // nil without a provider
	single  bool
	secure  bool // browsers reach the hub by https

	requests *account.Limiter // of a user, or of a network without one; nil is no limit
	networks *account.Limiter // attempts to sign in, by where they come from
	names    *account.Limiter // and by who it would be
}

func newDoor(h *Hub) (*door, error) {
	o := h.opts
	d := &door{people: h.people, tokens: account.NewTokens(people.TokenRows(h.db)), single: !o.Accounts, secure: strings.HasPrefix(o.Public, "https:"),
		networks: account.NewLimiter(time.Second, 60, maxKeys), names: account.NewLimiter(10*time.Second, 10, maxKeys)}
	if o.Rate > 0 {
		d.requests = account.NewLimiter(time.Second/time.Duration(min(o.Rate, maxRate)), 4*min(o.Rate, maxRate), maxKeys)
	}
	d.logins = account.NewLogins(people.LoginRows(h.db), &account.LoginOptions{Secure: d.secure})
	var own []string
	if o.Public != "" {
		own = append(own, o.Public)
	}
	var err error
	if d.pages, err = account.NewPages(own...); err != nil {
		return nil, fmt.Errorf("the public address: %w", err)
	}
	if d.proxies, err = address.ParseProxies(o.Proxies); err != nil {
		return nil, err
	}
	if o.Provider == nil {
		return d, nil
	}
	if o.Public == "" || d.single {
		return nil, errors.New("signing in by a provider needs accounts, and the public address of the hub")
	}
	d.oidc, err = account.NewOIDC(account.OIDCOptions{
		Issuer: o.Provider.Issuer, ClientID: o.Provider.ClientID, ClientSecret: o.Provider.ClientSecret, Redirect: o.Public + callbackPath,
		Scopes: o.Provider.Scopes, NameClaim: o.Provider.NameClaim, GroupsClaim: o.Provider.GroupsClaim, Sealer: h.sealer,
	})
	return d, err
}

// open sets who a visit is by. The cookie, where there is one, is to be in the answer.
// Who says nothing of himself, or sends a cookie that is good no longer, is anonymous.
func (d *door) open(r *http.Request, v *visit) (*http.Cookie, error) {
	cookie, err := d.identify(r, v)
	if limit := d.count(v); limit != nil {
		return nil, limit
	}
	return cookie, err
}

func (d *door) identify(r *http.Request, v *visit) (next *http.Cookie, err error) {
	ctx := r.Context()
	if d.single {
		if err := account.LocalOnly(r); err != nil {
			return nil, &Problem{Status: 403, Code: "not_local", Detail: err.Error(), Next: "start the hub with accounts: loadout serve --accounts"}
		}
		if err := d.pages.Check(r); err != nil {
			return nil, err
		}
		v.by, err = d.people.SignIns.Single(ctx)
		return nil, err
	}
	if authorization := r.Header.Get("Authorization"); authorization != "" {
		token, basic := account.Bearer(authorization)
		if basic {
			if err := d.pages.Check(r); err != nil {
				return nil, err
			}
		}
		return nil, d.byToken(ctx, token, v)
	}
	if token := socketToken(r); token != "" {
		return nil, d.byToken(ctx, token, v)
	}
	if err := d.pages.Check(r); err != nil {
		return nil, err
	}
	row, next, err := d.logins.Find(ctx, r)
	if err == nil {
		v.by, err = d.people.SignIns.Principal(ctx, row.User)
	}
	if errors.Is(err, account.ErrRefused) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	v.login = row.Hash
	return next, nil
}

func (d *door) byToken(ctx context.Context, text string, v *visit) error {
	token, err := d.tokens.Find(ctx, text)
	if err != nil {
		return err
	}
	p, err := d.people.SignIns.Principal(ctx, token.User)
	if err != nil {
		return err
	}
	v.by = p.Limited(token.Scopes)
	v.by.Token = token.ID
	return nil
}

// count counts a request, and fails where there are too many.
func (d *door) count(v *visit) error {
	switch {
	case d.requests == nil:
		return nil
	case v.by.Anonymous():
		return d.requests.Allow("network " + d.network(v))
	}
	return d.requests.Allow("user " + string(v.by.User))
}

// attempt counts that somebody tries to sign in, as name where that is not "".
func (d *door) attempt(v *visit, name string) error {
	if err := d.networks.Allow(d.network(v)); err != nil || name == "" {
		return err
	}
	return d.names.Allow("name " + strings.ToLower(name))
}

// guess counts that somebody says what his own password is.
func (d *door) guess(v *visit) error { return d.names.Allow("user " + string(v.by.User)) }

func (d *door) network(v *visit) string { return address.Network(v.client).String() }

func (d *door) client(r *http.Request) netip.Addr {
	return d.proxies.Client(r.RemoteAddr, r.Header.Values("X-Forwarded-For"))
}
