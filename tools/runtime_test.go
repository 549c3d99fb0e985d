package tools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/toolset"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/tools"
)

// newWaterServer returns a server over HTTP with a tool that reads and one that
// does not.
func newWaterServer() *httptest.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "water", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "high", Description: "High water.", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "12:10"}}}, nil, nil
		})
	mcp.AddTool(s, &mcp.Tool{Name: "set_alarm", Description: "Set an alarm."},
		func(_ context.Context, _ *mcp.CallToolRequest, in struct{ At string }) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "alarm at " + in.At}}}, nil, nil
		})
	return httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: true}))
}

// thisMachine lets servers of skills connect to the test's own servers.
var thisMachine = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// A server of a skill connects once the current version of the skill is
// approved, and ends when the approval is revoked.
func TestForRuntimeNeedsApproval(t *testing.T) {
	server := newWaterServer()
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	grants := policy.NewMemoryStore()
	rt, err := loadout.New(t.Context(), &loadout.Options{
		Sources: []catalog.Source{catalog.NewFS("mine", catalog.User, fstest.MapFS{"tides/SKILL.md": {Data: []byte(skillText("tides", "mcpServers: {water: {url: "+server.URL+"}}"))}})},
		Scripts: &loadout.Scripts{Grants: grants, ReadServers: tools.ReadServers},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	set := tools.ForRuntime(rt, &tools.Options{
		PrivateNetworks: thisMachine,
		SkillServers:    tools.SkillServers{HowToApprove: func(*loadout.RefusedError) string { return "press the button" }},
	})
	t.Cleanup(func() { set.Close() })
	call := &tools.Call{Name: "tides_water__high", Arguments: json.RawMessage(`{}`)}
	_, err = set.Call(t.Context(), call)
	if err == nil || !strings.Contains(err.Error(), "the user can press the button: its MCP servers and providers are not started: not approved") {
		t.Errorf("without approval: %v", err)
	}

	r, err := rt.ReadApprovalRequest(t.Context(), "tides")
	if err != nil || len(r.Services) != 1 || len(r.Services[0].Hosts) != 1 || "http://"+r.Services[0].Hosts[0] != server.URL {
		t.Fatalf("the request is %+v, %v, want the host %s", r, err, server.URL)
	}
	g, err := grants.Put(t.Context(), policy.Grant{Principal: policy.LocalUser(), By: policy.LocalUser(), Scope: policy.Always,
		Subject: r.Digest, Name: "tides", Permissions: r.Requested.Permissions()})
	if err != nil {
		t.Fatal(err)
	}
	res, err := set.Call(t.Context(), call)
	if err != nil || res.Content[0].(*mcp.TextContent).Text != "12:10" {
		t.Fatalf("approved: %+v, %v", res, err)
	}
	if _, err := grants.Revoke(t.Context(), g.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := set.Call(t.Context(), call); err == nil {
		t.Error("called after the approval was revoked")
	}
}

// A skill gets platform values once the user approves sending them to the host
// of its server. If that host changes, the skill needs a new approval.
func TestPlatformValuesAreApprovedWithTheirTarget(t *testing.T) {
	first, second := newWaterServer(), newWaterServer()
	t.Cleanup(func() { first.CloseClientConnections(); first.Close(); second.CloseClientConnections(); second.Close() })
	values := map[string]string{"backend_url": first.URL, "task_token": "t0ken"}
	grants := policy.NewMemoryStore()
	v := tools.Variables{
		Platform: func(name string) (string, bool) { value, ok := values[name]; return value, ok },
		Names:    func(string) []string { return slices.Sorted(maps.Keys(values)) },
	}
	const front = `mcpServers: {water: {type: http, url: "${{backend_url}}/mcp", headers: {Authorization: "Bearer ${{task_token}}"}}}`
	open := func() (*loadout.Runtime, *tools.Set) {
		rt, err := loadout.New(t.Context(), &loadout.Options{
			Sources: []catalog.Source{catalog.NewFS("mine", catalog.User, fstest.MapFS{"tides/SKILL.md": {Data: []byte(skillText("tides", front))}})},
			Scripts: &loadout.Scripts{Grants: grants, ReadServers: tools.ReadServersWith(v)},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { rt.Close() })
		set := tools.ForRuntime(rt, &tools.Options{PrivateNetworks: thisMachine, Variables: v})
		t.Cleanup(func() { set.Close() })
		return rt, set
	}
	approve := func(rt *loadout.Runtime, host string) {
		t.Helper()
		r, err := rt.ReadApprovalRequest(t.Context(), "tides")
		if err != nil {
			t.Fatal(err)
		}
		for _, variable := range r.Services[0].Variables {
			if variable.Target != host || !variable.HasValue {
				t.Errorf("the request shows %+v, want the host %s", variable, host)
			}
		}
		if len(r.Services[0].Hosts) != 1 || r.Services[0].Hosts[0] != host || len(r.Needs) != 2 {
			t.Errorf("the request shows %+v, needs %v, want the host %s", r.Services[0], r.Needs, host)
		}
		if _, err := grants.Put(t.Context(), policy.Grant{Principal: policy.LocalUser(), By: policy.LocalUser(), Scope: policy.Always,
			Subject: r.Digest, Name: "tides", Permissions: r.Requested.Permissions(), Needs: r.Needs}); err != nil {
			t.Fatal(err)
		}
	}
	call := &tools.Call{Name: "tides_water__high", Arguments: json.RawMessage(`{}`)}

	rt, set := open()
	approve(rt, first.URL)
	if res, err := set.Call(t.Context(), call); err != nil || res.Content[0].(*mcp.TextContent).Text != "12:10" {
		t.Fatalf("approved: %+v, %v", res, err)
	}

	values["backend_url"] = second.URL
	rt, set = open()
	_, err := set.Call(t.Context(), call)
	if want := "changed since it was approved: sending backend_url to " + second.URL + " was not approved"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("another host: %v, want %s", err, want)
	}
	approve(rt, second.URL)
	if _, err := set.Call(t.Context(), call); err != nil {
		t.Errorf("the other host was approved: %v", err)
	}

	delete(values, "task_token")
	rt, _ = open()
	if r, err := rt.ReadApprovalRequest(t.Context(), "tides"); err != nil || !r.Services[0].Variables[0].HasValue || r.Services[0].Variables[1].HasValue || len(r.Needs) != 1 {
		t.Errorf("without a value: %+v, %v", r, err)
	}
}

// A later set knows the tools of a server before it connects.
func TestCacheDir(t *testing.T) {
	rt, err := loadout.New(t.Context(), &loadout.Options{Sources: []catalog.Source{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	server := mcp.NewServer(&mcp.Implementation{Name: "charts", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "bar"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{}, nil, nil
	})
	dir := t.TempDir()
	for _, tt := range []struct {
		dir     string
		connect bool
		want    int // number of known tools
	}{{dir, false, -1}, {dir, true, 1}, {dir, false, 1}, {"", false, -1}} {
		set := tools.ForRuntime(rt, &tools.Options{InProcess: map[string]*mcp.Server{"charts": server}, CacheDir: tt.dir})
		if tt.connect {
			if failed := set.Connect(t.Context(), "charts"); failed["charts"] != "" {
				t.Errorf("connect: %v", failed)
			}
		}
		if got := set.Summaries()[0].Tools; got != tt.want {
			t.Errorf("%+v: %d tools known", tt, got)
		}
		set.Close()
	}
}

// Access to the parts of another type panics with the type.
func TestToolsetOfOtherType(t *testing.T) {
	for want, use := range map[string]func(){
		"options have type *int, want *tools.Options": func() { toolset.With(new(int), toolset.Options{}) },
		"set has type *os.File, want *tools.Set":      func() { toolset.Pool(os.Stdout) },
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, want) {
					t.Errorf("panic %q, want %q", got, want)
				}
			}()
			use()
		}()
	}
}

// Commands of the user's servers start only if that is enabled.
func TestOwnCommandsAreDisabledByDefault(t *testing.T) {
	rt, err := loadout.New(t.Context(), &loadout.Options{Sources: []catalog.Source{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	for _, tt := range []struct {
		start bool
		want  string
	}{
		{false, "set StartCommands in tools.Options"},
		{true, "no-such-program"},
	} {
		set := tools.ForRuntime(rt, &tools.Options{StartCommands: tt.start, Own: []*tools.ServerConfig{{Name: "own", Command: "no-such-program"}}})
		if got := set.Connect(t.Context(), "own")["own"]; !strings.Contains(got, tt.want) {
			t.Errorf("%q, want %q", got, tt.want)
		}
		set.Close()
	}
}
