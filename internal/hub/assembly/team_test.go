package assembly_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/internal/hub/assembly"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

const team = `
{apiVersion: loadout/v1, kind: Model, metadata: {name: small}, spec: {vendor: demo}}
---
{apiVersion: loadout/v1, kind: Ghost, metadata: {name: lead}, spec: {systemPrompt: "You lead."}}
---
{apiVersion: loadout/v1, kind: Ghost, metadata: {name: work}, spec: {systemPrompt: "You work."}}
---
{apiVersion: loadout/v1, kind: Bot, metadata: {name: lead}, spec: {ghostRef: {name: lead}}}
---
{apiVersion: loadout/v1, kind: Bot, metadata: {name: work}, spec: {ghostRef: {name: work}, modelRef: {name: small}}}
---
{apiVersion: loadout/v1, kind: Bot, metadata: {name: careful}, spec: {ghostRef: {name: work}, modelRef: {name: small}}}
---
{apiVersion: loadout/v1, kind: Team, metadata: {name: crew}, spec: {members: [{botRef: {name: lead}, role: leader}, {botRef: {name: work}}, {botRef: {name: careful}, requireConfirmation: true}]}}
`

// The leader of a team delegates a task to a member, who has its own model and
// instructions, works on the same files, and cannot delegate. The result names the
// member. If the member requires it, the user is prompted first.
func TestTeam(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := newFixture(t, db)
		w.apply(w.ada, team)
		id := w.begin(w.ada, "Team/default/crew")
		w.ask(w.ada, id, `call hand_task {"member":"work","task":"count the ships"}`, "result: work answers:", "small  heard: count the ships")
		w.ask(w.ada, id, `call hand_task {"member":"work","task":"call write_file {\"path\":\"a.txt\",\"content\":\"seven\"}"}`, "work answers:", "Wrote a.txt")
		w.ask(w.ada, id, `call read_file {"path":"a.txt"}`, "seven")
		w.ask(w.ada, id, `call hand_task {"member":"work","task":"call hand_task {}"}`, "work answers:", "There is no tool")
		w.ask(w.ada, id, `call hand_task {"member":"stranger","task":"x"}`, "Unknown member", "work, careful")

		for outcome, want := range map[approval.Outcome]string{approval.Declined: "declined to hand the task to careful", approval.Accepted: "careful answers:"} {
			got := answer(w.say(w.ada, w.begin(w.ada, "Team/default/crew"), `call hand_task {"member":"careful","task":"sail"}`, onlyNew(func(e chat.Event) {
				if !strings.Contains(e.ApprovalRequest.Message, "Hand this task to careful?") {
					t.Errorf("the user is asked %q", e.ApprovalRequest.Message)
				}
				must(t, w.chat.AnswerApproval(t.Context(), w.ada, e.ApprovalRequest.ID, approval.Answer{Outcome: outcome}))
			})))
			if !strings.Contains(got, want) {
				t.Errorf("after %s it answers %q", outcome, got)
			}
		}
	})
}

// W27: a built-in provider, like one in a process, requests a client action by a marked
// elicitation. The client's answer is the result of the tool.
func TestW27ProviderAction(t *testing.T) {
	draw := mcp.NewServer(&mcp.Implementation{Name: "draw", Version: "1"}, nil)
	mcp.AddTool(draw, &mcp.Tool{Name: "draw", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, func(_ context.Context, req *mcp.CallToolRequest, in struct{ Code string }) (*mcp.CallToolResult, any, error) {
		if res, ok := req.Params.InputResponses["client"].(*mcp.ElicitResult); ok {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf("drawn: %v %v %v", res.Content["success"], res.Content["result"], res.Content["error"])}}}, nil, nil
		}
		action := map[string]any{"skill_name": "diagrams", "action": "draw", "data": map[string]string{"code": in.Code}, "timeout": 2}
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"client": &mcp.ElicitParams{Message: "Draw it.",
			RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{}}, Meta: mcp.Meta{"loadout/action": action}}}}, nil, nil
	})
	w := sqlite(t, func(o *assembly.Options) { o.Providers = map[string]*mcp.Server{"draw": draw} })
	w.upload(w.ada, own(w.ada), "diagrams", tree("diagrams", "description: Draws.\ntools: [{name: draw, provider: draw}]", "Draw."))
	id := w.begin(w.ada, "")
	w.ask(w.ada, id, `call load_skill {"name":"diagrams"}`, "diagrams_draw__draw")
	line := `call call_tool {"name":"diagrams_draw__draw","arguments":{"Code":"a-->b"}}`
	got := answer(w.say(w.ada, id, line, onlyNew(func(e chat.Event) {
		if e.ApprovalRequest.Kind != approval.KindAction || !strings.Contains(string(e.ApprovalRequest.Payload), "a--\\u003eb") && !strings.Contains(string(e.ApprovalRequest.Payload), "a-->b") {
			t.Errorf("the client is asked %s", e.ApprovalRequest.Payload)
		}
		must(t, w.chat.Respond(t.Context(), w.ada, chat.Response{Request: e.ApprovalRequest.ID, Skill: "diagrams", Action: "draw", Success: true, Result: []byte(`"a picture"`)}))
	})))
	if !strings.Contains(got, "drawn: true a picture") {
		t.Errorf("it answers %q", got)
	}
	w.ask(w.ada, id, line, "drawn: false", "timed out")
}

