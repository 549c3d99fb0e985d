package fold_test

import (
	"fmt"
	"testing"

	"github.com/loadout-dev/loadout/internal/fold"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

func TestPendingCalls(t *testing.T) {
	calls := func(seq int64, ids ...string) session.Event {
		m := &session.Message{Role: llm.Assistant}
		for _, id := range ids {
			m.Calls = append(m.Calls, llm.Call{ID: id})
		}
		return session.Event{Seq: seq, Message: m}
	}
	started := func(id string) session.Event { return session.Event{CallStarted: &session.CallStart{Call: id}} }
	result := func(id string) session.Event { return session.Event{Result: &session.CallResult{Call: id}} }
	user := session.Event{Message: &session.Message{Role: llm.User}}
	compacted := session.Event{Compacted: &session.Compaction{}}
	for name, c := range map[string]struct {
		events []session.Event
		want   string
	}{
		"no events":          {nil, "[]"},
		"in order":           {[]session.Event{calls(7, "b", "a")}, "[b 7 false a 7 false]"},
		"started":            {[]session.Event{calls(7, "a", "b"), started("b")}, "[a 7 false b 7 true]"},
		"result":             {[]session.Event{calls(7, "a", "b"), started("a"), result("a")}, "[b 7 false]"},
		"same ID twice":      {[]session.Event{calls(7, "a", "a"), result("a")}, "[a 7 false]"},
		"later message":      {[]session.Event{calls(7, "a"), started("a"), calls(9, "a")}, "[a 9 false]"},
		"message of a user":  {[]session.Event{calls(7, "a"), user}, "[a 7 false]"},
		"compacted":          {[]session.Event{calls(7, "a"), compacted}, "[]"},
		"result of no call":  {[]session.Event{calls(7, "a"), result("b"), started("c")}, "[a 7 false]"},
		"answer, no call":    {[]session.Event{calls(7, "a"), calls(8)}, "[]"},
		"started, no result": {[]session.Event{calls(7, "a"), started("a"), user}, "[a 7 true]"},
	} {
		var got []any
		for _, p := range fold.PendingCalls(c.events) {
			got = append(got, p.ID, p.Message, p.Started)
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
	}
}
