package session_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/session"
)

// putServed adds or replaces a skill of an MCP server.
func (s *shelf) putServed(name, body string) *session.Skill {
	m := s.put(name, body)
	m.ID = session.ID{Name: "mcp.docs/" + name, Origin: "mcp.docs", Dir: name}
	return m
}

func versions(all []session.ActiveSkill) string {
	var out []string
	for _, a := range all {
		out = append(out, a.Skill.Name+" "+a.Digest[7:11])
	}
	return strings.Join(out, ", ")
}

// SkillsInContext returns each loaded version of a skill of an MCP server until its text has
// left the conversation. It returns other skills while they are active.
func TestServedSkillsStayInContextUntilTheirTextIsGone(t *testing.T) {
	sh := &shelf{}
	sh.put("own", "Mine.")
	first := sh.putServed("guide", "One.").Digest[7:11]
	log := &session.MemoryLog{}
	s := open(t, log, sh)
	load := func(name string) {
		t.Helper()
		if _, err := s.Load(t.Context(), name, nil); err != nil {
			t.Fatal(err)
		}
	}
	unload := func(name string) {
		t.Helper()
		if _, err := s.Unload(t.Context(), name, "", false); err != nil {
			t.Fatal(err)
		}
	}
	compact := func(kept ...session.ID) {
		t.Helper()
		if err := s.Append(t.Context(), session.Event{Compacted: &session.Compaction{Text: "In short.", Skills: kept}}); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(when, want string) {
		t.Helper()
		if got := versions(s.SkillsInContext()); got != want {
			t.Errorf("%s: %q act, want %q", when, got, want)
		}
		again := open(t, log, sh)
		if got := versions(again.SkillsInContext()); got != want {
			t.Errorf("%s, in another process: %q act, want %q", when, got, want)
		}
		state := s.State()
		saved, err := json.Marshal(&state)
		var restored session.State
		if err == nil {
			err = json.Unmarshal(saved, &restored)
		}
		if err != nil || !reflect.DeepEqual(state.SkillsInContext(), restored.SkillsInContext()) {
			t.Errorf("%s, from a saved state: %q act, want %q (%v)", when, versions(restored.SkillsInContext()), want, err)
		}
	}
	load("guide")
	expect("loaded", "mcp.docs/guide "+first)
	load("own")
	unload("own")
	unload("mcp.docs/guide")
	expect("unloaded", "mcp.docs/guide "+first)
	changed := sh.putServed("guide", "Two.")
	second := changed.Digest[7:11]
	load("guide")
	expect("another version", "mcp.docs/guide "+first+", mcp.docs/guide "+second)
	compact(changed.ID)
	expect("compacted with its text", "mcp.docs/guide "+second)
	unload("mcp.docs/guide")
	compact()
	expect("compacted", "")
}
