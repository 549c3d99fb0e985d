package hub_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/encryption"
	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/hub/users"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
	"github.com/loadout-dev/loadout/internal/upstream"
)

// Versions of the protocol, of each era.
const (
	olderEra = "2025-11-25"
	newerEra = "2026-07-28"
)

var eras = []string{olderEra, newerEra}

type args = map[string]any

// shop is an MCP server with tools that read, change, and wait.
type shop struct {
	*httptest.Server
	paid    atomic.Int64
	waiting chan struct{} // has one for each call of wait that began
}

func newShop(t testing.TB) *shop {
	s := &shop{waiting: make(chan struct{}, 1000)}
	server := mcp.NewServer(&mcp.Implementation{Name: "shop", Version: "1"}, nil)
	object := json.RawMessage(`{"type":"object"}`)
	add := func(name string, readOnly bool, f func(ctx context.Context) (string, error)) {
		server.AddTool(&mcp.Tool{Name: name, Description: "Does " + name + " in the shop.", InputSchema: object, Annotations: &mcp.ToolAnnotations{ReadOnlyHint: readOnly}},
			func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				text, err := f(ctx)
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, err
			})
	}
	add("look", true, func(context.Context) (string, error) { return "many things", nil })
	add("pay", false, func(context.Context) (string, error) { return fmt.Sprint("paid ", s.paid.Add(1)), nil })
	add("wait", true, func(ctx context.Context) (string, error) {
		s.waiting <- struct{}{}
		<-ctx.Done()
		return "", ctx.Err()
	})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true})
	s.Server = httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s
}

// begun waits until a call of wait has begun.
func (s *shop) begun(t testing.TB) {
	t.Helper()
	select {
	case <-s.waiting:
	case <-time.After(20 * time.Second):
		t.Fatal("no call has begun")
	}
}

// configs is the shop's configuration by an operator: purchases need approval.
func (s *shop) configs() []*upstream.Config {
	return []*upstream.Config{
		{Name: "shop", Type: upstream.HTTP, URLs: []string{s.URL}, Exclude: []string{"pay"}},
		{Name: "till", Type: upstream.HTTP, URLs: []string{s.URL}, Include: []string{"pay"}, RequireApproval: true},
	}
}

var localhost = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// withShop is a hub with accounts, and a shop for everybody.
func withShop(t testing.TB) (*node, *shop) {
	s := newShop(t)
	return start(t, hub.Options{FirstAdmin: &hub.FirstAdmin{Name: "root", Password: secret}, Accounts: true, Servers: s.configs(), Private: localhost}), s
}

// twoNodes are hubs on one database, and an address at which they answer by turns.
func twoNodes(t *testing.T, address string) (a, b *node, url string, s *shop) {
	s = newShop(t)
	o := hub.Options{Database: address, FirstAdmin: &hub.FirstAdmin{Name: "root", Password: secret}, Accounts: true, Servers: s.configs(), Private: localhost, Keys: []encryption.Key{encryption.NewKey()}}
	a, b = start(t, o), start(t, o)
	var turn atomic.Int64
	balancer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		[]*node{a, b}[turn.Add(1)%2].Config.Handler.ServeHTTP(w, r)
	}))
	t.Cleanup(balancer.Close)
	return a, b, balancer.URL, s
}

func onEachDatabase(t *testing.T, test func(t *testing.T, address string)) {
	for name, address := range map[string]func(testing.TB) string{"SQLite": storetest.SQLite, "PostgreSQL": storetest.Postgres} {
		t.Run(name, func(t *testing.T) { test(t, address(t)) })
	}
}

// newcomer makes a user, as he is to all that takes a principal, with a token.
func (n *node) newcomer(t testing.TB, name string, scopes account.Scopes) (account.Principal, string) {
	t.Helper()
	u := must(n.DB().Users.Create(t.Context(), store.User{Name: name}))(t)
	p := must(n.People().SignIns.Principal(t.Context(), account.UserID(u.ID)))(t)
	text, _, err := account.NewTokens(users.NewTokenStore(n.DB())).Create(t.Context(), p, "test", scopes, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return p, text
}

// root is the first administrator.
func (n *node) root(t testing.TB) account.Principal {
	t.Helper()
	u := must(n.DB().Users.ByName(t.Context(), "root"))(t)
	return must(n.People().SignIns.Principal(t.Context(), account.UserID(u.ID)))(t)
}

func (n *node) put(t testing.TB, p account.Principal, in store.Namespace, name, text string) *library.Skill {
	t.Helper()
	pkg := library.Package{FileName: name + ".zip", Data: strings.NewReader(zipOf(t, name, skillFiles(name, text)))}
	return must(n.Library().Upload(t.Context(), p, in, pkg))(t)
}

func ownPlace(p account.Principal) store.Namespace { return store.UserNamespace(string(p.User)) }

func (n *node) write(t testing.TB, p account.Principal, docs string) {
	t.Helper()
	if res := must(n.Registry().Apply(t.Context(), p, agents.Parse([]byte(docs), "test.yaml"), false))(t); res.HasRefused() {
		t.Fatalf("refused: %+v", res)
	}
}

// bearer sends a token with each request.
type bearer struct {
	token string
	next  http.RoundTripper
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.next.RoundTrip(r)
}

// connect is a client of the SDK at an endpoint.
func connectMCP(t testing.TB, url, token, era string, o *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	client := mcp.NewClient(&mcp.Implementation{Name: "tester", Version: "7"}, o)
	cs, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: bearer{token, tr}}, MaxRetries: -1},
		&mcp.ClientSessionOptions{ProtocolVersion: era})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cs.Close() })
	if got := cs.InitializeResult().ProtocolVersion; got != era {
		t.Errorf("the protocol is %s, want %s", got, era)
	}
	return cs
}

func callMCP(t testing.TB, cs *mcp.ClientSession, name string, in any) *mcp.CallToolResult {
	t.Helper()
	return must(cs.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: in}))(t)
}

// through calls a tool of another server.
func through(t testing.TB, cs *mcp.ClientSession, tool string) *mcp.CallToolResult {
	t.Helper()
	return callMCP(t, cs, "call_tool", args{"name": tool})
}

func textOfResult(res *mcp.CallToolResult) string {
	var b strings.Builder
	for _, c := range res.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			b.WriteString(text.Text)
		}
	}
	return b.String()
}

// wired is a raw client with a user's token.
func (n *node) wired(token string) caller {
	return caller{node: n, token: token}.with("Accept", "application/json, text/event-stream")
}

const initializeMCP = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`

// decisions returns the decisions about a user's action, in order.
func decisionsBy(t testing.TB, n *node, p account.Principal, action string) []string {
	t.Helper()
	var out []string
	for _, r := range must(n.DB().Audit.List(t.Context(), store.AuditQuery{Actor: string(p.User), Action: action, Limit: 100}))(t) {
		out = append(out, r.Decision)
	}
	slices.Reverse(out)
	return out
}
