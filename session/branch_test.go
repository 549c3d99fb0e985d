package session_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// branched returns a log's events, one for each number: a message for -1, and
// otherwise a branch after the event with this number.
func branched(after ...int64) []session.Event {
	events := make([]session.Event, len(after))
	for i, n := range after {
		events[i].Seq = int64(i) + 1
		if n == -1 {
			events[i].Message = &session.Message{Role: llm.User, Text: fmt.Sprint(i + 1)}
		} else {
			events[i].Branched = &session.Branch{After: n}
		}
	}
	return events
}

func TestPath(t *testing.T) {
	for _, tt := range []struct {
		name   string
		events []session.Event
		want   []int64
	}{
		{"empty", nil, nil},
		{"without branches", branched(-1, -1, -1), []int64{1, 2, 3}},
		{"edited message", branched(-1, -1, -1, 1, -1), []int64{1, 4, 5}},
		{"back to the first version", branched(-1, -1, -1, 1, -1, 3, -1), []int64{1, 2, 3, 6, 7}},
		{"started again", branched(-1, -1, 0, -1), []int64{3, 4}},
		{"branch after a branch", branched(-1, -1, 1, -1, 3, -1), []int64{1, 3, 5, 6}},
		{"after a later event", branched(-1, 7, -1, 4, -1), []int64{1, 2, 3, 4, 5}},
		{"after a negative number", []session.Event{{Seq: 1}, {Seq: 2, Branched: &session.Branch{After: -5}}}, []int64{1, 2}},
		{"without the beginning", branched(-1, -1, -1, -1, 2, -1)[3:], []int64{5, 6}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []int64
			for _, e := range session.Path(tt.events) {
				got = append(got, e.Seq)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// A session contains the events of the current branch only, even if its state was
// saved on another one, and the skills that are active on it.
func TestOpenWithBranches(t *testing.T) {
	tides := session.ID{Name: "tides", Origin: "mine", Dir: "tides"}
	log := &session.MemoryLog{}
	add := func(e session.Event) {
		t.Helper()
		if err := log.Append(t.Context(), &e); err != nil {
			t.Fatal(err)
		}
	}
	say := func(text string) {
		add(session.Event{Message: &session.Message{Role: llm.User, Text: text}})
	}
	say("one")
	add(session.Event{Loaded: &session.SkillLoad{Skill: tides}})
	say("two")
	add(session.Event{Branched: &session.Branch{After: 1}})
	say("other two")

	var saved session.State
	events, err := log.Read(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events[:3] {
		saved.Apply(e)
	}
	for name, state := range map[string]session.State{"from the start": {}, "from the state of another branch": saved} {
		t.Run(name, func(t *testing.T) {
			s, err := session.Open(t.Context(), nil, &session.Options{Log: log, State: state})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			var got []int64
			for _, e := range s.Events(0) {
				got = append(got, e.Seq)
			}
			if want := []int64{1, 4, 5}; !slices.Equal(got, want) {
				t.Errorf("got events %v, want %v", got, want)
			}
			if later := s.Events(2); len(later) != 2 || later[0].Seq != 4 {
				t.Errorf("after event 2: got %v, want events 4 and 5", later)
			}
			if active := s.Active(); len(active) > 0 {
				t.Errorf("active skills are %v, want none", active)
			}
			if err := s.Append(t.Context(), session.Event{Branched: &session.Branch{After: 3}}); err == nil {
				t.Error("a session appended a branch")
			}
		})
	}
}

// The state of a branch equals that of a conversation that never had others.
func TestBranchEqualsLinearConversation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SampledFrom([]session.ID{{Name: "a", Origin: "o", Dir: "a"}, {Name: "b", Origin: "o", Dir: "b"}})
		log := &session.MemoryLog{}
		branches := [][]session.Event{nil} // by number of the last event: the events of its branch
		for range rapid.IntRange(1, 30).Draw(t, "events") {
			e := session.Event{}
			parent := len(branches) - 1
			switch rapid.IntRange(0, 5).Draw(t, "kind") {
			case 0:
				e.Message = &session.Message{Role: llm.User}
			case 1:
				e.Loaded = &session.SkillLoad{Skill: ids.Draw(t, "skill"), Text: "text"}
			case 2:
				e.Unloaded = &session.SkillUnload{Skill: ids.Draw(t, "skill")}
			case 3:
				e.Used = &session.SkillUse{Skill: ids.Draw(t, "skill"), Retention: session.RetainPinned}
			case 4:
				e.Compacted = &session.Compaction{Skills: []session.ID{ids.Draw(t, "skill")}}
			case 5:
				parent = rapid.IntRange(0, parent).Draw(t, "parent")
				e.Branched = &session.Branch{After: int64(parent)}
			}
			if err := log.Append(t.Context(), &e); err != nil {
				t.Fatal(err)
			}
			branches = append(branches, append(slices.Clip(branches[parent]), e))
		}
		var want session.State
		for _, e := range branches[len(branches)-1] {
			want.Apply(e)
		}
		s, err := session.Open(t.Context(), nil, &session.Options{Log: log})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		var got session.State
		for _, e := range s.Events(0) {
			got.Apply(e)
		}
		if g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); g != w {
			t.Fatalf("got state %s, want %s", g, w)
		}
		if g, w := fmt.Sprint(s.Active()), fmt.Sprint(want.Active()); g != w {
			t.Fatalf("active skills are %s, want %s", g, w)
		}
	})
}
