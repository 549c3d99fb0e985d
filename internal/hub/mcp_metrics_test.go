package hub_test

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/users"
)

// counts are the numbers of some metrics of a node that are not 0, by name and labels.
func (n *node) counts(t *testing.T, token string, names ...string) map[string]string {
	t.Helper()
	out := map[string]string{}
	body := caller{node: n, token: token}.send(t, "GET", "/metrics", nil).want(t, 200).body
	for _, m := range regexp.MustCompile(`(?m)^(\w+)(\{.*\})? (\S+)$`).FindAllStringSubmatch(body, -1) {
		for _, name := range names {
			if m[1] == name && m[3] != "0" {
				out[strings.TrimPrefix(m[1], "loadout_")+m[2]] = m[3]
			}
		}
	}
	return out
}

func TestMCPMetrics(t *testing.T) {
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			n, _ := withShop(t)
			p, token := n.newcomer(t, "ada", account.ScopeMCP)
			operator, _, err := account.NewTokens(users.NewTokenStore(n.DB())).Create(t.Context(), n.root(t), "test", account.ScopeAdmin, time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			n.put(t, p, ownPlace(p), "pdf", "Read the PDF.")
			deaf := connectMCP(t, n.URL+"/mcp", token, era, nil)
			said := "once"
			asked := connectMCP(t, n.URL+"/mcp", token, era, &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				return &mcp.ElicitResult{Action: "accept", Content: args{"decision": said}}, nil
			}})
			callMCP(t, deaf, "load_skill", args{"name": "pdf"})  // ok, and a load
			callMCP(t, deaf, "load_skill", args{"name": "none"}) // error
			through(t, deaf, "shop__look")                       // ok
			through(t, deaf, "shop__none")                       // error
			through(t, deaf, "till__pay")                        // denied: no prompt is possible
			through(t, asked, "till__pay")                       // newer: ok
			said = "no"
			through(t, asked, "till__pay") // denied
			want := map[string]string{"skill_loads_total": "1", `tool_calls_total{outcome="ok"}`: "3", `tool_calls_total{outcome="error"}`: "2", `tool_calls_total{outcome="denied"}`: "2"}
			if era == olderEra { // no prompt without a session
				want[`tool_calls_total{outcome="ok"}`], want[`tool_calls_total{outcome="denied"}`] = "2", "3"
			}
			got := n.counts(t, operator, "loadout_skill_loads_total", "loadout_tool_calls_total")
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("want -, got +\n%s", diff)
			}
		})
	}
}
