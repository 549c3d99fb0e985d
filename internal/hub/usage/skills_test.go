package usage_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/hub/usage"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

func TestSkillCounter(t *testing.T) {
	at := func(n int) time.Time { return time.Date(2026, 1, 2, 3, 4, n, 0, time.UTC) }
	load := func(n int, name string, tools ...string) *session.Event {
		return &session.Event{Seq: int64(n), Time: at(n), Loaded: &session.SkillLoad{Skill: session.ID{Name: name, Origin: "hub", Dir: name}, Tools: tools, Tokens: 100}}
	}
	result := func(n int, call string, failed bool) *session.Event {
		return &session.Event{Seq: int64(n), Time: at(n), Result: &session.CallResult{Call: call, Error: failed}}
	}
	answer := func(n int, calls ...llm.Call) *session.Event {
		return &session.Event{Seq: int64(n), Time: at(n), Message: &session.Message{Role: llm.Assistant, Calls: calls}}
	}
	id := func(s session.ID) string { return "id-" + s.Name }
	u := usage.NewSkillCounter("u1", id, session.State{}, nil)
	loads := []*session.Event{load(1, "csv", "csv__read"), load(2, "pdf", "pdf__split"), load(3, "csv", "csv__read")}
	want := []store.SkillUsage{{SkillID: "id-csv", Owner: "u1", Loads: 2, Tokens: 200, LastUsed: at(3)}, {SkillID: "id-pdf", Owner: "u1", Loads: 1, Tokens: 100, LastUsed: at(2)}}
	if diff := cmp.Diff(want, u.Count(loads)); diff != "" {
		t.Errorf("loads:\n%s", diff)
	}
	u.Apply(loads)
	u.Apply([]*session.Event{answer(4,
		llm.Call{ID: "run", Name: toolname.RunSkillScript, Arguments: `{"skill":"pdf"}`},
		llm.Call{ID: "tool", Name: toolname.CallTool, Arguments: `{"name":"csv__read"}`},
		llm.Call{ID: "load", Name: toolname.LoadSkill, Arguments: `{"skill":"pdf"}`},
		llm.Call{ID: "unload", Name: toolname.UnloadSkill, Arguments: `{"skill":"pdf"}`},
		llm.Call{ID: "other", Name: "search", Arguments: `{"skill":"none","name":"none"}`},
		llm.Call{ID: "empty", Name: "search", Arguments: `{}`},
		llm.Call{ID: "bad", Name: "search", Arguments: `{"skill":`})})
	results := []*session.Event{result(5, "run", false), result(6, "run", true), result(7, "tool", false), result(8, "load", false), result(9, "unload", true),
		result(10, "other", true), result(11, "empty", false), result(12, "bad", false), result(13, "unknown", false)}
	want = []store.SkillUsage{{SkillID: "id-csv", Owner: "u1", Calls: 1, LastUsed: at(7)}, {SkillID: "id-pdf", Owner: "u1", Calls: 2, Errors: 1, LastUsed: at(6)}}
	if diff := cmp.Diff(want, u.Count(results)); diff != "" {
		t.Errorf("calls:\n%s", diff)
	}
	// Only the calls of the last message have results to come, and what the user says ends none.
	u.Apply([]*session.Event{{Seq: 14, Message: &session.Message{Role: llm.User, Text: "and?"}}})
	if got := u.Count(results[:1]); len(got) != 1 {
		t.Errorf("after a message of the user: %+v", got)
	}
	u.Apply([]*session.Event{answer(15, llm.Call{ID: "next", Name: toolname.RunSkillScript, Arguments: `{"skill":"pdf"}`})})
	if got := u.Count(results); len(got) > 0 {
		t.Errorf("calls of an earlier message count: %+v", got)
	}
}

// A counter that is continued knows the pending calls and the active skills.
func TestSkillCounterContinues(t *testing.T) {
	var state session.State
	loaded := &session.SkillLoad{Skill: session.ID{Name: "pdf", Origin: "hub"}}
	state.Apply(session.Event{Seq: 1, Loaded: loaded})
	u := usage.NewSkillCounter("u1", func(s session.ID) string { return s.Name }, state, []llm.Call{{ID: "c", Arguments: `{"skill":"pdf"}`}})
	if got := u.Count([]*session.Event{{Seq: 2, Result: &session.CallResult{Call: "c"}}}); len(got) != 1 || got[0].SkillID != "pdf" || got[0].Calls != 1 {
		t.Errorf("got %+v", got)
	}
	if u.StoreID(loaded) != "pdf" || u.StoreID(nil) != "" {
		t.Errorf("IDs are %q and %q", u.StoreID(loaded), u.StoreID(nil))
	}
	none := usage.NewSkillCounter("u1", nil, state, nil)
	none.Apply([]*session.Event{{Seq: 2, Loaded: loaded}})
	if none != nil || none.StoreID(loaded) != "" || none.Count([]*session.Event{{Loaded: loaded}}) != nil {
		t.Error("a counter without IDs counts")
	}
}

func TestTally(t *testing.T) {
	var all usage.Tally
	now := time.Now()
	all.Add(store.SkillUsage{SkillID: "b", Loads: 1, Tokens: 5, LastUsed: now})
	all.Add(store.SkillUsage{SkillID: "a", Calls: 1, Errors: 1, LastUsed: now})
	all.Add(store.SkillUsage{SkillID: "b", Calls: 2, Tokens: 1, LastUsed: now.Add(1)})
	all.Add(store.SkillUsage{Loads: 1}) // of a skill that the hub does not store
	all.Add(store.SkillUsage{SkillID: "b", Owner: "u", Loads: 1, LastUsed: now})
	want := []store.SkillUsage{{SkillID: "a", Calls: 1, Errors: 1, LastUsed: now}, {SkillID: "b", Loads: 1, Calls: 2, Tokens: 6, LastUsed: now.Add(1)}, {SkillID: "b", Owner: "u", Loads: 1, LastUsed: now}}
	if diff := cmp.Diff(want, all.Drain()); diff != "" {
		t.Error(diff)
	}
	if again := all.Drain(); len(again) > 0 {
		t.Errorf("drained twice: %+v", again)
	}
}
