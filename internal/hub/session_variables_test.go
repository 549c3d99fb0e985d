package hub_test

import (
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub"
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
