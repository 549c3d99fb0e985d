//lint:file-ignore SA1019 legacy clients and servers still use deprecated features

package mcpproxy_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/loadout-dev/loadout/internal/mcpproxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	legacy = "2025-11-25"
	modern = "2026-07-28"
)

// eras are all pairs of a client's and a server's.
var eras = []struct{ client, server string }{{legacy, legacy}, {legacy, modern}, {modern, legacy}, {modern, modern}}

func eachEra(t *testing.T, f func(t *testing.T, client, server string)) {
	for _, e := range eras {
		t.Run("client "+e.client+" server "+e.server, func(t *testing.T) { f(t, e.client, e.server) })
	}
}

// newServer is an upstream server of one era.
func newServer(era string) *mcp.Server {
	versions := []string{era}
	return mcp.NewServer(&mcp.Implementation{Name: "fixture", Version: "1"}, &mcp.ServerOptions{
		SupportedProtocolVersions: versions,
		SubscribeHandler:          func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler:        func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
		CompletionHandler: func(_ context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{req.Params.Ref.Name + req.Params.Ref.URI}}}, nil
		},
	})
}

// opener connects to a server in memory, any number of times.
func opener(s *mcp.Server) mcpproxy.Opener {
	return mcpproxy.NewTransportOpener(func(ctx context.Context) (mcp.Transport, error) {
		here, there := mcp.NewInMemoryTransports()
		_, err := s.Connect(context.Background(), there, nil) // ends with the other side
		return here, err
	}, "")
}

// connect serves s to a client of an era. Sessions end before the test does.
func connect(t *testing.T, s *mcpproxy.Server, era string, o *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	here, there := mcp.NewInMemoryTransports()
	ran := make(chan struct{})
	go func() { defer close(ran); s.Run(context.Background(), there) }()
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, o).Connect(t.Context(), here, &mcp.ClientSessionOptions{ProtocolVersion: era})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cs.Close()
		<-ran
	})
	return cs
}

func newDirect(t *testing.T, o *mcpproxy.Options, ups ...mcpproxy.Upstream) *mcpproxy.Server {
	t.Helper()
	s := mcpproxy.New(ups, o)
	t.Cleanup(func() { s.Close() })
	return s
}

func addTool(s *mcp.Server, name string, h mcp.ToolHandler) {
	s.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, h)
}

func say(text string) (*mcp.CallToolResult, error) {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil
}

func text(r *mcp.CallToolResult) string {
	var b strings.Builder
	for _, c := range r.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			b.WriteString(t.Text)
		}
	}
	return b.String()
}

// inputRequests are one of each kind.
func inputRequests() mcp.InputRequestMap {
	return mcp.InputRequestMap{
		"form": &mcp.ElicitParams{Mode: "form", Message: "which?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{"colour":{"type":"string"}}}`)},
		"model": &mcp.CreateMessageWithToolsParams{MaxTokens: 5, Messages: []*mcp.SamplingMessageV2{
			{Role: "user", Content: []mcp.Content{&mcp.TextContent{Text: "say"}}}}},
		"roots": &mcp.ListRootsParams{},
	}
}

// answers returns the answers of a client in one line.
func answers(form *mcp.ElicitResult, model *mcp.CreateMessageWithToolsResult, roots *mcp.ListRootsResult) string {
	return fmt.Sprint(form.Action, form.Content["colour"], " ", model.Content[0].(*mcp.TextContent).Text, " ", roots.Roots[0].URI)
}

// addAsking adds a tool that asks its client for everything, in the way of its
// era.
func addAsking(s *mcp.Server, era string) {
	addTool(s, "ask", func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		asked := inputRequests()
		if era == modern {
			given := req.Params.InputResponses
			if len(given) < len(asked) {
				return &mcp.CallToolResult{InputRequests: asked, RequestState: "state"}, nil
			}
			if req.Params.RequestState != "state" {
				return nil, errors.New("no state")
			}
			return say(answers(given["form"].(*mcp.ElicitResult), given["model"].(*mcp.CreateMessageWithToolsResult), given["roots"].(*mcp.ListRootsResult)))
		}
		form, err := req.Session.Elicit(ctx, asked["form"].(*mcp.ElicitParams))
		if err != nil {
			return nil, err
		}
		model, err := req.Session.CreateMessageWithTools(ctx, asked["model"].(*mcp.CreateMessageWithToolsParams))
		if err != nil {
			return nil, err
		}
		roots, err := req.Session.ListRoots(ctx, nil)
		if err != nil {
			return nil, err
		}
		return say(answers(form, model, roots))
	})
}

