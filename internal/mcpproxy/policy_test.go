//lint:file-ignore SA1019 legacy clients and servers still use deprecated features

package mcpproxy_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/mcpproxy"
)

// approval is a Permit that asks before each call, and knows by the state that it
// was answered.
func approval(_ context.Context, req *mcp.CallToolRequest, server, tool string) (*mcp.CallToolResult, func(string) string, error) {
	p := req.Params
	state, ours := strings.CutPrefix(p.RequestState, "ours:")
	if !ours {
		return &mcp.CallToolResult{
			InputRequests: mcp.InputRequestMap{"approve": &mcp.ElicitParams{Mode: "form", Message: "call " + tool + " of " + server + "?", RequestedSchema: json.RawMessage(`{"type":"object"}`)}},
			RequestState:  "ours:",
		}, nil, nil
	}
	keep := func(state string) string { return "ours:approved:" + state }
	if state, ok := strings.CutPrefix(state, "approved:"); ok {
		p.RequestState = state
		return nil, keep, nil
	}
	answer, ok := p.InputResponses["approve"].(*mcp.ElicitResult)
	if !ok {
		return nil, nil, errors.New("no answer")
	}
	if answer.Action != "accept" {
		return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "not approved"}}}, nil, nil
	}
	p.RequestState, p.InputResponses = "", nil
	return nil, keep, nil
}

// person answers questions and records them.
type person struct {
	approves string // accept or decline

	mu    sync.Mutex
	asked []string
}

func (p *person) options() *mcp.ClientOptions {
	return &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.asked = append(p.asked, req.Params.Message)
		if strings.HasPrefix(req.Params.Message, "call ") {
			return &mcp.ElicitResult{Action: p.approves}, nil
		}
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"colour": "blue"}}, nil
	}}
}

// permitted is a server with a tool that asks nothing and one that asks once. calls
// counts completed calls of both.
func permitted(era string) (up *mcp.Server, calls *atomic.Int32) {
	up, calls = newServer(era), new(atomic.Int32)
	addTool(up, "plain", func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		calls.Add(1)
		if req.Params.RequestState != "" || req.Params.InputResponses != nil {
			return nil, errors.New("the approval has nothing to do with me")
		}
		return say("done")
	})
	addTool(up, "form", func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		q := inputRequests()["form"].(*mcp.ElicitParams)
		var answer *mcp.ElicitResult
		switch {
		case era == legacy:
			var err error
			if answer, err = req.Session.Elicit(ctx, q); err != nil {
				return nil, err
			}
		case req.Params.RequestState == "":
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"form": q}, RequestState: "mine"}, nil
		case req.Params.RequestState != "mine":
			return nil, errors.New("state: " + req.Params.RequestState)
		default:
			answer = req.Params.InputResponses["form"].(*mcp.ElicitResult)
		}
		calls.Add(1)
		return say("colour " + answer.Content["colour"].(string))
	})
	return up, calls
}

// A call that needs approval reaches its server once and only after approval, even if
// the server has a question itself.
func TestCallsArePermitted(t *testing.T) {
	for _, tt := range []struct {
		name, approves, tool, want string
		isError                    bool
		calls                      int32
		asked                      []string
	}{
		{"approved", "accept", "plain", "done", false, 1, []string{"call plain of up?"}},
		{"denied", "decline", "plain", "not approved", true, 0, []string{"call plain of up?"}},
		{"approved and asked by the server", "accept", "form", "colour blue", false, 1, []string{"call form of up?", "which?"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			eachEra(t, func(t *testing.T, client, server string) {
				up, calls := permitted(server)
				p := &person{approves: tt.approves}
				cs := connect(t, newDirect(t, &mcpproxy.Options{AuthorizeCall: approval}, mcpproxy.Upstream{Name: "up", Opener: opener(up)}), client, p.options())
				for range 2 { // leave is for one call
					p.asked = nil
					calls.Store(0)
					res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: tt.tool, Arguments: map[string]any{"a": 1}})
					if err != nil {
						t.Fatal(err)
					}
					if text(res) != tt.want || res.IsError != tt.isError {
						t.Errorf("result = %q, error %t; want %q, %t", text(res), res.IsError, tt.want, tt.isError)
					}
					if d := cmp.Diff(tt.asked, p.asked); d != "" {
						t.Errorf("asked: %s", d)
					}
					if n := calls.Load(); n != tt.calls {
						t.Errorf("%d calls reached the server, want %d", n, tt.calls)
					}
				}
			})
		})
	}
}

