package account

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/loadout-dev/loadout/internal/seal"
)

const (
	// signInTime is how long a person may take at the provider.
	signInTime = 10 * time.Minute
	// discoveryPause is how long a provider that could not be reached is left alone.
	discoveryPause = 5 * time.Second
	maxGroups      = 1000
	maxClaim       = 255 // bytes of a name, a subject, a group
	maxBack        = 1024
)

// OIDCOptions say who signs people in. The issuer, the client and the redirect are
// the operator's own configuration.
type OIDCOptions struct {
	Issuer       string // as https://id.example.com
	ClientID     string
	ClientSecret string // empty for a client that has none
	// Redirect is the hub's own address at which people come back, as
	// https://hub.example.com/login/callback.
	Redirect string
	// Scopes are asked for besides openid; default profile and email. Some providers
	// want one for groups.
	Scopes []string
	// NameClaim and GroupsClaim are where the ID token has the name of the user and
	// the groups; default preferred_username and groups. With dots, inside of others.
	NameClaim, GroupsClaim string
	// Sealer seals what the hub has to know again when the person comes back, in a
	// cookie, so that any node can go on.
	Sealer *seal.Sealer
}

// OIDC signs people in by OpenID Connect: the code flow with PKCE, state and nonce.
// The provider is not asked for anything before the first sign-in. It is safe for
// concurrent use.
type OIDC struct {
	opts   OIDCOptions
	client *http.Client
	secure bool

	// turn is held by who looks at or replaces what follows, and while the provider is
	// looked for: others wait for what comes of that.
	turn     chan struct{}
	provider *oidc.Provider
	failed   error
	failedAt time.Time
}

// NewOIDC returns a way to sign in. It fails for options that cannot work, and
// connects to nothing.
func NewOIDC(o OIDCOptions) (*OIDC, error) {
	if o.Scopes == nil {
		o.Scopes = []string{"profile", "email"}
	}
	if o.NameClaim == "" {
		o.NameClaim = "preferred_username"
	}
	if o.GroupsClaim == "" {
		o.GroupsClaim = "groups"
	}
	if o.ClientID == "" || o.Sealer == nil {
		return nil, errors.New("sign in by OpenID Connect: a client id and a key to seal with are needed")
	}
	for _, at := range []string{o.Issuer, o.Redirect} {
		if u, err := url.Parse(at); err != nil || !safe(u) || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return nil, fmt.Errorf("sign in by OpenID Connect: %.200q is no address of https, which nobody else can read", withoutQuery(at))
		}
	}
	return &OIDC{opts: o, client: providerClient(), secure: strings.HasPrefix(o.Redirect, "https:"), turn: make(chan struct{}, 1)}, nil
}

// pending is what is known again when a person comes back.
type pending struct {
	State    string    `json:"state"`
	Nonce    string    `json:"nonce"`
	Verifier string    `json:"verifier"`
	Back     []byte    `json:"back"` // which base64 keeps small: cookies have 4 KiB
	Ends     time.Time `json:"ends"`
}

var pendingLabel = seal.Label{Owner: "sign-in", Name: "oidc"}

// Begin returns the page of the provider that a person is to be sent to, and a cookie
// for the same answer. The person has ten minutes. Back is the path to go to then;
// what is none of ours becomes /.
func (o *OIDC) Begin(ctx context.Context, back string) (page string, cookie *http.Cookie, err error) {
	config, _, err := o.find(ctx)
	if err != nil {
		return "", nil, err
	}
	p := pending{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), Back: []byte(LocalPath(back)), Ends: time.Now().Add(signInTime)}
	data, err := json.Marshal(p)
	if err != nil {
		return "", nil, err
	}
	sealed, err := o.opts.Sealer.Seal(data, pendingLabel)
	if err != nil {
		return "", nil, err
	}
	return config.AuthCodeURL(p.State, oidc.Nonce(p.Nonce), oauth2.S256ChallengeOption(p.Verifier)), o.cookie(sealed, signInTime), nil
}