// answering is a client that knows everything.
func answering() *mcp.ClientOptions {
	return &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{RootsV2: &mcp.RootCapabilities{ListChanged: true}},
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"colour": "blue"}}, nil
		},
		CreateMessageWithToolsHandler: func(context.Context, *mcp.CreateMessageWithToolsRequest) (*mcp.CreateMessageWithToolsResult, error) {
			return &mcp.CreateMessageWithToolsResult{Role: "assistant", Model: "m", Content: []mcp.Content{&mcp.TextContent{Text: "said"}}}, nil
		},
	}
}

func TestQuestionsOfServersReachClientsOfEitherEra(t *testing.T) {
	eachEra(t, func(t *testing.T, client, server string) {
		up := newServer(server)
		addAsking(up, server)
		s := newDirect(t, nil, mcpproxy.Upstream{Name: "up", Opener: opener(up)})
		here, there := mcp.NewInMemoryTransports()
		ran := make(chan struct{})
		go func() { defer close(ran); s.Run(context.Background(), there) }()
		c := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, answering())
		c.AddRoots(&mcp.Root{URI: "file:///work"})
		cs, err := c.Connect(t.Context(), here, &mcp.ClientSessionOptions{ProtocolVersion: client})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { cs.Close(); <-ran }()
		for range 2 { // the connection to the server is as good as before
			res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "ask"})
			if err != nil {
				t.Fatal(err)
			}
			if got, want := text(res), "acceptblue said file:///work"; got != want {
				t.Errorf("answers = %q, want %q", got, want)
			}
		}
	})
}

// A handle is good once, for the same request, and no other.
func TestPendingCallIsBoundToItsRequest(t *testing.T) {
	up := newServer(legacy)
	addTool(up, "ask", func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		res, err := req.Session.Elicit(ctx, inputRequests()["form"].(*mcp.ElicitParams))
		if err != nil {
			return nil, err
		}
		return say(res.Action)
	})
	s := newDirect(t, nil, mcpproxy.Upstream{Name: "up", Opener: opener(up)})
	o := answering()
	o.MultiRoundTrip = &mcp.MultiRoundTripOptions{Disabled: true}
	cs := connect(t, s, modern, o)
	call := func(state string, arg any, given mcp.InputResponseMap) (*mcp.CallToolResult, error) {
		return cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "ask", Arguments: map[string]any{"a": arg}, RequestState: state, InputResponses: given})
	}
	const x = json.Number("9007199254740993") // 2^53+1: as a float64, it equals 2^53
	first, err := call("", x, nil)
	if err != nil || !first.NeedsInput() || len(first.InputRequests) != 1 || len(first.RequestState) < 26 {
		t.Fatalf("first call = %+v, %v; want a question", first, err)
	}
	yes := mcp.InputResponseMap{}
	for id := range first.InputRequests {
		yes[id] = &mcp.ElicitResult{Action: "decline"}
	}
	refused := func(what, state string, arg any) {
		t.Helper()
		var e *jsonrpc.Error
		if _, err := call(state, arg, yes); !errors.As(err, &e) || e.Code != jsonrpc.CodeInvalidParams {
			t.Errorf("%s: %v, want invalid params", what, err)
		}
	}
	refused("other arguments", first.RequestState, "y")
	refused("a number that is one less", first.RequestState, json.Number("9007199254740992"))
	refused("a state nobody was given", "held.AAAAAAAAAAAAAAAAAAAAAAAAAA", x)
	again, err := call(first.RequestState, x, nil) // no answer: asked again, with another handle
	if err != nil || !again.NeedsInput() || again.RequestState == first.RequestState {
		t.Fatalf("without an answer = %+v, %v; want the question again", again, err)
	}
	refused("a handle used already", first.RequestState, x)
	res, err := call(again.RequestState, x, yes)
	if err != nil || text(res) != "decline" {
		t.Fatalf("with the answer = %v, %v", res, err)
	}
	refused("a call that has ended", again.RequestState, x)
}