// The client carries the approval from one question to the next, and sees that
// it is asked.
func TestApprovalIsSentWithTheQuestion(t *testing.T) {
	for _, era := range []string{legacy, modern} {
		t.Run("server "+era, func(t *testing.T) {
			up, _ := permitted(era)
			cs := connect(t, newDirect(t, &mcpproxy.Options{AuthorizeCall: approval}, mcpproxy.Upstream{Name: "up", Opener: opener(up)}), modern, byHand())
			p := &mcp.CallToolParams{Name: "form"}
			for _, want := range []struct{ message, state string }{{"call form of up?", "ours:"}, {"which?", "ours:approved:"}} {
				res, err := cs.CallTool(t.Context(), p)
				if err != nil || !res.NeedsInput() || len(res.InputRequests) != 1 || !strings.HasPrefix(res.RequestState, want.state) {
					t.Fatalf("result = %+v, %v; want %v", res, err, want)
				}
				given := mcp.InputResponseMap{}
				for id, q := range res.InputRequests {
					if got := q.(*mcp.ElicitParams).Message; got != want.message {
						t.Errorf("question = %q, want %q", got, want.message)
					}
					given[id] = &mcp.ElicitResult{Action: "accept", Content: map[string]any{"colour": "red"}}
				}
				p = &mcp.CallToolParams{Name: "form", RequestState: res.RequestState, InputResponses: given}
			}
			if res, err := cs.CallTool(t.Context(), p); err != nil || res.NeedsInput() || text(res) != "colour red" {
				t.Errorf("at the end: %+v, %v", res, err)
			}
		})
	}
}

// raw talks to s without a client, and returns a function that makes a request.
func raw(t *testing.T, s *mcpproxy.Server, era string) func(method string, params map[string]any) *jsonrpc.Response {
	t.Helper()
	here, there := mcp.NewInMemoryTransports()
	ran := make(chan struct{})
	go func() { defer close(ran); s.Run(context.Background(), there) }()
	conn, err := here.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(); <-ran })
	send := func(id jsonrpc.ID, method string, params map[string]any) {
		t.Helper()
		if era == modern {
			params["_meta"] = map[string]any{mcp.MetaKeyProtocolVersion: era,
				mcp.MetaKeyClientInfo: map[string]any{"name": "raw", "version": "1"}, mcp.MetaKeyClientCapabilities: map[string]any{}}
		}
		js, err := json.Marshal(params)
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.Write(t.Context(), &jsonrpc.Request{ID: id, Method: method, Params: js}); err != nil {
			t.Fatal(err)
		}
	}
	n := 0.0
	request := func(method string, params map[string]any) *jsonrpc.Response {
		t.Helper()
		n++
		id, err := jsonrpc.MakeID(n)
		if err != nil {
			t.Fatal(err)
		}
		send(id, method, params)
		for {
			msg, err := conn.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			switch m := msg.(type) {
			case *jsonrpc.Response:
				return m
			case *jsonrpc.Request:
				if m.Method == "notifications/subscriptions/acknowledged" { // the response comes last
					t.Fatal("subscribed")
				}
			}
		}
	}
	if era == legacy {
		request("initialize", map[string]any{"protocolVersion": era, "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "raw", "version": "1"}})
		send(jsonrpc.ID{}, "notifications/initialized", map[string]any{})
	}
	return request
}

// What answers in place of a call is a result as the client's era wants it.
func TestRefusalsAreValidResults(t *testing.T) {
	for _, tt := range []struct {
		era  string
		kind any
	}{{legacy, nil}, {modern, "complete"}} {
		t.Run(tt.era, func(t *testing.T) {
			up, calls := permitted(modern)
			s := newDirect(t, &mcpproxy.Options{AuthorizeCall: func(_ context.Context, req *mcp.CallToolRequest, _, tool string) (*mcp.CallToolResult, func(string) string, error) {
				if tool == "plain" {
					return &mcp.CallToolResult{IsError: true}, nil, nil // without content
				}
				return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "no"}}}, nil, nil
			}}, mcpproxy.Upstream{Name: "up", Opener: opener(up)})
			request := raw(t, s, tt.era)
			for tool, content := range map[string][]any{"plain": {}, "form": {map[string]any{"type": "text", "text": "no"}}} {
				res := request("tools/call", map[string]any{"name": tool})
				if res.Error != nil {
					t.Fatal(res.Error)
				}
				var got map[string]any
				if err := json.Unmarshal(res.Result, &got); err != nil {
					t.Fatal(err)
				}
				if got["resultType"] != tt.kind || got["isError"] != true || cmp.Diff(any(content), got["content"]) != "" {
					t.Errorf("%s: %s", tool, res.Result)
				}
			}
			if n := calls.Load(); n != 0 {
				t.Errorf("%d calls reached the server", n)
			}
		})
	}
}

