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
	// signInTimeout is the maximum time a user may spend at the provider.
	signInTimeout = 10 * time.Minute
	// discoveryPause is how long sign-ins fail without another attempt after the
	// provider could not be reached.
	discoveryPause = 5 * time.Second
	maxGroups      = 1000
	maxClaim       = 255 // maximum length of a name, a subject or a group, in bytes
	maxReturnPath  = 1024
)

// OIDCOptions configures the identity provider.
type OIDCOptions struct {
	Issuer       string // for example https://id.example.com
	ClientID     string
	ClientSecret string // empty for a public client
	// Redirect is the URL on this hub to which the provider redirects users, for
	// example https://hub.example.com/login/callback.
	Redirect string
	// Scopes are requested in addition to openid. The default is profile and email.
	// Some providers require another scope for groups.
	Scopes []string
	// NameClaim and GroupsClaim are the names of the ID token claims that contain
	// the user name and the groups. The defaults are preferred_username and groups.
	// Dots select nested claims.
	NameClaim, GroupsClaim string
	// Cipher encrypts the sign-in state in a cookie, so that any node can finish
	// the sign-in.
	Cipher *encryption.Cipher
}

// OIDC signs users in through OpenID Connect. It uses the authorization code flow
// with PKCE, state and nonce. It first contacts the provider at the first sign-in.
// It is safe for concurrent use.
type OIDC struct {
	opts   OIDCOptions
	client *http.Client
	secure bool

	// discovering is held during discovery and guards the fields below. Other
	// sign-ins wait for the result.
	discovering chan struct{}
	provider    *oidc.Provider
	failed      error
	failedAt    time.Time
}

// NewOIDC returns an OIDC with the given options, or an error if they are invalid.
// It does not contact the provider.
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
		return nil, errors.New("OpenID Connect: missing client ID or cipher")
	}
	for _, at := range []string{o.Issuer, o.Redirect} {
		if u, err := url.Parse(at); err != nil || !isSecure(u) || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return nil, fmt.Errorf("OpenID Connect: want an https URL, got %.200q", stripQuery(at))
		}
	}
	return &OIDC{opts: o, client: providerClient(), secure: strings.HasPrefix(o.Redirect, "https:"), discovering: make(chan struct{}, 1)}, nil
}

// pendingSignIn is the state of a sign-in until the provider redirects the user
// back.
type pendingSignIn struct {
	State    string    `json:"state"`
	Nonce    string    `json:"nonce"`
	Verifier string    `json:"verifier"`
	Back     []byte    `json:"back"` // bytes, because base64 is shorter than escaped text and a cookie has at most 4 KiB
	Ends     time.Time `json:"ends"`
}

var pendingLabel = encryption.Label{Owner: "sign-in", Name: "oidc"}

// Start begins a sign-in, which the user must complete within ten minutes. The
// response must redirect the user to page, a URL at the provider, and set the
// cookie. returnPath is the path to which the user returns; if it is not a path
// on this hub, / is used instead.
func (o *OIDC) Start(ctx context.Context, returnPath string) (page string, cookie *http.Cookie, err error) {
	config, _, err := o.connect(ctx)
	if err != nil {
		return "", nil, err
	}
	p := pendingSignIn{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), Back: []byte(LocalPath(returnPath)), Ends: time.Now().Add(signInTimeout)}
	data, err := json.Marshal(p)
	if err != nil {
		return "", nil, err
	}
	sealed, err := o.opts.Cipher.Encrypt(data, pendingLabel)
	if err != nil {
		return "", nil, err
	}
	return config.AuthCodeURL(p.State, oidc.Nonce(p.Nonce), oauth2.S256ChallengeOption(p.Verifier)), o.newCookie(sealed, signInTimeout), nil
}

// Identity is a user's identity at the provider.
type Identity struct {
	// Issuer and Subject together identify the user permanently. Names and email
	// addresses do not, because they may be reassigned.
	Issuer, Subject string
	Name            string // suggested user name; may be empty
	Email           string // empty unless the provider has verified it
	Groups          []string
	ReturnTo        string // path to which the user returns
}

// Finish completes a sign-in. r is the request to the redirect URL. Finish returns
// the user's identity, or fails with a [*ProviderError], after which the user may
// start again. The response must always set [OIDC.ExpiredCookie].
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
		return nil, &ProviderError{Step: "return from the provider", Reason: "the response comes from another provider"}
	case q.Get("error") != "":
		return nil, &ProviderError{Step: "sign in", Reason: fmt.Sprintf("provider returned %.100q", q.Get("error")), Denied: q.Get("error") == "access_denied"}
	case q.Get("code") == "":
		return nil, &ProviderError{Step: "return from the provider", Reason: "the response contains no code"}
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

