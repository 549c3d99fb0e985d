package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/loadout-dev/loadout/internal/upstream"
)

// redirect is the client's redirect URI. No server listens there, because the
// code is read from the redirect itself.
const redirect = "http://localhost:3000/callback"

// authorizer returns a function that creates OAuth handlers for the suite's
// authorization servers.
func authorizer(given suiteContext) func(*upstream.Config, string) auth.OAuthHandler {
	return func(*upstream.Config, string) auth.OAuthHandler {
		c := &auth.AuthorizationCodeHandlerConfig{
			RedirectURL:                    redirect,
			AuthorizationCodeFetcher:       fetchCode,
			ClientIDMetadataDocumentConfig: &auth.ClientIDMetadataDocumentConfig{URL: "https://conformance-test.local/client-metadata.json"},
			DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{
				Metadata: &oauthex.ClientRegistrationMetadata{RedirectURIs: []string{redirect}},
			},
		}
		if given.ClientID != "" && given.ClientSecret != "" {
			c.PreregisteredClient = &oauthex.ClientCredentials{
				ClientID:         given.ClientID,
				ClientSecretAuth: &oauthex.ClientSecretAuth{ClientSecret: given.ClientSecret},
			}
		}
		h, err := auth.NewAuthorizationCodeHandler(c)
		if err != nil {
			fmt.Fprintln(os.Stderr, "client:", err)
			return nil
		}
		return h
	}
}

// fetchCode replaces the browser in an authorization flow. The suite's server
// redirects immediately.
func fetchCode(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, args.URL, nil)
	if err != nil {
		return nil, err
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	at, err := url.Parse(res.Header.Get("Location"))
	if err != nil {
		return nil, err
	}
	q := at.Query()
	return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
}
