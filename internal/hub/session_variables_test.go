package hub_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/llm"
)

// The platform values of a conversation are in no answer, log or file. Only its
// user can replace them, and a conversation with invalid ones is not created.
func TestSessionVariablesAreNeverReturned(t *testing.T) {
	const value = "correct-horse-battery-staple"
	data := t.TempDir()
	n, root, ada := rootAndAda(t, hub.Options{Data: data})
	begun := ada.send(t, "POST", "/api/v1/sessions", map[string]any{"variables": map[string]string{"task_token": value}}).want(t, 201)
	id := begun.text(t, "id")
	answers := begun.body
	answers += ada.send(t, "PUT", "/api/v1/secrets/variable.task_token?owner=session:"+id, map[string]string{"value": value + "2"}).want(t, 204).body
	for _, path := range []string{"/api/v1/sessions", "/api/v1/sessions/" + id, "/api/v1/secrets", "/api/v1/audit?actor=me"} {
		answers += ada.send(t, "GET", path, nil).want(t, 200).body
	}
	names := ada.send(t, "GET", "/api/v1/secrets?owner=session:"+id, nil).want(t, 200).body
	if !strings.Contains(names, `"variable.task_token"`) || !strings.Contains(answers, "secret/session:"+id+"/variable.task_token") {
		t.Errorf("the value is not listed, or not in the audit: %s", names)
	}
	root.send(t, "PUT", "/api/v1/secrets/variable.task_token?owner=session:"+id, map[string]string{"value": "x"}).wantProblem(t, 403, "forbidden")
	for what, body := range map[string]map[string]string{"variable.task_token": {"value": strings.Repeat("x", 8<<10+1)}, "KEY": {"value": value}, "variable.user.name": {"value": value}} {
		refused := ada.send(t, "PUT", "/api/v1/secrets/"+what+"?owner=session:"+id, body)
		refused.wantProblem(t, 422, "invalid")
		answers += refused.body
	}
	refused := ada.send(t, "POST", "/api/v1/sessions", map[string]any{"variables": map[string]string{"user.name": value}})
	refused.wantProblem(t, 422, "invalid")
	for what, text := range map[string]string{"an answer": answers + names + refused.body, "the log": n.log.String(), "a file": contents(t, data)} {
		if strings.Contains(text, value) {
			t.Errorf("the value is in %s", what)
		}
	}
	var list struct{ Items []struct{ ID string } }
	if ada.send(t, "GET", "/api/v1/sessions", nil).into(t, &list); len(list.Items) != 1 {
		t.Errorf("the refused conversation exists: %+v", list)
	}
}

// A platform sends its values with POST /sessions. Once the user has granted them to a
// skill, the skill's server gets them in this conversation, and in no other.
func TestSessionVariablesReachTheServerOfASkill(t *testing.T) {
	server := guarded(t, "t0ken-of-task")
	_, root, ada := rootAndAda(t, hub.Options{Private: loopback, Model: func(*agents.ModelChoice, string) (llm.Model, error) { return echo{}, nil }})
	ada.apply(t, "", `{apiVersion: loadout/v1, kind: Skill, metadata: {name: weibo}, spec: {description: Reads posts., prompt: Call getUserInfo.,
  mcpServers: {s: {type: streamable-http, url: "${{backend_url}}/mcp", headers: {Authorization: "Bearer ${{task_token}}"}}}}}`).want(t, 200)
	var stored struct{ Status struct{ ID string } }
	ada.send(t, "GET", "/api/v1/kinds/Skill/default/weibo", nil).want(t, 200).into(t, &stored)
	version := "/api/v1/skills/" + stored.Status.ID + "/versions/1"
	digest := ada.send(t, "GET", version, nil).want(t, 200).text(t, "digest")
	root.send(t, "PUT", version+"/review", map[string]string{"decision": "approved", "digest": digest}).want(t, 204)

	begin := func(variables map[string]string) string {
		t.Helper()
		return "/api/v1/sessions/" + ada.send(t, "POST", "/api/v1/sessions", map[string]any{"variables": variables}).want(t, 201).text(t, "id")
	}
	answers := func(session, message, want string) {
		t.Helper()
		ada.talk(t, session, message)
		lines := ada.lines(t, session)
		if got := lines[len(lines)-1]; !strings.Contains(got, want) || strings.Contains(got, "t0ken") {
			t.Errorf("%s: %q, want %q", message, got, want)
		}
	}
	const load, call = `call load_skill {"name":"weibo"}`, `call call_tool {"name":"weibo_s__getUserInfo"}`
	session := begin(map[string]string{"backend_url": server.URL, "task_token": "t0ken-of-task"})
	answers(session, load, "may not be sent to "+server.URL)
	for _, name := range []string{"backend_url", "task_token"} {
		grant := map[string]string{"kind": "Skill", "name": "weibo", "digest": digest, "target": server.URL}
		ada.send(t, "POST", fmt.Sprintf("/api/v1/secrets/variable.%s/grants", name), grant).want(t, 204)
	}
	answers(session, load, "weibo")
	answers(session, call, "ada of Weibo")
	answers(begin(nil), load, "not configured")
}
