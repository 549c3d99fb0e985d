//lint:file-ignore SA1019 legacy clients and servers still use deprecated features

package mcpproxy_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/mcpproxy"
	"github.com/loadout-dev/loadout/mcpserver"
)

// One endpoint serves both eras, and checks what all of ours check.
func TestHandler(t *testing.T) {
	up := newServer(legacy)
	addAsking(up, legacy)
	s := newDirect(t, nil, mcpproxy.Upstream{Name: "up", Opener: opener(up)})
	srv := httptest.NewServer(s.Handler(&mcpserver.HTTPOptions{Token: "sesame", Hosts: []string{"127.0.0.1"}}))
	defer srv.Close()
	defer srv.CloseClientConnections()
	client := &http.Client{Transport: bearer{srv.Client().Transport}}
	for _, era := range []string{legacy, modern} {
		t.Run(era, func(t *testing.T) {
			c := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, answering())
			c.AddRoots(&mcp.Root{URI: "file:///work"})
			cs, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: srv.URL + "/mcp", HTTPClient: client}, &mcp.ClientSessionOptions{ProtocolVersion: era})
			if err != nil {
				t.Fatal(err)
			}
			defer cs.Close()
			if got := cs.InitializeResult().ProtocolVersion; got != era {
				t.Errorf("version = %s, want %s", got, era)
			}
			res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "ask"})
			if err != nil || text(res) != "acceptblue said file:///work" {
				t.Errorf("call = %v, %v", res, err)
			}
		})
	}
	for _, tt := range []struct {
		name, path, host, token string
		want                    int
	}{
		{"foreign host", "/mcp", "evil.example", "sesame", http.StatusForbidden},
		{"foreign host of health", "/healthz", "evil.example", "", http.StatusForbidden},
		{"no token", "/mcp", "", "", http.StatusUnauthorized},
		{"health", "/healthz", "", "", http.StatusOK},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+tt.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = tt.host
		if tt.token != "" {
			req.Header.Set("Authorization", "Bearer "+tt.token)
		}
		res, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != tt.want {
			t.Errorf("%s: %s, want %d", tt.name, res.Status, tt.want)
		}
	}
}

type bearer struct{ next http.RoundTripper }

func (b bearer) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer sesame")
	return b.next.RoundTrip(req)
}

// forms is a server of the older era whose tool asks, and says how that ended.
func forms() (*mcp.Server, chan error) {
	up, ended := newServer(legacy), make(chan error, 10)
	addTool(up, "ask", func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		_, err := req.Session.Elicit(ctx, inputRequests()["form"].(*mcp.ElicitParams))
		ended <- err
		return say("")
	})
	return up, ended
}

func byHand() *mcp.ClientOptions {
	o := answering()
	o.MultiRoundTrip = &mcp.MultiRoundTripOptions{Disabled: true}
	return o
}

// A call whose client does not come back is ended, and its handle with it.
func TestPendingCallExpires(t *testing.T) {
	up, ended := forms()
	s := newDirect(t, &mcpproxy.Options{AnswerTimeout: time.Millisecond}, mcpproxy.Upstream{Name: "up", Opener: opener(up)})
	cs := connect(t, s, modern, byHand())
	res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "ask"})
	if err != nil || !res.NeedsInput() {
		t.Fatal(res, err)
	}
	if err := <-ended; err == nil {
		t.Error("the server got an answer that nobody gave")
	}
	var e *jsonrpc.Error
	if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "ask", RequestState: res.RequestState}); !errors.As(err, &e) || !strings.Contains(e.Message, "expired") {
		t.Errorf("after its end: %v", err)
	}
}

func TestPendingCallLimit(t *testing.T) {
	up, ended := forms()
	s := newDirect(t, &mcpproxy.Options{MaxPending: 1}, mcpproxy.Upstream{Name: "up", Opener: opener(up)})
	cs := connect(t, s, modern, byHand())
	if res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "ask"}); err != nil || !res.NeedsInput() {
		t.Fatal(res, err)
	}
	var e *jsonrpc.Error
	if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "ask"}); !errors.As(err, &e) || !strings.Contains(e.Message, "too many calls are waiting for answers") {
		t.Errorf("one too many: %v", err)
	}
	if err := <-ended; err == nil {
		t.Error("the server got an answer that nobody gave")
	}
}

