package hub_test

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
	"sync"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/chat"
)

// noise is text that no packing makes smaller by more than half.
func noise(size int) string {
	b := make([]byte, size)
	rand.Read(b)
	return hex.EncodeToString(b)
}

// The drafts in one user's conversations are limited by number and bytes, even if many
// start concurrently. Deleting one frees space, and other users have their own limits.
func TestConversationDraftLimit(t *testing.T) {
	onEach(t, func(t *testing.T, o hub.Options) {
		o.FirstAdmin, o.Accounts = &hub.FirstAdmin{Name: "root", Password: secret}, true
		n := start(t, o)
		talker(t, n, func(o *chat.Options, _ *chat.Setup) { o.Drafts, o.DraftBytes = 3, 20_000 })
		body := func(size int) map[string]any {
			return map[string]any{"draft": files(file("SKILL.md", "---\nname: tides\ndescription: Reads tide tables.\n---\n"), file("table.txt", noise(size)))}
		}
		_, token := n.newcomer(t, "ada", account.AllScopes)
		ada := caller{node: n, token: token}
		var beginning sync.WaitGroup
		answers := make([]reply, 10)
		for i := range answers {
			beginning.Go(func() { answers[i], _ = n.send(ada, "POST", "/api/v1/sessions", body(10)) })
		}
		beginning.Wait()
		var begun []string
		for _, r := range answers {
			if r.status == 201 {
				begun = append(begun, r.header.Get("Location"))
				continue
			}
			r.wantProblem(t, 409, "too_many_drafts")
			if !strings.Contains(r.body, "limit 3") || !strings.Contains(r.body, "delete") {
				t.Errorf("got %s", r.body)
			}
		}
		if len(begun) != 3 {
			t.Fatalf("%d began", len(begun))
		}
		ada.send(t, "POST", "/api/v1/sessions", map[string]any{"title": "without one"}).want(t, 201)
		_, other := n.newcomer(t, "bob", account.AllScopes)
		caller{node: n, token: other}.send(t, "POST", "/api/v1/sessions", body(10)).want(t, 201)

		ada.send(t, "DELETE", begun[0], nil).want(t, 204)
		large := ada.send(t, "POST", "/api/v1/sessions", body(30_000))
		large.wantProblem(t, 409, "too_many_drafts")
		if !strings.Contains(large.body, "limit 20000") {
			t.Errorf("for a large one got %s", large.body)
		}
		ada.send(t, "POST", "/api/v1/sessions", body(10)).want(t, 201)
	})
}