// Identity is who somebody is by the word of a provider.
type Identity struct {
	// Issuer and Subject together name the person for ever. A user is found by them,
	// and not by a name or an address, which somebody else may have tomorrow.
	Issuer, Subject string
	Name            string // a wish for the name of the user; may be empty
	Email           string // empty where the provider does not know it to be theirs
	Groups          []string
	Back            string // where the person wanted to go
}

// Finish says who came back with a request, to Redirect. It fails with a
// [*ProviderError]; the person may begin again. The answer is to have the cookie of
// [OIDC.Spent] in any case.
func (o *OIDC) Finish(ctx context.Context, r *http.Request) (*Identity, error) {
	p, err := o.pending(r)
	if err != nil {
		return nil, err
	}
	q := r.URL.Query()
	config, provider, err := o.find(ctx)
	switch iss := q.Get("iss"); {
	case err != nil:
		return nil, err
	case iss != "" && iss != o.opts.Issuer: // RFC 9207
		return nil, &ProviderError{Step: "come back", Why: "the answer is from another provider"}
	case q.Get("error") != "":
		return nil, &ProviderError{Step: "sign in", Why: fmt.Sprintf("the provider answers %.100q", q.Get("error")), Denied: q.Get("error") == "access_denied"}
	case q.Get("code") == "":
		return nil, &ProviderError{Step: "come back", Why: "the answer has no code"}
	}
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, o.client), providerTime)
	defer cancel()
	token, err := config.Exchange(ctx, q.Get("code"), oauth2.VerifierOption(p.Verifier))
	if err != nil {
		return nil, failure("exchange the code", err)
	}
	id, err := o.identity(ctx, provider, token, p.Nonce)
	if err != nil {
		return nil, err
	}
	id.Back = string(p.Back)
	return id, nil
}

// pending is what was begun in the browser that a request is from.
func (o *OIDC) pending(r *http.Request) (*pending, error) {
	again := &ProviderError{Step: "come back", Why: "this browser began no sign-in in the last ten minutes, or another one since"}
	c, err := r.Cookie(o.cookieName())
	if err != nil {
		return nil, again
	}
	data, err := o.opts.Sealer.Open(c.Value, pendingLabel)
	if err != nil {
		return nil, again
	}
	var p pending
	state := r.URL.Query().Get("state")
	if json.Unmarshal(data, &p) != nil || !time.Now().Before(p.Ends) || subtle.ConstantTimeCompare([]byte(p.State), []byte(state)) != 1 {
		return nil, again
	}
	return &p, nil
}

// identity checks an ID token: who made it and for whom, until when, and that it is
// of the sign-in that was begun.
func (o *OIDC) identity(ctx context.Context, provider *oidc.Provider, token *oauth2.Token, nonce string) (*Identity, error) {
	const step = "check the ID token"
	raw, ok := token.Extra("id_token").(string)
	if !ok {
		return nil, &ProviderError{Step: step, Why: "the provider gave none"}
	}
	t, err := provider.VerifierContext(oidc.ClientContext(ctx, o.client), &oidc.Config{ClientID: o.opts.ClientID}).Verify(ctx, raw)
	if err != nil {
		return nil, failure(step, err)
	}
	var claims map[string]any
	if err := t.Claims(&claims); err != nil {
		return nil, failure(step, err)
	}
	azp, _ := claims["azp"].(string)
	switch {
	case subtle.ConstantTimeCompare([]byte(t.Nonce), []byte(nonce)) != 1:
		return nil, &ProviderError{Step: step, Why: "it is of another sign-in"}
	case azp != "" && azp != o.opts.ClientID || azp == "" && len(t.Audience) > 1:
		return nil, &ProviderError{Step: step, Why: "it was made for another client"}
	case t.AccessTokenHash != "" && t.VerifyAccessToken(token.AccessToken) != nil:
		return nil, &ProviderError{Step: step, Why: "it belongs to another access token"}
	case t.Subject == "" || len(t.Subject) > maxClaim:
		return nil, &ProviderError{Step: step, Why: "it does not say who it is of"}
	}
	groups, err := groupsIn(claims, o.opts.GroupsClaim)
	if err != nil {
		return nil, &ProviderError{Step: step, Why: err.Error()}
	}
	id := &Identity{Issuer: o.opts.Issuer, Subject: t.Subject, Name: textIn(claims, o.opts.NameClaim), Groups: groups}
	if verified, _ := claims["email_verified"].(bool); verified {
		id.Email = textIn(claims, "email")
	}
	return id, nil
}