func invalid(t *testing.T, what string, err error, text string) {
	t.Helper()
	var e *jsonrpc.Error
	if !errors.As(err, &e) || e.Code != jsonrpc.CodeInvalidParams || !strings.Contains(e.Message, text) {
		t.Errorf("%s: %v, want invalid params with %q", what, err, text)
	}
}

// stocked is a server with two of everything, which says what reached it.
func stocked(era string) (*mcp.Server, func() []string) {
	var mu sync.Mutex
	var got []string
	note := func(s string) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, s)
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "fixture", Version: "1"}, &mcp.ServerOptions{
		SupportedProtocolVersions: []string{era},
		SubscribeHandler: func(_ context.Context, req *mcp.SubscribeRequest) error {
			note("subscribe " + req.Params.URI)
			return nil
		},
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
		CompletionHandler: func(_ context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			note("complete " + req.Params.Ref.Name + req.Params.Ref.URI)
			return &mcp.CompleteResult{}, nil
		},
	})
	read := func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		note("read " + req.Params.URI)
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Params.URI, Text: "text"}}}, nil
	}
	for _, name := range []string{"open", "secret"} {
		s.AddPrompt(&mcp.Prompt{Name: name}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			note("get " + name)
			return &mcp.GetPromptResult{}, nil
		})
		s.AddResource(&mcp.Resource{URI: "test://" + name, Name: name}, read)
		s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: name + "://{id}", Name: name}, read)
	}
	return s, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(got)
	}
}

// What PermitServer refuses is not listed, and does not reach the server.
func TestPermitServer(t *testing.T) {
	permit := func(_ context.Context, server, kind, name string) error {
		if strings.Contains(name, "secret") {
			return errors.New(kind + " of " + server + " is not for you")
		}
		return nil
	}
	for _, several := range []bool{false, true} {
		eachEra(t, func(t *testing.T, client, server string) {
			up, got := stocked(server)
			ups, prompt := []mcpproxy.Upstream{{Name: "up", Opener: opener(up)}}, ""
			if several {
				ups[0].Prefix, prompt = "up", "up__"
				ups = append(ups, mcpproxy.Upstream{Name: "other", Prefix: "other", Opener: opener(newServer(modern))})
			}
			s := newDirect(t, &mcpproxy.Options{AuthorizeAccess: permit}, ups...)
			cs := connect(t, s, client, nil)
			var listed []string
			for p, err := range cs.Prompts(t.Context(), nil) {
				if err != nil {
					t.Fatal(err)
				}
				listed = append(listed, p.Name)
			}
			for r, err := range cs.Resources(t.Context(), nil) {
				if err != nil {
					t.Fatal(err)
				}
				listed = append(listed, r.URI)
			}
			for r, err := range cs.ResourceTemplates(t.Context(), nil) {
				if err != nil {
					t.Fatal(err)
				}
				listed = append(listed, r.URITemplate)
			}
			if d := cmp.Diff([]string{prompt + "open", "test://open", "open://{id}"}, listed); d != "" {
				t.Errorf("listed: %s", d)
			}
			try := map[string]func(name string) error{
				"prompt of up": func(name string) error {
					_, err := cs.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: prompt + name})
					return err
				},
				"resource of up": func(name string) error {
					_, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "test://" + name})
					return err
				},
				"resource of up ": func(name string) error {
					_, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: name + "://7"})
					return err
				},
				"prompt of up ": func(name string) error {
					_, err := cs.Complete(t.Context(), &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: prompt + name}, Argument: mcp.CompleteParamsArgument{Name: "a"}})
					return err
				},
				" resource of up": func(name string) error {
					_, err := cs.Complete(t.Context(), &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/resource", URI: name + "://{id}"}, Argument: mcp.CompleteParamsArgument{Name: "id"}})
					return err
				},
			}
			for what, f := range try {
				if err := f("open"); err != nil {
					t.Errorf("%s that is permitted: %v", what, err)
				}
				invalid(t, what, f("secret"), strings.TrimSpace(what)+" is not for you")
			}
			// Without a client, which does not tell how subscribing ended in the
			// newer era.
			request := raw(t, s, client)
			var res *jsonrpc.Response
			if client == legacy {
				res = request("resources/subscribe", map[string]any{"uri": "test://secret"})
			} else {
				res = request("subscriptions/listen", map[string]any{"notifications": map[string]any{"resourceSubscriptions": []string{"test://secret"}}})
			}
			invalid(t, "subscribe", res.Error, "resource of up is not for you")
			reached := got()
			slices.Sort(reached)
			if d := cmp.Diff([]string{"complete open", "complete open://{id}", "get open", "read open://7", "read test://open"}, reached); d != "" {
				t.Errorf("reached the server: %s", d)
			}
		})
	}
}

