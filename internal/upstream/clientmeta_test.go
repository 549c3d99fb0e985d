//lint:file-ignore SA1019 legacy clients and servers still use deprecated features

package upstream_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/upstream"
)

const (
	traceParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	traceState  = "vendor=b7ad6b7169203331,other@system=x"
)

func TestForwardedMeta(t *testing.T) {
	type object = map[string]any
	for _, tt := range []struct {
		name string
		meta object
		want mcp.Meta
	}{
		{"nothing", nil, mcp.Meta{}},
		{"a progress token", object{"progressToken": "mine"}, mcp.Meta{"progressToken": "mine"}},
		{"a progress token that is an object", object{"progressToken": object{"path": "/home/ada"}}, mcp.Meta{}},
		{"a trace", object{"traceparent": traceParent, "tracestate": traceState, "baggage": "user=ada"}, mcp.Meta{"traceparent": traceParent, "tracestate": traceState}},
		{"a path as trace", object{"traceparent": "/home/ada", "tracestate": traceState}, mcp.Meta{}},
		{"a state without a trace", object{"tracestate": traceState}, mcp.Meta{}},
		{"text as state", object{"traceparent": traceParent, "tracestate": "the user is ada"}, mcp.Meta{"traceparent": traceParent}},
		{"a long state", object{"traceparent": traceParent, "tracestate": "a=" + strings.Repeat("x", 600)}, mcp.Meta{"traceparent": traceParent}},
		{"what an agent knows", object{"x-codex-turn-metadata": object{"workspaces": object{"/home/ada/work": object{"associated_remote_urls": object{"origin": "git@github.com:ada/secret"}, "latest_git_commit_hash": "abc"}}},
			"threadId": "t", "loadout/config": object{"a": 1}, mcp.MetaKeyClientInfo: object{"name": "codex"}, mcp.MetaKeyProtocolVersion: "2026-07-28", mcp.MetaKeySubscriptionID: "1"}, mcp.Meta{}},
		{"capabilities", object{mcp.MetaKeyClientCapabilities: object{"elicitation": object{"form": object{"at": "/home"}, "url": object{}, "x": 1}, "sampling": object{}, "roots": object{"listChanged": true},
			"experimental": object{"path": "/home"}, "extensions": object{"a/b": object{}}}},
			mcp.Meta{mcp.MetaKeyClientCapabilities: object{"elicitation": object{"form": object{}, "url": object{}}, "roots": object{"listChanged": true}}}},
		{"typed capabilities", object{mcp.MetaKeyClientCapabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{}, Experimental: object{"a": 1}}},
			mcp.Meta{mcp.MetaKeyClientCapabilities: object{"elicitation": object{}, "roots": object{}}}},
	} {
		if diff := cmp.Diff(tt.want, upstream.ForwardedMeta(tt.meta, "elicitation", "roots")); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", tt.name, diff)
		}
	}
}

// A server gets no text of the client, whatever the client writes where.
func FuzzForwardedMeta(f *testing.F) {
	f.Add("traceparent", traceParent)
	f.Add("tracestate", traceState)
	f.Add("traceparent", "00-"+strings.Repeat("g", 32)+"-b7ad6b7169203331-01")
	f.Add("anything", "/home/ada")
	f.Fuzz(func(t *testing.T, key, value string) {
		got := upstream.ForwardedMeta(map[string]any{key: value})
		for k, v := range got {
			if !slices.Contains([]string{"progressToken", "traceparent"}, k) || v != value {
				t.Errorf("%q: %q forwarded as %q: %q", key, value, k, v)
			}
		}
		with := upstream.ForwardedMeta(map[string]any{"traceparent": traceParent, "tracestate": value})
		if s, ok := with["tracestate"].(string); ok && (len(s) > 512 || !strings.Contains(s, "=")) {
			t.Errorf("forwarded the state %q", s)
		}
		if n := len(slices.Collect(maps.Keys(with))); n > 2 {
			t.Errorf("%d entries", n)
		}
	})
}

func TestForwardedResponses(t *testing.T) {
	secret := mcp.Meta{"path": "/home/ada"}
	got := upstream.ForwardedResponses(mcp.InputResponseMap{
		"form":  &mcp.ElicitResult{Meta: secret, Action: "accept", Content: map[string]any{"a": "b"}},
		"roots": &mcp.ListRootsResult{Meta: secret, Roots: []*mcp.Root{{Meta: secret, Name: "work", URI: "file:///work"}}},
		//lint:ignore SA1019 clients may still send it
		"model": &mcp.CreateMessageWithToolsResult{Meta: secret, Model: "m", Content: []mcp.Content{&mcp.TextContent{Text: "hi"}}},
	})
	want := mcp.InputResponseMap{
		"form":  &mcp.ElicitResult{Action: "accept", Content: map[string]any{"a": "b"}},
		"roots": &mcp.ListRootsResult{Roots: []*mcp.Root{{Name: "work", URI: "file:///work"}}},
		//lint:ignore SA1019 clients may still send it
		"model": &mcp.CreateMessageWithToolsResult{Model: "m", Content: []mcp.Content{&mcp.TextContent{Text: "hi"}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if upstream.ForwardedResponses(nil) != nil {
		t.Error("no responses became some")
	}
}