// readPending returns the pending sign-in that the request's browser has started.
func (o *OIDC) readPending(r *http.Request) (*pendingSignIn, error) {
	again := &ProviderError{Step: "return from the provider", Reason: "this browser has no pending sign-in: it expired after ten minutes, or another one was started since"}
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

// ReturnPath returns the path to which the user returns from the pending sign-in that
// the request's browser has started, or "" if there is none.
func (o *OIDC) ReturnPath(r *http.Request) string {
	if p, err := o.readPending(r); err == nil {
		return string(p.Back)
	}
	return ""
}

// checkIDToken checks the issuer, audience, expiry and nonce of an ID token and
// returns the identity in it.
func (o *OIDC) checkIDToken(ctx context.Context, provider *oidc.Provider, token *oauth2.Token, nonce string) (*Identity, error) {
	const step = "check the ID token"
	raw, ok := token.Extra("id_token").(string)
	if !ok {
		return nil, &ProviderError{Step: step, Reason: "the provider returned no ID token"}
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
		return nil, &ProviderError{Step: step, Reason: "the ID token belongs to another sign-in"}
	case azp != "" && azp != o.opts.ClientID || azp == "" && len(t.Audience) > 1:
		return nil, &ProviderError{Step: step, Reason: "the ID token was issued to another client"}
	case t.AccessTokenHash != "" && t.VerifyAccessToken(token.AccessToken) != nil:
		return nil, &ProviderError{Step: step, Reason: "the ID token belongs to another access token"}
	case t.Subject == "" || len(t.Subject) > maxClaim:
		return nil, &ProviderError{Step: step, Reason: "the ID token contains no valid subject"}
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

// ExpiredCookie returns a cookie that deletes the sign-in state.
func (o *OIDC) ExpiredCookie() *http.Cookie { return o.newCookie("", -time.Second) }

func (o *OIDC) cookieName() string { return cookieName("loadout-signin", o.secure) }

// newCookie returns a cookie that holds the sign-in state. Browsers send it when
// the provider redirects them back, which counts as following a link from another
// site.
func (o *OIDC) newCookie(value string, life time.Duration) *http.Cookie {
	return &http.Cookie{Name: o.cookieName(), Value: value, Path: "/", MaxAge: int(life.Seconds()), Secure: o.secure, HttpOnly: true, SameSite: http.SameSiteLaxMode}
}

// connect returns the configuration of the provider, which it reads on first use.
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

// discover reads the configuration of the provider. The caller must hold
// o.discovering.
func (o *OIDC) discover(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, o.client), providerTimeout)
	defer cancel()
	p, err := oidc.NewProvider(ctx, o.opts.Issuer)
	if err == nil {
		err = checkEndpoints(p)
	}
	if err != nil {
		failed := providerError("find the provider", err)
		if !errors.Is(ctx.Err(), context.Canceled) { // a request cancelled by the client is not the provider's failure
			o.failed, o.failedAt = failed, time.Now()
		}
		return failed
	}
	o.provider, o.failed = p, nil
	return nil
}

// checkEndpoints returns an error if any of the provider's endpoints does not use
// https.
func checkEndpoints(p *oidc.Provider) error {
	for _, at := range []string{p.Endpoint().AuthURL, p.Endpoint().TokenURL} {
		if u, err := url.Parse(at); err != nil || !isSecure(u) {
			return fmt.Errorf("OpenID Connect: want an https endpoint, got %.200q", stripQuery(at))
		}
	}
	return nil
}

// LocalPath returns path if it is a path on this hub and has no more than 1024
// bytes, and otherwise /.
func LocalPath(path string) string {
	u, err := url.Parse(path)
	if err != nil || len(path) > maxReturnPath || u.Scheme != "" || u.Host != "" || u.User != nil || !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") || strings.ContainsAny(path, "\\\t\r\n") {
		return "/"
	}
	return path
}

// GroupRule assigns a role in one of the hub's groups to the members of a group at
// the provider.
type GroupRule struct {
	Claimed string  `json:"claimed" minLength:"1" maxLength:"255" doc:"Name of the group at the provider"` // compared exactly
	Group   GroupID `json:"group,omitempty" maxLength:"64" doc:"ID of a group of the hub; the rules then control its members"`
	Role    Role    `json:"role,omitempty" enum:"reporter,developer,maintainer,owner"`
	Admin   bool    `json:"admin,omitempty" doc:"Whether they become administrators of the hub"`
}

// MatchGroupRules applies rules to a user with the claimed groups. It returns the
// highest role in each group, and whether the user becomes an administrator.
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
