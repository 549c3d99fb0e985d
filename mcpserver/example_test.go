package mcpserver_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"testing/fstest"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/mcpserver"
	"github.com/loadout-dev/loadout/policy"
)

var notes = fstest.MapFS{"notes/SKILL.md": {Data: []byte("---\nname: notes\ndescription: Takes notes.\n---\nWrite short sentences.\n")}}

// A program mounts the MCP endpoint in its own mux, behind its own
// authentication, for several users.
func ExampleServer_Endpoint() {
	ctx := context.Background()
	rt, err := loadout.New(ctx, &loadout.Options{Sources: []catalog.Source{catalog.NewFS("mine", catalog.User, notes)}})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	server := mcpserver.New(rt, nil)
	defer server.Close()

	users := map[string]string{"key-a": "ann", "key-b": "ben"} // by API key
	mux := http.NewServeMux()
	mux.Handle("/skills/mcp", server.Endpoint(&mcpserver.HTTPOptions{
		Authenticate: func(r *http.Request) (policy.Principal, error) {
			user, ok := users[r.Header.Get("X-API-Key")]
			if !ok {
				return policy.Principal{}, errors.New("unknown API key")
			}
			return policy.Principal{Kind: policy.UserPrincipal, ID: user}, nil
		},
	}))
	site := httptest.NewServer(mux)
	defer site.Close()

	for _, key := range []string{"key-a", "key-b", "key-c"} {
		client := mcp.NewClient(&mcp.Implementation{Name: "example", Version: "1"}, nil)
		session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: site.URL + "/skills/mcp", MaxRetries: -1,
			HTTPClient: &http.Client{Transport: apiKey(key)}}, nil)
		if err != nil {
			fmt.Println(key, "is refused")
			continue
		}
		res, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "search_skills", Arguments: map[string]any{"query": "notes"}})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(key, " finds ", res.Content[0].(*mcp.TextContent).Text)
		session.Close()
	}
	// Output:
	// key-a finds - notes: Takes notes.
	// key-b finds - notes: Takes notes.
	// key-c is refused
}

// apiKey sends a key with each request.
type apiKey string

func (k apiKey) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-API-Key", string(k))
	return http.DefaultTransport.RoundTrip(r)
}