// A server that goes away is named in the result of the call, and is connected
// again for the next.
func TestServerDisconnects(t *testing.T) {
	eachEra(t, func(t *testing.T, client, server string) {
		up := newServer(server)
		addTool(up, "live", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return say("yes") })
		kill := make(chan func(), 1)
		s := newDirect(t, nil, mcpproxy.Upstream{Name: "up", Opener: mcpproxy.NewTransportOpener(func(context.Context) (mcp.Transport, error) {
			in, toServer := io.Pipe()
			out, toClient := io.Pipe()
			_, err := up.Connect(context.Background(), &mcp.IOTransport{Reader: in, Writer: toClient}, nil)
			select {
			case kill <- func() { toServer.Close(); toClient.Close() }: // as a process that dies
			default:
			}
			return &mcp.IOTransport{Reader: out, Writer: toServer}, err
		}, "")})
		cs := connect(t, s, client, nil)
		if res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "live"}); err != nil || text(res) != "yes" {
			t.Fatal(res, err)
		}
		(<-kill)()
		for { // until the end has been noticed
			res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "live"})
			if err != nil {
				t.Fatal(err)
			}
			if !res.IsError {
				break
			}
			if !strings.Contains(text(res), "live of server up failed") {
				t.Fatalf("result = %q", text(res))
			}
		}
	})
}

// A subscription that a server refuses after it was connected again is reported.
func TestRefusedResubscriptionIsReported(t *testing.T) {
	var refuse atomic.Bool
	up := mcp.NewServer(&mcp.Implementation{Name: "fixture", Version: "1"}, &mcp.ServerOptions{
		SupportedProtocolVersions: []string{legacy},
		SubscribeHandler: func(context.Context, *mcp.SubscribeRequest) error {
			if refuse.Load() {
				return errors.New("no room")
			}
			return nil
		},
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})
	up.AddResource(&mcp.Resource{URI: "test://a", Name: "a"}, nil)
	kill := make(chan func(), 10)
	reported := make(chan string, 10)
	s := newDirect(t, &mcpproxy.Options{OnError: func(_ string, err error) {
		if strings.HasPrefix(err.Error(), "resubscribe to test://a: ") {
			reported <- err.Error()
		}
	}},
		mcpproxy.Upstream{Name: "up", Opener: mcpproxy.NewTransportOpener(func(context.Context) (mcp.Transport, error) {
			in, toServer := io.Pipe()
			out, toClient := io.Pipe()
			ss, err := up.Connect(context.Background(), &mcp.IOTransport{Reader: in, Writer: toClient}, nil)
			kill <- func() {
				toServer.Close()
				toClient.Close()
				ss.Wait()
			}
			return &mcp.IOTransport{Reader: out, Writer: toServer}, err
		}, "")})
	updated := make(chan struct{}, 1)
	cs := connect(t, s, modern, &mcp.ClientOptions{ResourceUpdatedHandler: func(context.Context, *mcp.ResourceUpdatedNotificationRequest) {
		select {
		case updated <- struct{}{}:
		default:
		}
	}})
	if err := cs.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "test://a"}); err != nil {
		t.Fatal(err)
	}
	for active := false; !active; {
		up.ResourceUpdated(t.Context(), &mcp.ResourceUpdatedNotificationParams{URI: "test://a"})
		select {
		case <-updated:
			active = true
		case <-time.After(time.Millisecond):
		}
	}
	refuse.Store(true)
	(<-kill)()
	for { // until the end has been noticed
		cs.ListResources(t.Context(), nil)
		select {
		case got := <-reported:
			if !strings.Contains(got, "no room") {
				t.Errorf("report = %q", got)
			}
			return
		case <-time.After(time.Millisecond):
		}
	}
}