// Spent is the cookie that has a browser forget the sign-in that it began.
func (o *OIDC) Spent() *http.Cookie { return o.cookie("", -time.Second) }

func (o *OIDC) cookieName() string { return cookieName("loadout-signin", o.secure) }

// cookie goes along when the provider sends the browser back, which is a link from
// another site.
func (o *OIDC) cookie(value string, life time.Duration) *http.Cookie {
	return &http.Cookie{Name: o.cookieName(), Value: value, Path: "/", MaxAge: int(life.Seconds()), Secure: o.secure, HttpOnly: true, SameSite: http.SameSiteLaxMode}
}

// find asks the provider where what is, until it has answered once.
func (o *OIDC) find(ctx context.Context) (*oauth2.Config, *oidc.Provider, error) {
	select {
	case o.turn <- struct{}{}:
		defer func() { <-o.turn }()
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
	if o.provider == nil && o.failed != nil && time.Since(o.failedAt) < discoveryPause {
		return nil, nil, o.failed
	}
	if o.provider == nil {
		if err := o.discover(ctx); err != nil {
			return nil, nil, err
		}
	}
	return &oauth2.Config{
		ClientID: o.opts.ClientID, ClientSecret: o.opts.ClientSecret, Endpoint: o.provider.Endpoint(),
		RedirectURL: o.opts.Redirect, Scopes: append([]string{oidc.ScopeOpenID}, o.opts.Scopes...),
	}, o.provider, nil
}

// discover is called by who has the turn.
func (o *OIDC) discover(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, o.client), providerTime)
	defer cancel()
	p, err := oidc.NewProvider(ctx, o.opts.Issuer)
	if err == nil {
		err = checkEndpoints(p)
	}
	if err != nil {
		failed := failure("find the provider", err)
		if !errors.Is(ctx.Err(), context.Canceled) { // else who asked has left, and the provider is not to blame
			o.failed, o.failedAt = failed, time.Now()
		}
		return failed
	}
	o.provider, o.failed = p, nil
	return nil
}

// checkEndpoints refuses a provider that would have people or codes go where others
// read them.
func checkEndpoints(p *oidc.Provider) error {
	for _, at := range []string{p.Endpoint().AuthURL, p.Endpoint().TokenURL} {
		if u, err := url.Parse(at); err != nil || !safe(u) {
			return fmt.Errorf("it names %.200q, which is no address of https", withoutQuery(at))
		}
	}
	return nil
}

// LocalPath is a path on this hub that a stranger may have written, and / for what
// would lead elsewhere or is longer than 1024 bytes.
func LocalPath(path string) string {
	u, err := url.Parse(path)
	if err != nil || len(path) > maxBack || u.Scheme != "" || u.Host != "" || u.User != nil || !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") || strings.ContainsAny(path, "\\\t\r\n") {
		return "/"
	}
	return path
}

// GroupRule gives those in a group of a provider a role in one of ours.
type GroupRule struct {
	Claimed string  // as the provider writes it, exactly
	Group   GroupID // may be empty
	Role    Role
	Admin   bool // whether they are admins of the hub
}

// Memberships are the roles that somebody in these groups of a provider has by the
// rules, the highest in each group, and whether he is an admin.
func Memberships(rules []GroupRule, claimed []string) (groups map[GroupID]Role, admin bool) {
	groups = map[GroupID]Role{}
	for _, r := range rules {
		if !slices.Contains(claimed, r.Claimed) {
			continue
		}
		admin = admin || r.Admin
		if r.Group != "" && r.Role > Outsider {
			groups[r.Group] = max(groups[r.Group], r.Role)
		}
	}
	return groups, admin
}
