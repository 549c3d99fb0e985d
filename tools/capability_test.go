package tools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/tools"
)

// inventory holds the names of capabilities, in order, and the problems.
type inventory struct{ Skills, Tools, Problems []string }

// hints returns the planning hints by ID.
func hints(t *testing.T, w *world, c *tools.Call) (inventory, map[string]tools.Capability) {
	t.Helper()
	hints, problems, err := w.Capabilities(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]tools.Capability{}
	p := inventory{Problems: problems}
	for _, k := range hints {
		all[k.ID] = k
		if k.Kind == "skill" {
			p.Skills = append(p.Skills, k.Name)
		} else {
			p.Tools = append(p.Tools, k.Name)
		}
	}
	if len(all) != len(hints) {
		t.Errorf("%d capabilities of %v and %v", len(hints), p.Skills, p.Tools)
	}
	return p, all
}

func TestL11Capabilities(t *testing.T) {
	w := newWorld(t, texts{
		"plain":  skillText("plain", "when_to_use: when it rains"),
		"brings": skillText("brings", bringsA),
		"closed": skillText("closed", bringsA),
		"people": skillText("people", "disable-model-invocation: true"),
	}, `mcpServers: {
  own: {command: own}, low: {command: low, safety: LOW, ask: true}, high: {command: high, safety: CRITICAL},
  odd: {command: odd}, denied: {command: denied}, never: {command: never}, unset: {url: "https://example.com/${NOT_SET}"}}`, func(o *tools.TestOptions, _ *world) {
		o.Rules, _ = policy.ParseRules([]string{"deny mcp.denied.*", "allow mcp.high.read_note", "ask mcp.own.write_note"})
		o.IsPermitted = func(_ context.Context, e *catalog.Entry) bool { return e.Name != "closed" }
		o.Own[3].Safety = "HARMLESS" // while the store is unreadable
	})
	for _, name := range []string{"own", "low", "high", "odd", "denied"} {
		if wrong := w.Connect(t.Context(), name); len(wrong) > 0 {
			t.Fatal(wrong)
		}
	}
	p, all := hints(t, w, &tools.Call{Principal: policy.LocalUser()})
	if want := []string{"brings", "closed", "plain"}; !slices.Equal(p.Skills, want) {
		t.Errorf("skills %v, want %v", p.Skills, want)
	}
	for _, tt := range []struct {
		id    string
		level policy.Level
		asks  bool
	}{
		{"skill.plain", policy.Safe, false},
		{"skill.brings", policy.Medium, false},
		{"skill.closed", policy.Unknown, true},
		{"mcp.own.read_note", policy.Medium, false},
		{"mcp.own.write_note", policy.Medium, true},
		{"mcp.low.read_note", policy.Low, true},
		{"mcp.high.read_note", policy.Critical, false},
		{"mcp.high.write_note", policy.Critical, true},
		{"mcp.odd.read_note", policy.Unknown, true},
	} {
		k, ok := all[tt.id]
		if !ok || k.SafetyLevel != tt.level || k.RequiresApproval != tt.asks || k.Permission != tt.id || k.Name == "" || k.Description == "" {
			t.Errorf("%s: %+v", tt.id, k)
		}
		var in, out map[string]any
		if json.Unmarshal(k.InputSchema, &in) != nil || json.Unmarshal(k.OutputSchema, &out) != nil || in["type"] != "object" {
			t.Errorf("%s: schemas %s and %s", tt.id, k.InputSchema, k.OutputSchema)
		}
		if tool := strings.HasPrefix(tt.id, "mcp."); tool != (k.Kind == "mcp") || tool != slices.Contains(p.Tools, k.Name) {
			t.Errorf("%s: kind %s, name %s", tt.id, k.Kind, k.Name)
		}
	}
	if k := all["skill.plain"]; k.WhenToUse != "when it rains" || !strings.HasSuffix(k.CostHint, " tokens") {
		t.Errorf("%+v", k)
	}
	if len(all) != 3+8 { // without denied, never and unset
		t.Errorf("%d capabilities: %v", len(all), p.Tools)
	}
	if text := strings.Join(p.Problems, "\n"); len(p.Problems) != 3 || !strings.Contains(text, "brings_a was never connected") || !strings.Contains(text, "MCP server never was never connected") || !strings.Contains(text, "unset is not configured") {
		t.Errorf("problems %q", p.Problems)
	}
}

func TestL13PlanningAgreesWithTheCall(t *testing.T) {
	w := keeping(t, asking, policy.NewMemoryStore())
	w.Connect(t.Context(), "c")
	session := noteCall("x")
	session.Session = "s1"
	grant(t, w, session, policy.ForSession, false)
	robot := noteCall("x")
	robot.Principal = policy.Principal{ID: "robot", Kind: policy.AgentPrincipal}
	skills := noteCall("x")
	skills.Allow, _ = policy.AllowTools([]string{"c__write_note"})
	for name, c := range map[string]*tools.Call{"in its session": session, "in none": noteCall("x"), "for another": robot, "with a skill": skills} {
		_, all := hints(t, w, c)
		if hint := all["mcp.c.write_note"].RequiresApproval; hint != asked(t, w, c) {
			t.Errorf("%s: it is planned as asked %t, and called otherwise", name, hint)
		}
	}
}

// A skill's files are looked at, so that its scripts count.
func TestSkillsWithScriptsCanRun(t *testing.T) {
	w := newWorld(t, texts{"x": skillText("x", "")}, "", func(o *tools.TestOptions, _ *world) { o.IsPermitted = nil })
	if _, all := hints(t, w, &tools.Call{}); all["skill.x"].RequiresApproval {
		t.Error("instructions alone need approval")
	}
	e, err := w.rt.Catalog().Resolve(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(e.Path, "run.sh"), []byte("echo"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, all := hints(t, w, &tools.Call{}); !all["skill.x"].RequiresApproval || all["skill.x"].SafetyLevel != policy.Unknown {
		t.Error("a script that was not approved is planned as one that runs")
	}
}

// Planning hints list the available tools before the plan, including those that need
// approval.
func ExampleSet_Capabilities() {
	mail := mcp.NewServer(&mcp.Implementation{Name: "mail", Version: "1"}, nil)
	for _, t := range []*mcp.Tool{
		{Name: "read", Description: "Read mail.", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		{Name: "send", Description: "Send mail."},
	} {
		mcp.AddTool(mail, t, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{}, nil, nil
		})
	}
	ctx := context.Background()
	rt, err := loadout.New(ctx, &loadout.Options{Sources: []catalog.Source{catalog.NewFS("mine", catalog.User, reports)}})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	rules, _ := policy.ParseRules([]string{"ask mcp.mail.send"})
	set := tools.ForRuntime(rt, &tools.Options{Rules: rules, InProcess: map[string]*mcp.Server{"mail": mail}})
	defer set.Close()
	set.Connect(ctx, "")

	all, _, err := set.Capabilities(ctx, &tools.Call{Principal: policy.LocalUser()})
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range all {
		fmt.Println(c.ID, c.SafetyLevel, c.RequiresApproval)
	}
	// Output:
	// skill.report SAFE false
	// mcp.mail.read MEDIUM false
	// mcp.mail.send MEDIUM true
}
