package sessionapi_test

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/hub/hubtest"
)

// A client that attaches to a conversation twice still gets each event once, and none
// after it detaches.
func TestSocketAttachesAgain(t *testing.T) {
	h := hubtest.Open(t, hub.Options{})
	user := h.Client()
	id := user.Must("POST", "/sessions", `{}`).Text("id")
	server := httptest.NewServer(h.Handler())
	t.Cleanup(server.Close)
	conn, _, err := websocket.Dial(t.Context(), "ws"+strings.TrimPrefix(server.URL, "http")+"/ws", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.CloseNow() })
	answer := func(message string) string { // the type of the next message from the hub
		t.Helper()
		if err := conn.Write(t.Context(), websocket.MessageText, []byte(message)); err != nil {
			t.Fatal(err)
		}
		_, data, err := conn.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var m struct{ Type string }
		if err := json.Unmarshal(data, &m); err != nil {
			t.Fatal(err)
		}
		return m.Type
	}
	for _, kind := range []string{"attach", "attach", "detach"} {
		if got := answer(`{"type": "` + kind + `", "session": "` + id + `"}`); got != "ok" {
			t.Fatalf("%s: got a message of type %q, want ok", kind, got)
		}
	}
	user.Must("POST", "/sessions/"+id+"/messages", `{"text": "Hello."}`)
	readEvents(t, user, id, "event: ended")
	if got := answer(`{"type": "detach", "session": "` + id + `"}`); got != "ok" {
		t.Errorf("after detaching: got a message of type %q, want ok", got)
	}
}
