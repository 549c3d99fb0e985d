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

// whereabouts are an authorization server, its endpoints, and what a server says of
// tokens for it.
type whereabouts struct {
	Issuer          string
	AuthURL         string
	TokenURL        string
	RegistrationURL string // "" where there is none
	RevocationURL   string // "" where there is none, or none to trust
	SaysIssuer      bool   // whether the browser brings its name back (RFC 9207)
	AuthMethods     []string
	AllScopes       []string // that it knows

	Resource string   // what tokens are for
	Scopes   []string // that the server wants
}

// discover finds the authorization server of a server by its answer to req. accept is
// asked about the issuer before anything is sent there.
func discover(ctx context.Context, client *http.Client, guard *transport, req *http.Request, res *http.Response, accept func(issuer string) error) (*whereabouts, error) {
	about, err := named(ctx, client, req.URL, res.Header)
	if err != nil {
		return nil, err
	}
	issuer := about.Issuer
	if u, err := url.Parse(issuer); err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || !secure(u) {
		return nil, errors.New("the authorization server that it names is no https address without a query")
	}
	if err := accept(issuer); err != nil {
		return nil, err
	}
	// It takes only what is at the places for metadata of this issuer and names
	// this issuer in it (RFC 8414, section 3.3).
	m, err := auth.GetAuthServerMetadata(ctx, issuer, client)
	if err != nil {
		return nil, fmt.Errorf("read what the authorization server says of itself: %w", guard.why(err))
	}
	if m == nil { // as servers of the MCP version 2025-03-26 have it
		about.AuthURL, about.TokenURL, about.RegistrationURL = issuer+"/authorize", issuer+"/token", issuer+"/register"
		return about, nil
	}
	about.Issuer, about.AuthURL, about.TokenURL, about.RegistrationURL = m.Issuer, m.AuthorizationEndpoint, m.TokenEndpoint, m.RegistrationEndpoint
	about.SaysIssuer, about.AuthMethods, about.AllScopes = m.AuthorizationResponseIssParameterSupported, m.TokenEndpointAuthMethodsSupported, m.ScopesSupported
	if sameOrigin(m.RevocationEndpoint, m.TokenEndpoint) {
		about.RevocationURL = m.RevocationEndpoint
	}
	return about, nil
}

// named is the authorization server that a server names, and what tokens for it are: in
// its metadata (RFC 9728), or itself where it has none.
func named(ctx context.Context, client *http.Client, server *url.URL, h http.Header) (*whereabouts, error) {
	challenges, err := oauthex.ParseWWWAuthenticate(h.Values("WWW-Authenticate"))
	if err != nil {
		return nil, errors.New("what it says about signing in cannot be read")
	}
	root, atPath, atRoot := *server, *server, *server
	root.Path = ""
	atPath.Path = "/.well-known/oauth-protected-resource/" + strings.TrimLeft(server.Path, "/")
	atRoot.Path = "/.well-known/oauth-protected-resource"
	places := [][2]string{{atPath.String(), server.String()}, {atRoot.String(), root.String()}}
	for _, c := range challenges {
		if at := c.Params["resource_metadata"]; at != "" {
			places = append([][2]string{{at, server.String()}}, places...)
			break
		}
	}
	wanted := challenged(challenges)
	for _, p := range places {
		m, err := oauthex.GetProtectedResourceMetadata(ctx, p[0], p[1], client)
		if err != nil || m == nil {
			if refused, ok := errors.AsType[*AddressError](err); ok {
				return nil, refused
			}
			continue
		}
		if len(m.AuthorizationServers) == 0 {
			return nil, errors.New("it names no authorization server")
		}
		if len(wanted) == 0 {
			wanted = m.ScopesSupported
		}
		return &whereabouts{Issuer: m.AuthorizationServers[0], Resource: m.Resource, Scopes: wanted}, nil
	}
	return &whereabouts{Issuer: root.String(), Resource: server.String(), Scopes: wanted}, ctx.Err()
}

// challenged are the scopes that a server asks for where it refuses.
func challenged(all []oauthex.Challenge) []string {
	for _, c := range all {
		if c.Scheme == "bearer" && c.Params["scope"] != "" {
			return strings.Fields(c.Params["scope"])
		}
	}
	return nil
}

// sameIssuer compares as the SDK does.
func sameIssuer(a, b string) bool { return strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/") }

// sameOrigin says whether two URLs are of one server, which then learns nothing
// new from what is sent to the other.
func sameOrigin(a, b string) bool {
	u, err1 := url.Parse(a)
	v, err2 := url.Parse(b)
	return cmp.Or(err1, err2) == nil && u.Host != "" && u.Scheme == v.Scheme && hostPort(u) == hostPort(v)
}