// W27: so does a provider of a skill, in a process in the sandbox, once its code was
// approved.
func TestW27SkillProviderAction(t *testing.T) {
	w := sqlite(t, sandboxed(t))
	s := w.upload(w.ada, own(w.ada), "maps", tree("maps", "description: Draws maps.\nprovider: {module: provider, class: Maps}\ntools: [{name: draw, provider: maps, readOnly: true}]", "Draw.",
		"provider.py", `class Maps:
    provider_name = "maps"
    supported_tools = ["draw"]

    def create_tool(self, name, context, config=None):
        class Draw:
            name = "draw"
            description = "Draws."

            def _run(self):
                answer = context.ask("Draw it.", action={"action": "draw", "data": {"place": "harbour"}})
                return "drawn: %s" % answer["content"]["result"]
        return Draw()
`))
	id := w.begin(w.ada, "")
	w.ask(w.ada, id, `call load_skill {"name":"maps"}`, "its code is not reviewed yet")
	w.review(s, library.Approved)
	id = w.begin(w.ada, "")
	w.ask(w.ada, id, `call load_skill {"name":"maps"}`, "maps__draw")
	got := answer(w.say(w.ada, id, call("maps__draw"), onlyNew(func(e chat.Event) {
		if e.ApprovalRequest.Kind == approval.KindApproval {
			must(t, w.chat.AnswerApproval(t.Context(), w.ada, e.ApprovalRequest.ID, approval.Answer{Outcome: approval.Accepted}))
			return
		}
		if e.ApprovalRequest.Kind != approval.KindAction || !strings.Contains(string(e.ApprovalRequest.Payload), "harbour") || !strings.Contains(string(e.ApprovalRequest.Payload), `"skill_name":"maps"`) {
			t.Errorf("the client is asked %s", e.ApprovalRequest.Payload)
		}
		must(t, w.chat.Respond(t.Context(), w.ada, chat.Response{Request: e.ApprovalRequest.ID, Success: true, Result: []byte(`"a picture"`)}))
	})))
	if !strings.Contains(got, "drawn: a picture") {
		t.Errorf("it answers %q", got)
	}
}

// Twenty different diagrams need one decision on the hub: the review of the skill,
// whose tool runs in the sandbox and declares nothing, like those of Wegent.
func TestTwentyDiagramsNeedOneReview(t *testing.T) {
	w := sqlite(t, sandboxed(t))
	s := w.upload(w.ada, own(w.ada), "diagrams", tree("diagrams", "description: Draws diagrams.\nprovider: {module: provider, class: Diagrams}\ntools: [{name: render, provider: diagrams}]", "Draw.",
		"provider.py", `from langchain_core.tools import BaseTool
from chat_shell.skills import SkillToolProvider

class Render(BaseTool):
    name: str = "render"
    description: str = "Checks a diagram."

    def _run(self, code: str) -> str:
        return "valid: %s" % code

class Diagrams(SkillToolProvider):
    provider_name = "diagrams"
    supported_tools = ["render"]

    def create_tool(self, name, context, config=None):
        return Render()
`))
	w.review(s, library.Approved)
	id := w.begin(w.ada, "")
	w.ask(w.ada, id, `call load_skill {"name":"diagrams"}`, "diagrams__render")
	prompts := 0
	for i := range 20 {
		got := answer(w.say(w.ada, id, fmt.Sprintf(`call call_tool {"name":"diagrams__render","arguments":{"code":"graph %d"}}`, i), onlyNew(func(e chat.Event) {
			prompts++
			must(t, w.chat.AnswerApproval(t.Context(), w.ada, e.ApprovalRequest.ID, approval.Answer{Outcome: approval.Accepted}))
		})))
		if want := fmt.Sprintf("valid: graph %d", i); !strings.Contains(got, want) {
			t.Fatalf("it answers %q, want %q", got, want)
		}
	}
	if prompts != 0 {
		t.Errorf("%d prompts for twenty diagrams of a reviewed skill", prompts)
	}
}
