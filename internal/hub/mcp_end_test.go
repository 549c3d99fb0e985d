package hub_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/hub/account"
)

func TestMCPKillSwitch(t *testing.T) {
	n, shop := withShop(t)
	_, token := n.newcomer(t, "ada", account.ScopeMCP)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { n.Registry().Run(ctx) })
	set := func(enabled bool) {
		now := must(n.Registry().SkillSettings(ctx, n.root(t), "hub"))(t)
		now.Disabled = !enabled
		if err := n.Registry().SetSkillSettings(ctx, n.root(t), "hub", now); err != nil {
			t.Fatal(err)
		}
	}
	for _, era := range eras {
		cs := connectMCP(t, n.URL+"/mcp", token, era, nil)
		ended := make(chan *mcp.CallToolResult, 1)
		go func() {
			res, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "call_tool", Arguments: args{"name": "shop__wait"}})
			if err != nil {
				t.Error(err)
			}
			ended <- res
		}()
		shop.begun(t)
		set(false)
		if res := <-ended; res == nil || !res.IsError || !strings.Contains(textOfResult(res), "switched off") {
			t.Errorf("%s: what was called returned %v", era, res)
		}
		if res := through(t, cs, "shop__look"); !res.IsError || !strings.Contains(textOfResult(res), "switched off") {
			t.Errorf("%s: then a call returned %q", era, textOfResult(res))
		}
		set(true)
		if res := through(t, cs, "shop__look"); res.IsError {
			t.Errorf("%s: switched on again a call returned %q", era, textOfResult(res))
		}
	}
}

// listen starts listening in the modern era, and returns the events from then on.
func listenMCP(t *testing.T, n *node, token string) io.ReadCloser {
	t.Helper()
	body := `{"jsonrpc":"2.0","id":9,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"}}}}`
	req := must(http.NewRequestWithContext(t.Context(), "POST", n.URL+"/mcp", strings.NewReader(body)))(t)
	for name, value := range map[string]string{"Authorization": "Bearer " + token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": newerEra, "Mcp-Method": "subscriptions/listen"} {
		req.Header.Set(name, value)
	}
	resp := must(n.Client().Do(req))(t)
	if resp.StatusCode != 200 {
		t.Fatalf("status %d", resp.StatusCode)
	}
	if _, err := resp.Body.Read(make([]byte, 1)); err != nil { // of the acknowledgement: it has begun
		t.Fatal(err)
	}
	return resp.Body
}

// untilItEnds reads a stream to its end.
func untilItEnds(s io.ReadCloser) {
	defer s.Close()
	io.Copy(io.Discard, s) // a stream may be cut
}

func TestMCPListeners(t *testing.T) {
	n, _ := withShop(t)
	n.LookAtListeners(5 * time.Millisecond)
	p, token := n.newcomer(t, "ada", account.ScopeMCP)
	reported := make(chan struct{}, 10)
	cs := connectMCP(t, n.URL+"/mcp", token, newerEra, &mcp.ClientOptions{ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { reported <- struct{}{} }})
	if _, err := cs.ListTools(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	s := listenMCP(t, n, token)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { n.Library().Run(ctx) })
	n.put(t, p, ownPlace(p), "pdf", "Read the PDF.")
	<-reported
	var told strings.Builder
	for buf := make([]byte, 512); !strings.Contains(told.String(), "notifications/tools/list_changed"); {
		size, err := s.Read(buf)
		if told.Write(buf[:size]); err != nil {
			t.Fatalf("who listened got %q, %v", told.String(), err)
		}
	}
	for _, tok := range must(n.DB().Tokens.ListByUser(t.Context(), string(p.User)))(t) {
		if err := n.DB().Tokens.Delete(t.Context(), string(p.User), tok.ID); err != nil {
			t.Fatal(err)
		}
	}
	untilItEnds(s)
}

