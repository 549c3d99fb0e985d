package mcpserver_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/mcpserver"
	"github.com/loadout-dev/loadout/policy"
)

// authenticate knows the users of a site by their API keys.
func authenticate(r *http.Request) (policy.Principal, error) {
	user, ok := map[string]string{"key-a": "ann", "key-b": "ben"}[r.Header.Get("X-API-Key")]
	if !ok {
		return policy.Principal{}, errors.New("unknown API key")
	}
	return policy.Principal{Kind: policy.UserPrincipal, ID: user}, nil
}

// apiKey sends a key with each request.
type apiKey string

func (k apiKey) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-API-Key", string(k))
	return http.DefaultTransport.RoundTrip(r)
}

// A program mounts the MCP endpoint in its own mux, behind its own
// authentication, for several users.
func ExampleServer_Endpoint() {
	ctx := context.Background()
	rt, err := loadout.New(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	server := mcpserver.New(rt, nil)
	defer server.Close()
	mux := http.NewServeMux()
	mux.Handle("/skills/mcp", server.Endpoint(&mcpserver.HTTPOptions{Authenticate: authenticate}))
	site := httptest.NewServer(mux)
	defer site.Close()

	for _, key := range []string{"key-a", "key-b", "key-c"} {
		client := mcp.NewClient(&mcp.Implementation{Name: "example", Version: "1"}, nil)
		s, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: site.URL + "/skills/mcp", MaxRetries: -1,
			HTTPClient: &http.Client{Transport: apiKey(key)}}, nil)
		fmt.Println(key, "is accepted:", err == nil)
		if err == nil {
			s.Close()
		}
	}
	// Output:
	// key-a is accepted: true
	// key-b is accepted: true
	// key-c is accepted: false
}
