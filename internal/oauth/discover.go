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

// whereabouts are an authorization server, and its endpoints.
type whereabouts struct {
	Issuer          string
	AuthURL         string
	TokenURL        string
	RegistrationURL string // "" where there is none
	RevocationURL   string // "" where there is none, or none to trust
}

// discover finds the authorization server of a server by its answer to req. The
// SDK does the same later, and keeps to itself what it found: it is bound to this.
// accept is asked about the issuer before anything is sent there.
func discover(ctx context.Context, client *http.Client, req *http.Request, res *http.Response, accept func(issuer string) error) (*whereabouts, error) {
	issuer, err := namedIssuer(ctx, client, req.URL, res.Header)
	if err != nil {
		return nil, err
	}
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
		return nil, fmt.Errorf("read what the authorization server says of itself: %w", err)
	}
	if m == nil { // as servers of the MCP version 2025-03-26 have it
		return &whereabouts{Issuer: issuer, AuthURL: issuer + "/authorize", TokenURL: issuer + "/token", RegistrationURL: issuer + "/register"}, nil
	}
	w := &whereabouts{m.Issuer, m.AuthorizationEndpoint, m.TokenEndpoint, m.RegistrationEndpoint, m.RevocationEndpoint}
	if !sameOrigin(w.RevocationURL, w.TokenURL) {
		w.RevocationURL = ""
	}
	return w, nil
}

// namedIssuer is the authorization server that a server names: in its metadata
// (RFC 9728), or itself where it has none.
func namedIssuer(ctx context.Context, client *http.Client, server *url.URL, h http.Header) (string, error) {
	challenges, err := oauthex.ParseWWWAuthenticate(h.Values("WWW-Authenticate"))
	if err != nil {
		return "", errors.New("what it says about signing in cannot be read")
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
	for _, p := range places {
		m, err := oauthex.GetProtectedResourceMetadata(ctx, p[0], p[1], client)
		if err != nil || m == nil {
			continue
		}
		if len(m.AuthorizationServers) == 0 {
			return "", errors.New("it names no authorization server")
		}
		return m.AuthorizationServers[0], nil
	}
	return root.String(), ctx.Err()
}

// page says whether an address is of the page to sign in at.
func (w *whereabouts) page(address string) bool {
	query, ok := strings.CutPrefix(address, w.AuthURL)
	return ok && w.AuthURL != "" && strings.ContainsAny(query[:min(1, len(query))], "?&")
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