// Tools that Allow refuses cannot be called by any name, even if they were allowed when
// listed.
func TestForbiddenTools(t *testing.T) {
	for _, prefix := range []string{"", "up"} {
		eachEra(t, func(t *testing.T, client, server string) {
			up, calls := permitted(server)
			var closed atomic.Bool
			s := newDirect(t, nil, mcpproxy.Upstream{Name: "up", Prefix: prefix, Opener: opener(up), Allow: func(tool *mcp.Tool) bool {
				return tool.Name == "plain" && !closed.Load()
			}})
			cs := connect(t, s, client, nil)
			names := func() (out []string) {
				res, err := cs.ListTools(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				for _, tool := range res.Tools {
					out = append(out, tool.Name)
				}
				return out
			}
			call := func(name string) error {
				_, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: name})
				return err
			}
			plain := "plain"
			if prefix != "" {
				plain = prefix + "__plain"
			}
			for _, name := range []string{"form", "up__form"} { // before any list
				invalid(t, name, call(name), "unknown tool")
			}
			if d := cmp.Diff([]string{plain}, names()); d != "" {
				t.Error(d)
			}
			if err := call(plain); err != nil {
				t.Error(err)
			}
			for _, name := range []string{"form", "up__form"} {
				invalid(t, name, call(name), "unknown tool")
			}
			closed.Store(true)
			invalid(t, "allowed before", call(plain), "unknown tool")
			if got := names(); got != nil {
				t.Errorf("tools = %q, want none", got)
			}
			invalid(t, "allowed before", call("plain"), "unknown tool")
			if n := calls.Load(); n != 1 {
				t.Errorf("%d calls reached the server, want 1", n)
			}
		})
	}
}

// dials opens connections as long as err is nil.
type dials struct {
	mcpproxy.Opener
	err *error
}

func (d dials) Open(ctx context.Context, o *mcpproxy.OpenOptions) (*mcpproxy.Conn, error) {
	if *d.err != nil {
		return nil, *d.err
	}
	return d.Opener.Open(ctx, o)
}

// The same trouble is reported once, and again when the server was back between.
func TestReportsAreSentOnce(t *testing.T) {
	var err error
	var mu sync.Mutex
	var reports []string
	s := newDirect(t, &mcpproxy.Options{OnError: func(_ string, err error) {
		mu.Lock()
		defer mu.Unlock()
		reports = append(reports, err.Error())
	}}, mcpproxy.Upstream{Name: "up", Opener: dials{opener(newServer(modern)), &err}})
	for _, step := range []struct {
		err  error
		want []string
	}{
		{errors.New("no such command"), []string{"connect to up: no such command"}},
		{errors.New("no such command"), nil},
		{errors.New("no memory"), []string{"connect to up: no memory"}},
		{nil, nil},
		{errors.New("no memory"), []string{"connect to up: no memory"}},
	} {
		err, reports = step.err, nil
		cs := connect(t, s, legacy, nil) // each has its own connections
		for range 2 {
			if _, err := cs.ListTools(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
		}
		if d := cmp.Diff(step.want, reports); d != "" {
			t.Errorf("reports of %v: %s", step.err, d)
		}
	}
}