func TestServerErrorsAreUnchanged(t *testing.T) {
	eachEra(t, func(t *testing.T, client, server string) {
		want := &jsonrpc.Error{Code: -31234, Message: "not today", Data: json.RawMessage(`{"why":"closed"}`)}
		up := newServer(server)
		addTool(up, "fail", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return nil, want })
		cs := connect(t, newDirect(t, nil, mcpproxy.Upstream{Name: "up", Opener: opener(up)}), client, nil)
		_, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "fail"})
		var got *jsonrpc.Error
		if !errors.As(err, &got) || cmp.Diff(want, got) != "" {
			t.Errorf("error = %#v, want %#v", err, want)
		}
	})
}

func TestProgressAndLogsReachTheCall(t *testing.T) {
	eachEra(t, func(t *testing.T, client, server string) {
		up := newServer(server)
		addTool(up, "work", func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			for i := range 3 {
				req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Progress: float64(i)})
			}
			req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: "at work"})
			return say("done")
		})
		progress, logs := make(chan string, 10), make(chan string, 10)
		cs := connect(t, newDirect(t, nil, mcpproxy.Upstream{Name: "up", Opener: opener(up)}), client, &mcp.ClientOptions{
			ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
				progress <- fmt.Sprint(req.Params.ProgressToken, " ", req.Params.Progress)
			},
			LoggingMessageHandler: func(_ context.Context, req *mcp.LoggingMessageRequest) { logs <- fmt.Sprint(req.Params.Data) },
		})
		meta := mcp.Meta{"progressToken": "mine"}
		if client == legacy {
			if err := cs.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: "debug"}); err != nil {
				t.Fatal(err)
			}
		} else {
			meta[mcp.MetaKeyLogLevel] = "debug"
		}
		res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "work", Meta: meta})
		if err != nil || text(res) != "done" {
			t.Fatal(res, err)
		}
		for i := range 3 {
			if got, want := <-progress, fmt.Sprint("mine ", i); got != want {
				t.Errorf("progress = %q, want %q", got, want)
			}
		}
		if got := <-logs; got != "at work" {
			t.Errorf("log = %q", got)
		}
	})
}

// Servers report that an interaction outside of the client has completed to the
// client whose call it belongs to.
func TestCompletedInteractionsReachTheClient(t *testing.T) {
	eachEra(t, func(t *testing.T, client, server string) {
		up := newServer(server)
		addTool(up, "pay", func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if err := req.Session.NotifyElicitationComplete(ctx, &mcp.ElicitationCompleteParams{ElicitationID: "payment"}); err != nil {
				return nil, err
			}
			return say("paid")
		})
		completed, other := make(chan string, 1), make(chan string, 1)
		options := func(to chan string) *mcp.ClientOptions {
			return &mcp.ClientOptions{ElicitationCompleteHandler: func(_ context.Context, req *mcp.ElicitationCompleteNotificationRequest) {
				to <- req.Params.ElicitationID
			}}
		}
		s := newDirect(t, nil, mcpproxy.Upstream{Name: "up", Opener: opener(up)})
		connect(t, s, client, options(other))
		if res, err := connect(t, s, client, options(completed)).CallTool(t.Context(), &mcp.CallToolParams{Name: "pay"}); err != nil || text(res) != "paid" {
			t.Fatal(res, err)
		}
		if got := <-completed; got != "payment" {
			t.Errorf("completed %q", got)
		}
		if len(other) > 0 {
			t.Error("another client was notified")
		}
	})
}

