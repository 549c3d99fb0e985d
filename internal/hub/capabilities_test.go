package hub_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/usage"
)

type planning struct {
	Skills []string `json:"available_skills"`
	Tools  []string `json:"available_mcp_tools"`
	Hints  struct {
		Capabilities []struct {
			ID               string
			Kind             string
			CostHint         string `json:"cost_hint"`
			LatencyHint      string `json:"latency_hint"`
			Safety           string `json:"safety_level"`
			RequiresApproval bool   `json:"requires_approval"`
		}
	} `json:"planning_hints"`
	Problems []string
}

// A client may read the members of the answer without a check for null.
func TestCapabilitiesWithoutProblems(t *testing.T) {
	n := team(t)
	_, token := n.newcomer(t, "ada", account.AllScopes)
	r := caller{node: n, token: token}.send(t, "GET", "/api/v1/capabilities", nil).want(t, 200)
	if strings.Contains(r.body, "null") || !strings.Contains(r.body, `"problems":[]`) {
		t.Errorf("without problems: %s", r.body)
	}
}

// The cost of loading a skill has the price of the hub's own model, except for agents.
func TestCapabilitiesHavePrices(t *testing.T) {
	for _, known := range []bool{true, false} {
		n := start(t, hub.Options{Price: func(string) (usage.Price, bool) { return usage.Price{Input: 3000}, known }})
		n.anybody().send(t, "POST", "/api/v1/skills", zipped(t, "pdf", "Read the PDF.")).want(t, 201)
		var plan planning
		n.anybody().send(t, "GET", "/api/v1/capabilities", nil).want(t, 200).into(t, &plan)
		for _, c := range plan.Hints.Capabilities {
			if !strings.Contains(c.CostHint, " tokens") || strings.Contains(c.CostHint, " tokens, about $") != known {
				t.Errorf("with a price (%v), %s costs %q", known, c.ID, c.CostHint)
			}
		}
		if len(plan.Skills) == 0 {
			t.Error("there are no skills")
		}
		n.anybody().apply(t, "", weiboGhost).want(t, 200) // an agent may have another model
		body := n.anybody().send(t, "GET", "/api/v1/capabilities?kind=Ghost&name=weibo", nil).want(t, 200).body
		if !strings.Contains(body, " tokens") || strings.Contains(body, "$") {
			t.Errorf("an agent's capabilities are %s", body)
		}
	}
}

// Latency hints of tools are measured over the user's own calls, on any node. Refused
// calls do not count.
func TestCapabilitiesHaveMeasuredLatencies(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, address string) {
		a, b, _, _ := twoNodes(t, address)
		_, token := a.newcomer(t, "ada", account.AllScopes)
		_, other := a.newcomer(t, "ben", account.AllScopes)
		hints := func(n *node, token string) map[string]string {
			t.Helper()
			var plan planning
			caller{node: n, token: token}.send(t, "GET", "/api/v1/capabilities?connect=true", nil).want(t, 200).into(t, &plan)
			out := map[string]string{}
			for _, c := range plan.Hints.Capabilities {
				out[c.ID] = c.LatencyHint
			}
			return out
		}
		cs := connectMCP(t, a.URL+"/mcp", token, olderEra, nil)
		for range 3 {
			through(t, cs, "shop__look")
		}
		through(t, cs, "till__pay") // needs approval
		measured := regexp.MustCompile(`^p50 \S+ m?s, p95 \S+ m?s over 3 calls$`)
		for _, n := range []*node{a, b} {
			got := hints(n, token)
			if !measured.MatchString(got["mcp.shop.look"]) || strings.Contains(got["mcp.till.pay"], "over") {
				t.Errorf("the hints are %q", got)
			}
		}
		if got := hints(a, other); strings.Contains(got["mcp.shop.look"], "over") {
			t.Errorf("another user's hint is %q", got["mcp.shop.look"])
		}
	})
}

// L12: planning hints list skills and tools with their safety levels and approvals. L13:
// a call is decided again and recorded.
func TestL12L13PlanningThenExecution(t *testing.T) {
	n, shop := withShop(t)
	p, token := n.newcomer(t, "ada", account.AllScopes)
	n.put(t, p, ownPlace(p), "pdf", "Read the PDF.")
	me := caller{node: n, token: token}
	var plan planning
	me.send(t, "GET", "/api/v1/capabilities?connect=true", nil).want(t, 200).into(t, &plan)
	if !slices.Contains(plan.Skills, "pdf") || !slices.Contains(plan.Tools, "shop__look") || !slices.Contains(plan.Tools, "till__pay") {
		t.Errorf("there are the skills %v and the tools %v", plan.Skills, plan.Tools)
	}
	asks := map[string]bool{}
	for _, c := range plan.Hints.Capabilities {
		asks[c.ID] = c.RequiresApproval
	}
	for id, want := range map[string]bool{"skill.pdf": false, "mcp.shop.look": false, "mcp.till.pay": true} {
		if got, there := asks[id]; got != want || !there {
			t.Errorf("%s: asks %v, there %v", id, got, there)
		}
	}
	if got := decisionsBy(t, n, p, "tool.call"); len(got) != 0 {
		t.Errorf("planning is recorded as calls: %v", got)
	}
	cs := connectMCP(t, n.URL+"/mcp", token, olderEra, nil)
	if res := through(t, cs, "till__pay"); !res.IsError || shop.paid.Load() != 0 {
		t.Errorf("what is to be asked about is done: %q", textOfResult(res))
	}
	if res := through(t, cs, "till__steal"); !res.IsError {
		t.Errorf("what there is not is done: %q", textOfResult(res))
	}
	through(t, cs, "shop__look")
	if got := decisionsBy(t, n, p, "tool.call"); !slices.Equal(got, []string{"asked", "denied", "allowed"}) {
		t.Errorf("the audit log has %v", got)
	}
}

func TestL12GhostPlanning(t *testing.T) {
	n, _ := withShop(t)
	p, token := n.newcomer(t, "ada", account.ScopeChat)
	n.put(t, p, ownPlace(p), "pdf", "Read the PDF.")
	n.put(t, n.root(t), store.Public, "csv", "Read the CSV.") // one of his own would be a default of his
	n.write(t, p, weiboGhost)
	me := caller{node: n, token: token}
	var plan planning
	me.send(t, "GET", "/api/v1/capabilities?kind=Ghost&name=weibo", nil).want(t, 200).into(t, &plan)
	if !slices.Equal(plan.Skills, []string{"pdf"}) {
		t.Errorf("the skills are %v", plan.Skills)
	}
	for _, query := range []string{"?kind=Ghost", "?name=weibo", "?namespace=public"} {
		me.send(t, "GET", "/api/v1/capabilities"+query, nil).wantProblem(t, 422, "invalid")
	}
	me.send(t, "GET", "/api/v1/capabilities?kind=Ghost&name=none", nil).wantProblem(t, 404, "not_found")
}
