package agent_test

import (
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// anyEvent returns any event that a log can contain, even if it makes no sense.
func anyEvent() *rapid.Generator[session.Event] {
	id := rapid.Custom(func(t *rapid.T) string { return fmt.Sprint(rapid.IntRange(1, 4).Draw(t, "id")) })
	text := rapid.SampledFrom([]string{"", "a", "words"})
	skill := session.ID{Name: "tides", Origin: "mine", Dir: "tides"}
	return rapid.Custom(func(t *rapid.T) session.Event {
		switch rapid.IntRange(0, 6).Draw(t, "kind") {
		case 0:
			return session.Event{Message: &session.Message{Role: session.RoleUser, Text: text.Draw(t, "text")}}
		case 1, 2:
			m := &session.Message{Role: session.RoleAssistant, Text: text.Draw(t, "text")}
			for _, id := range rapid.SliceOfN(id, 0, 3).Draw(t, "calls") {
				m.Calls = append(m.Calls, session.Call{ID: id, Name: "count"})
			}
			return session.Event{Message: m}
		case 3, 4:
			return session.Event{Result: &session.CallResult{Call: id.Draw(t, "call"), Text: text.Draw(t, "text")}}
		case 5:
			return session.Event{Notice: &session.Notice{Text: text.Draw(t, "text")}}
		}
		return session.Event{Unloaded: &session.SkillUnload{Skill: skill, Reason: "over"}}
	})
}

// For any events, each request begins with the previous one, and each call of a
// message has one result right after it.
func TestEveryPromptIsAPrefixOfTheNext(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := rapid.SliceOfN(anyEvent(), 0, 30).Draw(t, "events")
		var before []llm.Message
		for n := range len(events) + 1 {
			_, now := agent.RenderRequest(events[:n])
			if len(now) < len(before) || len(before) > 0 && !reflect.DeepEqual(now[:len(before)], before) {
				t.Fatalf("after event %d the prompt\n%v\ndoes not begin with\n%v", n, now, before)
			}
			before = now
		}
		for i, m := range before[:max(len(before)-1, 0)] {
			wanted := map[string]bool{}
			for _, p := range m.Parts {
				if c, ok := p.(llm.Call); ok {
					wanted[c.ID] = true
				}
			}
			got := map[string]bool{}
			for _, p := range before[i+1].Parts {
				if r, ok := p.(llm.Result); ok {
					got[r.Call] = true
				}
			}
			if len(wanted) > 0 && !reflect.DeepEqual(got, wanted) {
				t.Fatalf("message %d has calls %v, and the one behind it results %v", i, wanted, got)
			}
		}
	})
}
