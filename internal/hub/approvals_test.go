package hub_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/internal/clientaction"
	"github.com/loadout-dev/loadout/internal/hub/chat"
)

// asked waits until something is asked in a conversation.
func (c caller) asked(t testing.TB, session string) *approval.Request {
	t.Helper()
	all := c.until(t, session+"/events?attend=true", func(ev chat.Event) bool { return ev.Type == chat.ApprovalRequested })
	return all[len(all)-1].ApprovalRequest
}

// L14: a turn waits for the user's decision, which may contain other arguments or a
// reason for denial, and then continues. The first answer wins.
func TestL14PendingApproval(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer map[string]any
		want   string
	}{
		{"approved", map[string]any{"outcome": "accepted"}, `result: burned {"what":"letters"}`},
		{"approved with other data", map[string]any{"outcome": "accepted", "content": map[string]string{"what": "bills"}}, `result: burned {"what":"bills"}`},
		{"declined with feedback", map[string]any{"outcome": "declined", "feedback": "keep them"}, "result: not burned: keep them"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, ada, bob := hall(t)
			session := ada.begin(t)
			input := ada.say(t, session, `call burn {"what":"letters"}`)
			q := ada.asked(t, session)
			var list struct{ Items []approval.Request }
			if ada.send(t, "GET", "/api/v1/asks", nil).want(t, 200).into(t, &list); len(list.Items) != 1 || list.Items[0].ID != q.ID || q.Kind != approval.KindApproval {
				t.Errorf("there wait %+v", list)
			}
			if bob.send(t, "GET", "/api/v1/asks", nil).want(t, 200).into(t, &list); len(list.Items) != 0 {
				t.Errorf("bob sees %+v", list)
			}
			bob.send(t, "POST", "/api/v1/asks/"+q.ID, tt.answer).wantProblem(t, 404, "not_found")
			ada.send(t, "POST", "/api/v1/asks/"+q.ID, tt.answer).want(t, 204)
			r := ada.send(t, "POST", "/api/v1/asks/"+q.ID, map[string]any{"outcome": "cancelled"})
			if r.status != 404 { // it was used, and is forgotten
				r.wantProblem(t, 409, "settled")
				if outcome := tt.answer["outcome"].(string); !strings.Contains(r.text(t, "detail"), "already "+outcome+" by") {
					t.Errorf("who was first is missing: %s", r.body)
				}
			}
			ada.ended(t, session, input)
			if got := ada.lines(t, session); !strings.Contains(got[len(got)-1], tt.want) {
				t.Errorf("it has %q, want %q", got, tt.want)
			}
		})
	}
}

// L14: the second of two users who answer a pending question is told who was first.
func TestL14Resolved(t *testing.T) {
	n, ada, _ := hall(t)
	session := ada.begin(t)
	id := n.ask(t, strings.TrimPrefix(session, "/api/v1/sessions/"), ada.send(t, "GET", session, nil).text(t, "owner"))
	ada.send(t, "POST", "/api/v1/asks/"+id, map[string]any{"outcome": "accepted", "content": map[string]string{"colour": "blue"}}).want(t, 204)
	ada.send(t, "POST", "/api/v1/asks/"+id, map[string]any{"outcome": "accepted", "scope": "once", "content": map[string]string{"colour": "blue"}}).want(t, 204) // as after a lost response
	ada.send(t, "POST", "/api/v1/asks/"+id, map[string]any{"outcome": "accepted", "content": map[string]string{"colour": "red"}}).wantProblem(t, 409, "settled")
	r := ada.send(t, "POST", "/api/v1/asks/"+id, map[string]any{"outcome": "declined"})
	if r.wantProblem(t, 409, "settled"); !strings.Contains(r.text(t, "detail"), "already accepted by") || strings.Contains(r.body, "blue") {
		t.Errorf("the answer is %s", r.body)
	}
}

// W27: a skill:request is an event, and its skill:response may arrive by POST. Errors of
// a response use the terms of older systems.
func TestW27ResponseByPost(t *testing.T) {
	_, ada, bob := hall(t)
	session := ada.begin(t)
	input := ada.say(t, session, `call render {"code":"graph TD"}`)
	var request clientaction.Action
	if err := json.Unmarshal(ada.asked(t, session).Payload, &request); err != nil || request.Skill != "mermaid" || request.Action != "render" || string(request.Data) != `{"code":"graph TD"}` {
		t.Fatalf("the request is %+v, %v", request, err)
	}
	response := map[string]any{"request_id": request.Request, "skill_name": "mermaid", "action": "render", "success": true, "result": json.RawMessage(`{"svg":"drawn"}`)}
	r := ada.send(t, "POST", "/api/v1/skill-responses", map[string]any{"success": true})
	if r.wantProblem(t, 422, "no_request_id"); r.text(t, "detail") != "Missing request_id" {
		t.Errorf("message:  %s", r.body)
	}
	r = bob.send(t, "POST", "/api/v1/skill-responses", response)
	if r.wantProblem(t, 404, "no_request"); r.text(t, "detail") != "No pending request found" {
		t.Errorf("bob got %s", r.body)
	}
	if r := ada.send(t, "POST", "/api/v1/skill-responses", response).want(t, 200); !strings.Contains(r.body, `"success":true`) {
		t.Errorf("the answer is %s", r.body)
	}
	ada.send(t, "POST", "/api/v1/skill-responses", response).wantProblem(t, 404, "no_request")
	ada.ended(t, session, input)
	if got := ada.lines(t, session); !strings.HasSuffix(got[len(got)-1], `result: {"svg":"drawn"}`) {
		t.Errorf("it has %q", got)
	}
}
