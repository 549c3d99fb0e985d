package account

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/coreos/go-oidc/v3/oidc"
)

// maxAccessToken is the maximum length of an access token in bytes.
const maxAccessToken = 16 << 10

// IsJWT reports whether a bearer token has the form of a JSON Web Token.
func IsJWT(token string) bool {
	return len(token) <= maxAccessToken && strings.Count(token, ".") == 2
}

// Issuer returns the address of the provider.
func (o *OIDC) Issuer() string { return o.opts.Issuer }

// CheckAccessToken checks an access token that the provider issued as a JSON Web
// Token (RFC 9068). resource is the URL of an endpoint of this hub. The token must
// have been issued for it: a token for another service, or for the sign-in to this
// hub, would let that service act for the user here. CheckAccessToken returns the
// issuer and subject of the user, and the scopes in the token. It fails with
// [ErrInvalidCredentials] if the token is not valid, and with a [*ProviderError] if
// the provider cannot be reached.
func (o *OIDC) CheckAccessToken(ctx context.Context, token, resource string) (*Identity, Scopes, error) {
	if !o.isFor(token, resource) {
		return nil, 0, ErrInvalidCredentials // rejects most tokens for other services without a request to the provider
	}
	_, provider, err := o.connect(ctx)
	if err != nil {
		return nil, 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, providerTimeout)
	defer cancel()
	t, err := provider.Verifier(&oidc.Config{ClientID: resource}).Verify(ctx, token)
	if _, unreachable := errors.AsType[*url.Error](err); unreachable || err != nil && ctx.Err() != nil {
		return nil, 0, providerError("check the access token", err)
	}
	if err != nil || t.Subject == "" || len(t.Subject) > maxClaim {
		return nil, 0, ErrInvalidCredentials
	}
	var claims struct {
		Scope string `json:"scope"`
	}
	if err := t.Claims(&claims); err != nil {
		return nil, 0, ErrInvalidCredentials
	}
	var scopes Scopes
	for name := range strings.FieldsSeq(claims.Scope) {
		if s, err := ParseScopes(name); err == nil { // the provider has scopes of its own
			scopes |= s
		}
	}
	return &Identity{Issuer: t.Issuer, Subject: t.Subject}, scopes, nil
}

// isFor reports whether a token says that the provider issued it for a resource. It
// does not check the signature.
func (o *OIDC) isFor(token, resource string) bool {
	_, rest, _ := strings.Cut(token, ".")
	payload, _, _ := strings.Cut(rest, ".")
	data, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil || !IsJWT(token) {
		return false
	}
	var claims struct {
		Issuer   string          `json:"iss"`
		Audience json.RawMessage `json:"aud"`
	}
	if json.Unmarshal(data, &claims) != nil || claims.Issuer != o.opts.Issuer {
		return false
	}
	var one string
	var many []string
	if json.Unmarshal(claims.Audience, &one) == nil {
		return one == resource
	}
	return json.Unmarshal(claims.Audience, &many) == nil && slices.Contains(many, resource)
}