func TestCancellationReachesTheServer(t *testing.T) {
	eachEra(t, func(t *testing.T, client, server string) {
		up := newServer(server)
		started, cancelled := make(chan struct{}), make(chan struct{})
		addTool(up, "wait", func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			close(started)
			<-ctx.Done()
			close(cancelled)
			return nil, ctx.Err()
		})
		cs := connect(t, newDirect(t, nil, mcpproxy.Upstream{Name: "up", Opener: opener(up)}), client, answering())
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-started; cancel() }()
		if _, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "wait"}); !errors.Is(err, context.Canceled) {
			t.Errorf("error = %v, want cancelled", err)
		}
		<-cancelled
	})
}

func TestChangesReachClients(t *testing.T) {
	eachEra(t, func(t *testing.T, client, server string) {
		up := newServer(server)
		addTool(up, "first", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return say("") })
		up.AddResource(&mcp.Resource{URI: "test://a", Name: "a"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "test://a", Text: "a"}}}, nil
		})
		// The handlers never block: a session that closes waits for them.
		changed, updated := make(chan struct{}, 1), make(chan string, 1)
		cs := connect(t, newDirect(t, nil, mcpproxy.Upstream{Name: "up", Opener: opener(up)}), client, &mcp.ClientOptions{
			ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {
				select {
				case changed <- struct{}{}:
				default:
				}
			},
			ResourceUpdatedHandler: func(_ context.Context, req *mcp.ResourceUpdatedNotificationRequest) {
				select {
				case updated <- req.Params.URI:
				default:
				}
			},
		})
		if _, err := cs.ListTools(t.Context(), nil); err != nil { // the server is connected by now
			t.Fatal(err)
		}
		addTool(up, "second", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return say("") })
		<-changed
		res, err := cs.ListTools(t.Context(), nil)
		if err != nil || len(res.Tools) != 2 {
			t.Errorf("tools = %v, %v; want two", res, err)
		}
		if err := cs.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "test://a"}); err != nil {
			t.Fatal(err)
		}
		// In the newer era Subscribe returns before the subscription is active.
		for done := false; !done; {
			up.ResourceUpdated(t.Context(), &mcp.ResourceUpdatedNotificationParams{URI: "test://a"})
			select {
			case uri := <-updated:
				if uri != "test://a" {
					t.Errorf("updated = %q", uri)
				}
				done = true
			case <-time.After(time.Millisecond):
			}
		}
	})
}

// A client is notified about the list that changed.
func TestListChangesReachClients(t *testing.T) {
	eachEra(t, func(t *testing.T, client, server string) {
		up := newServer(server)
		add := map[string]func(name string){
			"tools": func(name string) {
				addTool(up, name, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return say("") })
			},
			"prompts":   func(name string) { up.AddPrompt(&mcp.Prompt{Name: name}, nil) },
			"resources": func(name string) { up.AddResource(&mcp.Resource{URI: "test://" + name, Name: name}, nil) },
		}
		for _, f := range add {
			f("first")
		}
		changed := make(chan string, 10)
		cs := connect(t, newDirect(t, nil, mcpproxy.Upstream{Name: "up", Opener: opener(up)}), client, &mcp.ClientOptions{
			ToolListChangedHandler:     func(context.Context, *mcp.ToolListChangedRequest) { changed <- "tools" },
			PromptListChangedHandler:   func(context.Context, *mcp.PromptListChangedRequest) { changed <- "prompts" },
			ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { changed <- "resources" },
		})
		if _, err := cs.ListTools(t.Context(), nil); err != nil { // the server is connected by now
			t.Fatal(err)
		}
		for _, list := range []string{"tools", "prompts", "resources"} {
			add[list]("second")
			if got := <-changed; got != list {
				t.Errorf("notified that %s changed, want %s", got, list)
			}
		}
	})
}

type failing struct{ err error }

func (f failing) Open(context.Context, *mcpproxy.OpenOptions) (*mcpproxy.Conn, error) {
	return nil, f.err
}

