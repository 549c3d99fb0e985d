package assembly_test

import (
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/internal/hub/chat"
)

// A model lets the page draw a diagram, and receives its errors.
func TestPageDrawsDiagrams(t *testing.T) {
	w := sqlite(t)
	for _, test := range []struct {
		code     string
		response chat.Response
		want     string
	}{
		{"flowchart TD", chat.Response{Success: true, Result: []byte(`{"svg":"<svg>much</svg>"}`)}, "The diagram renders"},
		{"flowchart TD; a[", chat.Response{Error: []byte(`{"message":"expected a bracket","line":1,"column":16}`)}, `"line":1,"column":16`},
	} {
		id := w.begin(w.ada, "")
		got := answer(w.say(w.ada, id, `call render_mermaid {"code":"`+test.code+`"}`, onlyNew(func(e chat.Event) {
			if payload := string(e.ApprovalRequest.Payload); e.ApprovalRequest.Kind != approval.KindAction || !strings.Contains(payload, `"action":"render_mermaid"`) || !strings.Contains(payload, test.code) {
				t.Errorf("the page is asked %s", payload)
			}
			response := test.response
			response.Request = e.ApprovalRequest.ID
			must(t, w.chat.Respond(t.Context(), w.ada, response))
		})))
		if !strings.Contains(got, test.want) || strings.Contains(got, "<svg>") {
			t.Errorf("the model got %q, want %q", got, test.want)
		}
	}
}
