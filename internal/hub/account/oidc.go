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

	"github.com/loadout-dev/loadout/internal/encryption"
)

const (
	// signInTimeout is how long a user may take at the provider.
	signInTimeout = 10 * time.Minute
	// discoveryPause is the pause after the provider could not be reached.
	discoveryPause = 5 * time.Second
	maxGroups      = 1000
	maxClaim       = 255 // bytes of a name, a subject, a group
	maxReturnPath  = 1024
)

// OIDCOptions configure the identity provider. They come from the operator.
type OIDCOptions struct {
	Issuer       string // for example https://id.example.com
	ClientID     string
	ClientSecret string // empty for a public client
	// Redirect is the address of this hub to which the provider sends users
	// back, for example https://hub.example.com/login/callback.
	Redirect string
	// Scopes are requested in addition to openid. The default is profile and
	// email. Some providers need one for groups.
	Scopes []string
	// NameClaim and GroupsClaim name the claims of the ID token that hold the
	// user name and the groups. The defaults are preferred_username and groups.
	// Dots select nested claims.
	NameClaim, GroupsClaim string
	// Cipher encrypts the state of a sign-in in a cookie, so that any node can
	// finish it.
	Cipher *encryption.Cipher
}

// OIDC signs users in through OpenID Connect, with the authorization code flow,
// PKCE, state and nonce. It contacts the provider at the first sign-in. It is
// safe for concurrent use.
type OIDC struct {
	opts   OIDCOptions
	client *http.Client
	secure bool

	// discovering guards the fields below and is held during discovery; other
	// sign-ins wait for its result.
	discovering chan struct{}
	provider    *oidc.Provider
	failed      error
	failedAt    time.Time
}

// NewOIDC checks the options. It does not contact the provider.
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
	if o.ClientID == "" || o.Cipher == nil {
		return nil, errors.New("OpenID Connect: needs a client ID and a cipher")
	}
	for _, at := range []string{o.Issuer, o.Redirect} {
		if u, err := url.Parse(at); err != nil || !isSecure(u) || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return nil, fmt.Errorf("OpenID Connect: not an https address: %.200q", stripQuery(at))
		}
	}
	return &OIDC{opts: o, client: providerClient(), secure: strings.HasPrefix(o.Redirect, "https:"), discovering: make(chan struct{}, 1)}, nil
}

// pendingSignIn is the state of a sign-in until the user comes back.
type pendingSignIn struct {
	State    string    `json:"state"`
	Nonce    string    `json:"nonce"`
	Verifier string    `json:"verifier"`
	Back     []byte    `json:"back"` // base64 in JSON keeps it small: cookies have 4 KiB
	Ends     time.Time `json:"ends"`
}

var pendingLabel = encryption.Label{Owner: "sign-in", Name: "oidc"}

// Start returns the page of the provider to redirect the user to, and a cookie
// for the same response. The user has ten minutes. Back is the path to return
// to; a path outside this hub becomes /.
func (o *OIDC) Start(ctx context.Context, back string) (page string, cookie *http.Cookie, err error) {
	config, _, err := o.connect(ctx)
	if err != nil {
		return "", nil, err
	}
	p := pendingSignIn{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), Back: []byte(LocalPath(back)), Ends: time.Now().Add(signInTimeout)}
	data, err := json.Marshal(p)
	if err != nil {
		return "", nil, err
	}
	sealed, err := o.opts.Cipher.Encrypt(data, pendingLabel)
	if err != nil {
		return "", nil, err
	}
	return config.AuthCodeURL(p.State, oidc.Nonce(p.Nonce), oauth2.S256ChallengeOption(p.Verifier)), o.cookie(sealed, signInTimeout), nil
}

// Identity identifies a user at a provider.
type Identity struct {
	// Issuer and Subject together identify the user permanently. Names and
	// addresses do not: they may pass to another user.
	Issuer, Subject string
	Name            string // suggested user name; may be empty
	Email           string // empty unless the provider verified it
	Groups          []string
	ReturnTo        string // path to return to
}

// Finish returns the identity of the user who came back to the redirect
// address. It fails with a [*ProviderError]; the user may start again. Set
// [OIDC.ExpiredCookie] in the response in any case.
func (o *OIDC) Finish(ctx context.Context, r *http.Request) (*Identity, error) {
	p, err := o.readPending(r)
	if err != nil {
		return nil, err
	}
	q := r.URL.Query()
	config, provider, err := o.connect(ctx)
	switch iss := q.Get("iss"); {
	case err != nil:
		return nil, err
	case iss != "" && iss != o.opts.Issuer: // RFC 9207
		return nil, &ProviderError{Step: "return from the provider", Reason: "the answer comes from another provider"}
	case q.Get("error") != "":
		return nil, &ProviderError{Step: "sign in", Reason: fmt.Sprintf("provider returned %.100q", q.Get("error")), Denied: q.Get("error") == "access_denied"}
	case q.Get("code") == "":
		return nil, &ProviderError{Step: "return from the provider", Reason: "the answer has no code"}
	}
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, o.client), providerTimeout)
	defer cancel()
	token, err := config.Exchange(ctx, q.Get("code"), oauth2.VerifierOption(p.Verifier))
	if err != nil {
		return nil, providerError("exchange the code", err)
	}
	id, err := o.checkIDToken(ctx, provider, token, p.Nonce)
	if err != nil {
		return nil, err
	}
	id.ReturnTo = string(p.Back)
	return id, nil
}

