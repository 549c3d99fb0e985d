package oauth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// metadata describes an authorization server and the tokens to request for an
// MCP server.
type metadata struct {
	Issuer          string
	AuthURL         string
	TokenURL        string
	RegistrationURL string // "" if registration is not supported
	RevocationURL   string // "" if revocation is not supported or the URL is not trusted
	ReportsIssuer   bool   // the callback contains the issuer (RFC 9207)
	AuthMethods     []string
	AllScopes       []string // scopes supported by the authorization server

	Resource string   // audience of tokens
	Scopes   []string // scopes required by the MCP server
}

// discover finds the authorization server of an MCP server and reads its
// metadata. res is the MCP server's response to req. discover calls accept with
// the issuer, and contacts the authorization server only if accept returns nil.
func discover(ctx context.Context, client *http.Client, guard *transport, req *http.Request, res *http.Response, accept func(issuer string) error) (*metadata, error) {
	about, err := findIssuer(ctx, client, req.URL, res.Header)
	if err != nil {
		return nil, err
	}
	issuer := about.Issuer
	if u, err := url.Parse(issuer); err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || !isSecure(u) {
		return nil, errors.New("invalid authorization server: want an https URL without credentials, query or fragment")
	}
	if err := accept(issuer); err != nil {
		return nil, err
	}
	// The SDK checks that the metadata contains this issuer (RFC 8414, section
	// 3.3).
	m, err := auth.GetAuthServerMetadata(ctx, issuer, client)
	if err != nil {
		return nil, fmt.Errorf("read authorization server metadata: %w", guard.originalError(err))
	}
	if m == nil { // defaults of MCP version 2025-03-26
		about.AuthURL, about.TokenURL, about.RegistrationURL = issuer+"/authorize", issuer+"/token", issuer+"/register"
		return about, nil
	}
	about.Issuer, about.AuthURL, about.TokenURL, about.RegistrationURL = m.Issuer, m.AuthorizationEndpoint, m.TokenEndpoint, m.RegistrationEndpoint
	about.ReportsIssuer, about.AuthMethods, about.AllScopes = m.AuthorizationResponseIssParameterSupported, m.TokenEndpointAuthMethodsSupported, m.ScopesSupported
	if sameOrigin(m.RevocationEndpoint, m.TokenEndpoint) {
		about.RevocationURL = m.RevocationEndpoint
	}
	return about, nil
}

// findIssuer returns the authorization server named in the MCP server's
// metadata (RFC 9728). Without metadata, it returns the root URL of the server
// itself.
func findIssuer(ctx context.Context, client *http.Client, server *url.URL, h http.Header) (*metadata, error) {
	challenges, err := oauthex.ParseWWWAuthenticate(h.Values("WWW-Authenticate"))
	if err != nil {
		return nil, errors.New("invalid WWW-Authenticate header")
	}
	root, atPath, atRoot := *server, *server, *server
	root.Path = ""
	atPath.Path = "/.well-known/oauth-protected-resource/" + strings.TrimLeft(server.Path, "/")
	atRoot.Path = "/.well-known/oauth-protected-resource"
	candidates := [][2]string{{atPath.String(), server.String()}, {atRoot.String(), root.String()}}
	for _, c := range challenges {
		if at := c.Params["resource_metadata"]; at != "" {
			candidates = append([][2]string{{at, server.String()}}, candidates...)
			break
		}
	}
	wanted := challengeScopes(challenges)
	for _, p := range candidates {
		m, err := oauthex.GetProtectedResourceMetadata(ctx, p[0], p[1], client)
		if err != nil || m == nil {
			if refused, ok := errors.AsType[*PrivateAddressError](err); ok {
				return nil, refused
			}
			continue
		}
		if len(m.AuthorizationServers) == 0 {
			return nil, errors.New("no authorization server in server metadata")
		}
		if len(wanted) == 0 {
			wanted = m.ScopesSupported
		}
		return &metadata{Issuer: m.AuthorizationServers[0], Resource: m.Resource, Scopes: wanted}, nil
	}
	return &metadata{Issuer: root.String(), Resource: server.String(), Scopes: wanted}, ctx.Err()
}

// challengeScopes returns the scopes in the first bearer challenge that has
// any.
func challengeScopes(all []oauthex.Challenge) []string {
	for _, c := range all {
		if c.Scheme == "bearer" && c.Params["scope"] != "" {
			return strings.Fields(c.Params["scope"])
		}
	}
	return nil
}

// sameIssuer reports whether two issuers are equal. Like the SDK, it ignores a
// trailing slash.
func sameIssuer(a, b string) bool { return strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/") }

// sameOrigin reports whether two URLs have the same origin.
func sameOrigin(a, b string) bool {
	u, err1 := url.Parse(a)
	v, err2 := url.Parse(b)
	return cmp.Or(err1, err2) == nil && u.Host != "" && u.Scheme == v.Scheme && hostPort(u) == hostPort(v)
}
