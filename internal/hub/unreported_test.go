package hub_test

import (
	"context"
	"iter"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/llm"
)

// silent is a model that reports no token usage.
type silent struct{ echo }

func (silent) Name() string { return "silent:1" }

func (m silent) Stream(_ context.Context, r *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		a := m.answer(r)
		a.Usage = llm.Usage{}
		yield(llm.Done{Answer: *a}, nil)
	}
}

// Tokens that no vendor reported are unknown, not 0.
func TestUnreportedTokens(t *testing.T) {
	onEach(t, func(t *testing.T, o hub.Options) {
		o.FirstAdmin, o.Accounts = &hub.FirstAdmin{Name: "root", Password: secret}, true
		n := start(t, o)
		talker(t, n, func(_ *chat.Options, s *chat.Setup) { s.Model = silent{} })
		_, token := n.newcomer(t, "ada", account.AllScopes)
		ada := caller{node: n, token: token}
		if got := ada.send(t, "GET", "/api/v1/usage/totals", nil).want(t, 200).body; !strings.Contains(got, `"input":0`) || strings.Contains(got, "untold") {
			t.Errorf("before anything was said: %s", got)
		}
		session := ada.begin(t)
		ada.talk(t, session, "one")
		ada.talk(t, session, "two")
		if got := ada.send(t, "GET", session+"/usage", nil).want(t, 200).body; !strings.Contains(got, `"models":{}`) || !strings.Contains(got, `"untold":{"silent:1":2}`) || strings.Contains(got, "context") {
			t.Errorf("the session returned %s", got)
		}
		for _, by := range []string{"day", "model", "user", "agent"} {
			if got := ada.send(t, "GET", "/api/v1/usage/totals?by="+by, nil).want(t, 200).body; strings.Contains(got, "input") || strings.Contains(got, "output") || strings.Count(got, `"untold":2`) != 2 {
				t.Errorf("by %s: %s", by, got)
			}
		}
	})
}