// The hub keeps no sessions, so that no result says that a loaded skill has changed. When
// another version becomes current, clients that listen are notified, and the next load
// returns it.
func TestMCPListenersOfAnotherVersion(t *testing.T) {
	c := newGroupHub(t, "")
	id := c.developer.upload(t, c.in, "pdf", "FIRST", "run.sh", "#!/bin/sh\n")
	c.decide(t, c.maintainer, id, 1, "approved", responseRecorder[skillAnswer](t, c.reporter, "/skills/"+id).Digest).want(t, 204)
	second := c.developer.addVersion(t, id, "pdf", "SECOND", "run.sh", "#!/bin/sh\necho\n").want(t, 201).text(t, "digest")
	prompts, resources := make(chan struct{}, 100), make(chan struct{}, 100)
	token := c.reporter.mcpToken(t)
	clients := map[string]*mcp.ClientSession{}
	for _, era := range eras {
		o := &mcp.ClientOptions{}
		if era == newerEra {
			o.PromptListChangedHandler = func(context.Context, *mcp.PromptListChangedRequest) { prompts <- struct{}{} }
			o.ResourceListChangedHandler = func(context.Context, *mcp.ResourceListChangedRequest) { resources <- struct{}{} }
		}
		clients[era] = connectMCP(t, c.URL+"/mcp", token, era, o)
		if text := textOfResult(callMCP(t, clients[era], "load_skill", args{"name": "pdf"})); !strings.Contains(text, "FIRST") {
			t.Fatalf("%s: loaded %q", era, text)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { c.Library().Run(ctx) })
	c.decide(t, c.maintainer, id, 2, "approved", second).want(t, 204)
	<-prompts
	<-resources
	for era, cs := range clients {
		if text := textOfResult(callMCP(t, cs, "search_skills", args{})); strings.Contains(text, "Loaded skills") {
			t.Errorf("%s: a result says %q", era, text)
		}
		if text := textOfResult(callMCP(t, cs, "load_skill", args{"name": "pdf"})); !strings.Contains(text, "SECOND") {
			t.Errorf("%s: then loaded %q", era, text)
		}
	}
}

// A hub that closes ends streams, and calls that are under way.
func TestMCPEndsWithHub(t *testing.T) {
	shop := newShop(t)
	h := must(hub.Open(t.Context(), hub.Options{Data: t.TempDir(), FirstAdmin: &hub.FirstAdmin{Name: "root", Password: secret}, Accounts: true,
		Servers: shop.configs(), Private: localhost, Cost: cheap, Rate: -1}))(t)
	n := &node{Hub: h, Server: httptest.NewServer(h.Handler())}
	defer n.Server.Close()
	_, token := n.newcomer(t, "ada", account.ScopeMCP)
	var running sync.WaitGroup
	for _, era := range eras {
		cs := connectMCP(t, n.URL+"/mcp", token, era, nil)
		running.Go(func() {
			res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "call_tool", Arguments: args{"name": "shop__wait"}})
			if err == nil && !res.IsError {
				t.Errorf("%s: the call returned %q", era, textOfResult(res))
			}
		})
		shop.begun(t)
	}
	s := listenMCP(t, n, token)
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	untilItEnds(s)
	running.Wait()
}

// One user cannot take all there is of a node.
func TestMCPConcurrentCallLimit(t *testing.T) {
	n, shop := withShop(t)
	_, token := n.newcomer(t, "ada", account.ScopeMCP)
	_, other := n.newcomer(t, "bob", account.ScopeMCP)
	ctx, stop := context.WithCancel(t.Context())
	cs := connectMCP(t, n.URL+"/mcp", token, newerEra, nil)
	var running sync.WaitGroup
	for range n.MaxMCPCalls() {
		running.Go(func() {
			cs.CallTool(ctx, &mcp.CallToolParams{Name: "call_tool", Arguments: args{"name": "shop__wait"}}) // it is given up
		})
	}
	for range n.MaxMCPCalls() {
		shop.begun(t)
	}
	if r := n.wired(token).send(t, "POST", "/mcp", initializeMCP); r.status != 429 || r.header.Get("Retry-After") == "" {
		t.Errorf("one more is %d %s", r.status, r.body)
	}
	callMCP(t, connectMCP(t, n.URL+"/mcp", other, newerEra, nil), "search_skills", args{})
	stop()
	running.Wait()
}
