package usage_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub/usage"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

func TestMeterCounts(t *testing.T) {
	answer := func(model string, calls ...llm.Call) *session.Event {
		return &session.Event{Message: &session.Message{Role: llm.Assistant, Model: model, Usage: &llm.Usage{Input: 5, Output: 4, CacheRead: 3, CacheWrite: 2}, Calls: calls}}
	}
	m := usage.NewMeter("", "", "", "own", nil)
	got := m.Count([]*session.Event{
		{Message: &session.Message{Role: llm.User}},
		answer("other", llm.Call{ID: "1", Name: "search"}, llm.Call{ID: "2", Name: toolname.LoadSkill}, llm.Call{ID: "3", Name: "search"}, llm.Call{ID: "4", Name: toolname.UnloadSkill}),
		{Result: &session.CallResult{Call: "1"}},
		{Result: &session.CallResult{Call: "2"}},
		{Loaded: &session.SkillLoad{}},
		{Result: &session.CallResult{Call: "3", Error: true}},
		{Result: &session.CallResult{Call: "1", Error: false}},
		{Result: &session.CallResult{Call: "4", Error: true}},
		answer("other"),
		{Compacted: &session.Compaction{Model: "small", Usage: &llm.Usage{Input: 7}}},
		{Compacted: &session.Compaction{}}, // without a model
	})
	slices.SortFunc(got, func(a, b store.MeterEntry) int { return strings.Compare(a.Model, b.Model) })
	want := []store.MeterEntry{
		{Model: "other", Input: 10, Output: 8, CacheRead: 6, CacheWrite: 4},
		{Model: "own", Turns: 1, Loads: 1, Calls: 3, Errors: 1},
		{Model: "small", Input: 7},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := (*usage.Meter)(nil).Count([]*session.Event{answer("m")}); got != nil {
		t.Errorf("no meter counts %+v", got)
	}
}

// Results refer to calls of an answer that was stored before.
func TestMeterRemembersCalls(t *testing.T) {
	m := usage.NewMeter("", "", "", "own", nil)
	m.Apply([]*session.Event{{Message: &session.Message{Role: llm.Assistant, Calls: []llm.Call{{ID: "1", Name: toolname.LoadSkill}, {ID: "2", Name: "search"}}}}})
	got := m.Count([]*session.Event{{Result: &session.CallResult{Call: "1"}}, {Result: &session.CallResult{Call: "2"}}})
	if len(got) != 1 || got[0].Calls != 1 {
		t.Errorf("got %+v", got)
	}
}