// readPending returns the sign-in that was started in the browser of a request.
func (o *OIDC) readPending(r *http.Request) (*pendingSignIn, error) {
	again := &ProviderError{Step: "return from the provider", Reason: "this browser started no sign-in in the last ten minutes, or started another one since"}
	c, err := r.Cookie(o.cookieName())
	if err != nil {
		return nil, again
	}
	data, err := o.opts.Cipher.Decrypt(c.Value, pendingLabel)
	if err != nil {
		return nil, again
	}
	var p pendingSignIn
	state := r.URL.Query().Get("state")
	if json.Unmarshal(data, &p) != nil || !time.Now().Before(p.Ends) || subtle.ConstantTimeCompare([]byte(p.State), []byte(state)) != 1 {
		return nil, again
	}
	return &p, nil
}

// checkIDToken checks the issuer, audience, expiry and nonce of an ID token and
// returns its identity.
func (o *OIDC) checkIDToken(ctx context.Context, provider *oidc.Provider, token *oauth2.Token, nonce string) (*Identity, error) {
	const step = "check the ID token"
	raw, ok := token.Extra("id_token").(string)
	if !ok {
		return nil, &ProviderError{Step: step, Reason: "the provider returned none"}
	}
	t, err := provider.VerifierContext(oidc.ClientContext(ctx, o.client), &oidc.Config{ClientID: o.opts.ClientID}).Verify(ctx, raw)
	if err != nil {
		return nil, providerError(step, err)
	}
	var claims map[string]any
	if err := t.Claims(&claims); err != nil {
		return nil, providerError(step, err)
	}
	azp, _ := claims["azp"].(string)
	switch {
	case subtle.ConstantTimeCompare([]byte(t.Nonce), []byte(nonce)) != 1:
		return nil, &ProviderError{Step: step, Reason: "it belongs to another sign-in"}
	case azp != "" && azp != o.opts.ClientID || azp == "" && len(t.Audience) > 1:
		return nil, &ProviderError{Step: step, Reason: "it was issued for another client"}
	case t.AccessTokenHash != "" && t.VerifyAccessToken(token.AccessToken) != nil:
		return nil, &ProviderError{Step: step, Reason: "it belongs to another access token"}
	case t.Subject == "" || len(t.Subject) > maxClaim:
		return nil, &ProviderError{Step: step, Reason: "it has no valid subject"}
	}
	groups, err := groupNames(claims, o.opts.GroupsClaim)
	if err != nil {
		return nil, &ProviderError{Step: step, Reason: err.Error()}
	}
	id := &Identity{Issuer: o.opts.Issuer, Subject: t.Subject, Name: stringClaim(claims, o.opts.NameClaim), Groups: groups}
	if verified, _ := claims["email_verified"].(bool); verified {
		id.Email = stringClaim(claims, "email")
	}
	return id, nil
}

// ExpiredCookie returns a cookie that deletes the state of the sign-in.
func (o *OIDC) ExpiredCookie() *http.Cookie { return o.cookie("", -time.Second) }

func (o *OIDC) cookieName() string { return cookieName("loadout-signin", o.secure) }

// cookie is sent when the provider redirects the browser back, which is a link
// from another site.
func (o *OIDC) cookie(value string, life time.Duration) *http.Cookie {
	return &http.Cookie{Name: o.cookieName(), Value: value, Path: "/", MaxAge: int(life.Seconds()), Secure: o.secure, HttpOnly: true, SameSite: http.SameSiteLaxMode}
}

// connect returns the configuration of the provider and discovers it on first
// use.
func (o *OIDC) connect(ctx context.Context) (*oauth2.Config, *oidc.Provider, error) {
	select {
	case o.discovering <- struct{}{}:
		defer func() { <-o.discovering }()
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

// discover reads the configuration of the provider. The caller holds
// discovering.
func (o *OIDC) discover(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, o.client), providerTimeout)
	defer cancel()
	p, err := oidc.NewProvider(ctx, o.opts.Issuer)
	if err == nil {
		err = checkEndpoints(p)
	}
	if err != nil {
		failed := providerError("find the provider", err)
		if !errors.Is(ctx.Err(), context.Canceled) { // otherwise the client left, and the provider is not to blame
			o.failed, o.failedAt = failed, time.Now()
		}
		return failed
	}
	o.provider, o.failed = p, nil
	return nil
}

// checkEndpoints rejects a provider whose endpoints do not use https.
func checkEndpoints(p *oidc.Provider) error {
	for _, at := range []string{p.Endpoint().AuthURL, p.Endpoint().TokenURL} {
		if u, err := url.Parse(at); err != nil || !isSecure(u) {
			return fmt.Errorf("endpoint %.200q is not an https address", stripQuery(at))
		}
	}
	return nil
}

// LocalPath returns path if it is a path of this hub, and / if it leads
// elsewhere or has more than 1024 bytes.
func LocalPath(path string) string {
	u, err := url.Parse(path)
	if err != nil || len(path) > maxReturnPath || u.Scheme != "" || u.Host != "" || u.User != nil || !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") || strings.ContainsAny(path, "\\\t\r\n") {
		return "/"
	}
	return path
}

// GroupRule gives the members of a provider's group a role in a group of the
// hub.
type GroupRule struct {
	Claimed string  `json:"claimed" minLength:"1" maxLength:"255" doc:"Name of the group at the provider"` // exact
	Group   GroupID `json:"group,omitempty" maxLength:"64" doc:"ID of a group of the hub; the rules then control its members"`
	Role    Role    `json:"role,omitempty" enum:"reporter,developer,maintainer,owner"`
	Admin   bool    `json:"admin,omitempty" doc:"Whether they become administrators of the hub"`
}

// MatchGroupRules returns the highest role in each group that the rules give a
// user with the claimed groups, and whether they make the user an admin.
func MatchGroupRules(rules []GroupRule, claimed []string) (groups map[GroupID]Role, admin bool) {
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