func TestW24OneServerFailing(t *testing.T) {
	for _, era := range []string{legacy, modern} {
		t.Run(era, func(t *testing.T) {
			up := newServer(modern)
			addTool(up, "works", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return say("yes") })
			reports := make(chan string, 20)
			s := newDirect(t, &mcpproxy.Options{OnError: func(server string, err error) { reports <- server + ": " + err.Error() }},
				mcpproxy.Upstream{Name: "bad", Prefix: "bad", Opener: failing{errors.New("no such command")}},
				mcpproxy.Upstream{Name: "good", Prefix: "good", Opener: opener(up)})
			cs := connect(t, s, era, nil)
			res, err := cs.ListTools(t.Context(), nil)
			if err != nil || len(res.Tools) != 1 || res.Tools[0].Name != "good__works" {
				t.Fatalf("tools = %v, %v", res, err)
			}
			if got, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "good__works"}); err != nil || text(got) != "yes" {
				t.Errorf("call = %v, %v", got, err)
			}
			if got := <-reports; got != "bad: connect to bad: no such command" {
				t.Errorf("report = %q", got)
			}
			var e *jsonrpc.Error
			if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "bad__x"}); !errors.As(err, &e) || e.Code != jsonrpc.CodeInvalidParams {
				t.Errorf("unknown tool: %v", err)
			}
		})
	}
}

// What several servers have is merged in their order, under names that are
// unique, and goes back to whose it is.
func TestSeveralServers(t *testing.T) {
	make := func(name string) *mcp.Server {
		s := newServer(modern)
		addTool(s, "same", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return say(name) })
		s.AddPrompt(&mcp.Prompt{Name: "greet"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Description: name}, nil
		})
		read := func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Params.URI, Text: name}}}, nil
		}
		s.AddResource(&mcp.Resource{URI: "test://same", Name: "same"}, read)
		s.AddResource(&mcp.Resource{URI: "test://" + name, Name: name}, read)
		s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: name + "://{id}", Name: name}, read)
		return s
	}
	for _, era := range []string{legacy, modern} {
		t.Run(era, func(t *testing.T) {
			s := newDirect(t, nil,
				mcpproxy.Upstream{Name: "one", Opener: opener(make("one"))},
				mcpproxy.Upstream{Name: "two", Opener: opener(make("two"))},
				mcpproxy.Upstream{Name: "three", Prefix: "three.x", Opener: opener(make("three"))})
			cs := connect(t, s, era, nil)
			tools, err := cs.ListTools(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, tool := range tools.Tools {
				res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: tool.Name})
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, tool.Name[:min(len(tool.Name), 13)]+"="+text(res))
			}
			if want := []string{"same=one", "two__same=two", "three_x__same=three"}; !slices.Equal(got, want) {
				t.Errorf("tools = %q, want %q", got, want)
			}
			if res, err := cs.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "two__greet"}); err != nil || res.Description != "two" {
				t.Errorf("prompt = %v, %v", res, err)
			}
			resources, err := cs.ListResources(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			got = nil
			for _, r := range resources.Resources {
				res, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: r.URI})
				if err != nil || res.Contents[0].URI != r.URI {
					t.Fatalf("read %s: %v, %v", r.URI, res, err)
				}
				got = append(got, r.URI+"="+res.Contents[0].Text)
			}
			slices.Sort(got)
			want := []string{"mcp+three__resource:test://same=three", "mcp+two__resource:test://same=two", "test://one=one", "test://same=one", "test://three=three", "test://two=two"}
			if !slices.Equal(got, want) {
				t.Errorf("resources = %q, want %q", got, want)
			}
			if res, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "three://7"}); err != nil || res.Contents[0].Text != "three" {
				t.Errorf("template = %v, %v", res, err)
			}
			done, err := cs.Complete(t.Context(), &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: "two__greet"}, Argument: mcp.CompleteParamsArgument{Name: "a"}})
			if err != nil || !slices.Equal(done.Completion.Values, []string{"greet"}) {
				t.Errorf("completion = %v, %v", done, err)
			}
		})
	}
}
