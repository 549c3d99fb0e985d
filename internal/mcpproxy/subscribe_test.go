package mcpproxy_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/mcpproxy"
)

// A server gets a subscription only if a client asks for one, and once: a client
// that repeats the request in a loop, even a refused one, does not reach it.
func TestSubscriptionsAreBounded(t *testing.T) {
	var asked atomic.Int32
	up := mcp.NewServer(&mcp.Implementation{Name: "fixture", Version: "1"}, &mcp.ServerOptions{
		SupportedProtocolVersions: []string{legacy},
		SubscribeHandler: func(_ context.Context, req *mcp.SubscribeRequest) error {
			asked.Add(1)
			if strings.HasSuffix(req.Params.URI, "refused") {
				return errors.New("no room")
			}
			return nil
		},
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})
	up.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "test://{id}", Name: "x"}, nil)
	cs := connect(t, newDirect(t, nil, mcpproxy.Upstream{Name: "up", Opener: opener(up)}), legacy, nil)
	if _, err := cs.ListResourceTemplates(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	subscribe := func(uri string) error { return cs.Subscribe(t.Context(), &mcp.SubscribeParams{URI: uri}) }
	expect := func(when string, n int32) {
		t.Helper()
		if got := asked.Swap(0); got != n {
			t.Errorf("%s: the server got %d subscriptions, want %d", when, got, n)
		}
	}
	expect("before a client asks", 0)
	for range 50 {
		if err := subscribe("test://a"); err != nil {
			t.Fatal(err)
		}
	}
	expect("the same resource", 1)
	for range 50 {
		if err := subscribe("test://refused"); err == nil || !strings.Contains(err.Error(), "no room") {
			t.Fatalf("a refused subscription: %v", err)
		}
	}
	expect("a refused one", 1)
	var failed error
	for i := range 1100 {
		if err := subscribe(fmt.Sprintf("test://r%d", i)); err != nil {
			failed = err
		}
	}
	expect("many resources", 999)
	if failed == nil || !strings.Contains(failed.Error(), "too many subscriptions to server up (limit 1000)") {
		t.Errorf("beyond the limit: %v", failed)
	}
	if err := cs.Unsubscribe(t.Context(), &mcp.UnsubscribeParams{URI: "test://a"}); err != nil {
		t.Fatal(err)
	}
	if err := subscribe("test://again"); err != nil {
		t.Errorf("after an unsubscription: %v", err)
	}
	expect("after an unsubscription", 1)
}
