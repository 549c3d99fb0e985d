package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// Messages of histories of other programs.

func user(text string) session.PastMessage {
	return session.PastMessage{Role: llm.User, Text: text}
}

func system(text string) session.PastMessage { return session.PastMessage{Role: "system", Text: text} }

func tool(text string) session.PastMessage { return session.PastMessage{Role: "tool", Text: text} }

// answer returns a message of the model with recorded skills.
func answer(text string, loaded ...string) session.PastMessage {
	return session.PastMessage{Role: llm.Assistant, Text: text, LoadedSkills: loaded}
}

func call(name, arguments string) session.PastMessage {
	return session.PastMessage{Role: llm.Assistant, Calls: []session.PastCall{{Name: name, Arguments: arguments}}}
}

func failedCall(name, arguments string) session.PastMessage {
	p := call(name, arguments)
	p.Calls[0].Error = true
	return p
}

// pairs returns turns without loads.
func pairs(n int) (out []session.PastMessage) {
	for range n {
		out = append(out, user("and?"), answer("so"))
	}
	return out
}

// history joins messages and lists of messages.
func history(parts ...any) (out []session.PastMessage) {
	for _, p := range parts {
		switch p := p.(type) {
		case session.PastMessage:
			out = append(out, p)
		case []session.PastMessage:
			out = append(out, p...)
		}
	}
	return out
}

// restored opens a new conversation and restores it from a history. text enables
// parsing of the model's text.
func restored(t *testing.T, sh session.Skills, past []session.PastMessage, o *session.Options, text bool) *session.Session {
	t.Helper()
	s, err := session.Open(t.Context(), sh, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if err := s.Restore(t.Context(), past, &session.RestoreOptions{Text: text}); err != nil {
		t.Fatal(err)
	}
	return s
}

// lefts returns the active skills in load order, each with the number of turns
// left.
func lefts(s *session.Session) string {
	var out []string
	for _, a := range s.Active() {
		if left, bounded := s.TurnsLeft(a.Skill); bounded {
			out = append(out, fmt.Sprintf("%s %d", a.Skill.Name, left))
		} else {
			out = append(out, a.Skill.Name+" for good")
		}
	}
	return strings.Join(out, ", ")
}

func pasts() *shelf {
	sh := &shelf{}
	for _, name := range []string{"a", "b", "c"} {
		sh.put(name, "Do "+name+".\n")
	}
	sh.put("empty", " \n")
	sh.put("people", "Do it.\n").Hidden = true
	sh.put("base", "The base.\n")
	sh.put("report", "Report.\n", "base")
	return sh
}

// Table "retention and restoration": turns left for a skill loaded in a
// history, depending on what follows. It includes the bugs of the earlier
// system.
func TestW12Restoration(t *testing.T) {
	loaded := history(user("do it"), answer("done", "a"))
	for _, tt := range []struct {
		name string
		past []session.PastMessage
		want string
	}{
		{"nothing", nil, ""},
		{"loaded in the last assistant message", loaded, "a 5"},
		{"1 pair later", history(loaded, pairs(1)), "a 4"},
		{"3 pairs later", history(loaded, pairs(3)), "a 2"},
		{"4 pairs later", history(loaded, pairs(4)), "a 1"},
		{"5 pairs later: gone", history(loaded, pairs(5)), ""},
		{"history ends with a user message: unchanged", history(loaded, pairs(1), user("and?")), "a 4"},
		{"two user messages in a row count once", history(loaded, user("one"), user("two"), answer("so")), "a 4"},
		{"two user messages at the end: unchanged", history(loaded, user("one"), user("two")), "a 5"},
		{"a failed empty turn that was dropped counts once", history(loaded, user("fails"), user("again"), answer("so")), "a 4"},
		{"a failed empty turn that was kept counts once", history(loaded, user("fails"), answer(""), user("again"), answer("so")), "a 4"},
		{"a chain of assistant, tool and assistant counts once", history(loaded, user("x"), call("list", "{}"), tool("y"), call("list", "{}"), tool("y"), answer("so")), "a 4"},
		{"consecutive assistants without a user message are not counted", history(loaded, answer("one"), answer("two"), answer("three")), "a 5"},
		{"a system message between user and assistant does not stop the clock", history(loaded, user("x"), system("it is noon"), answer("so")), "a 4"},
		{"system messages in every turn: it expires", history(loaded, slices.Repeat(history(user("x"), system("it is noon"), answer("so")), 5)), ""},
		{"a tool message between user and assistant does not, either", history(loaded, user("x"), tool("y"), answer("so")), "a 4"},
		{"a developer message between turns is no turn", history(loaded, session.PastMessage{Role: "developer", Text: "x"}, pairs(1)), "a 4"},
		{"loaded before any user message", history(answer("done", "a"), pairs(2)), "a 3"},
		{"same skill loaded again later: the most recent wins, once", history(loaded, pairs(2), user("x"), answer("so", "a"), pairs(1)), "a 4"},
		{"loaded again after it was gone", history(loaded, pairs(7), user("x"), answer("so", "a")), "a 5"},
		{"twice in one note: once", history(user("x"), answer("so", "a", "a")), "a 5"},
		{"noted with an answer of nothing else", history(user("x"), answer("", "a"), pairs(1)), "a 4"},
		{"several: in the order of their last load", history(loaded, user("x"), answer("so", "b"), user("x"), answer("so", "c", "a")), "b 4, c 5, a 5"},
		{"unknown name ignored", history(user("x"), answer("so", "zzz", "a")), "a 5"},
		{"null ignored", decoded(t, `[{"role":"user","text":"x"},{"role":"assistant","text":"so","loaded_skills":null},
			{"role":"user","text":"x"},{"role":"assistant","text":"so","loaded_skills":[null,"a",""]}]`), "a 5"},
		{"empty prompt ignored", history(user("x"), answer("so", "empty")), ""},
		{"a skill that only a person may load is ignored", history(user("x"), answer("so", "people")), ""},
		{"what it needs comes before it, with as many turns left", history(user("x"), answer("so", "report"), pairs(1)), "base 4, report 4"},
		{"what it needs and was loaded later has its own", history(user("x"), answer("so", "report"), user("x"), answer("so", "base")), "base 5, report 4"},
		{"notes on a message of a user or the system are none", history(session.PastMessage{Role: llm.User, LoadedSkills: []string{"a"}}, session.PastMessage{Role: "system", LoadedSkills: []string{"b"}}, answer("so")), ""},

		{"a call of load_skill", history(user("x"), call("load_skill", `{"skill_name":"a"}`), tool("…"), answer("so"), pairs(1)), "a 4"},
		{"a call of activate_skill", history(user("x"), call("activate_skill", `{"skill_name":"a"}`)), "a 5"},
		{"a call of read_skill", history(user("x"), call("read_skill", `{"skill_name":"a"}`)), "a 5"},
		{"read_skill of a file is no load", history(user("x"), call("read_skill", `{"skill_name":"a","file_path":"b.md"}`)), ""},
		{"the argument is name", history(user("x"), call("load_skill", `{"name":"a"}`)), "a 5"},
		{"the argument is skill", history(user("x"), call("load_skill", `{"skill":"a"}`)), "a 5"},
		{"a call of another tool", history(user("x"), call("load_skills", `{"skill_name":"a"}`)), ""},
		{"arguments that are none", history(user("x"), call("load_skill", `{"skill_name":`), call("load_skill", `["a"]`), call("load_skill", ``), call("load_skill", `{"skill_name":["a"]}`)), ""},
		{"an errored load is none", history(user("x"), failedCall("load_skill", `{"skill_name":"a"}`), answer("so")), ""},
		{"an errored load that was noted is none", history(user("x"), failedCall("load_skill", `{"skill_name":"a"}`), answer("so", "a", "b")), "b 5"},
		{"an errored load that was tried again is one", history(user("x"), failedCall("load_skill", `{"skill_name":"a"}`), call("load_skill", `{"skill_name":"a"}`), answer("so", "a")), "a 5"},
		{"a load that worked, and failed when it was repeated", history(user("x"), call("load_skill", `{"skill_name":"a"}`), failedCall("load_skill", `{"skill_name":"a"}`), answer("so", "a")), "a 5"},
		{"a turn with a note has no other loads", history(user("x"), call("load_skill", `{"skill_name":"a"}`), answer("so", "b")), "b 5"},
		{"a note of nothing is a note", history(user("x"), call("load_skill", `{"skill_name":"a"}`), session.PastMessage{Role: llm.Assistant, Text: "so", LoadedSkills: []string{}}), ""},
		{"a turn without a note has its calls", history(loaded, user("x"), call("load_skill", `{"skill_name":"b"}`), answer("so")), "a 4, b 5"},
		{"a quoted sentence loads nothing", history(user("x"), answer("It says \"Skill 'a' has been loaded.\""), answer("Skill 'b' has been loaded.")), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := lefts(restored(t, pasts(), tt.past, nil, false)); got != tt.want {
				t.Errorf("active skills: %q, want %q", got, tt.want)
			}
		})
	}
	t.Run("retention 0 is ignored: it is the default", func(t *testing.T) {
		if got := lefts(restored(t, pasts(), history(loaded, pairs(1)), &session.Options{RetentionTurns: 0}, false)); got != "a 4" {
			t.Errorf("active skills: %q", got)
		}
	})
	t.Run("another retention", func(t *testing.T) {
		for after, want := range []string{"a 2", "a 1", "", ""} {
			if got := lefts(restored(t, pasts(), history(loaded, pairs(after)), &session.Options{RetentionTurns: 2}, false)); got != want {
				t.Errorf("after %d pairs active %q, want %q", after, got, want)
			}
		}
	})
	t.Run("permanent retention", func(t *testing.T) {
		if got := lefts(restored(t, pasts(), history(loaded, pairs(100)), &session.Options{RetentionTurns: -1}, false)); got != "a for good" {
			t.Errorf("active skills: %q", got)
		}
	})
	t.Run("preloaded skill in history: once, permanently", func(t *testing.T) {
		s := restored(t, pasts(), history(loaded, pairs(3)), nil, false)
		r, err := s.Load(t.Context(), "a", &session.LoadOptions{Retention: session.RetainPinned, Direct: true})
		if err != nil || r.State != session.StateAlreadyLoaded {
			t.Fatalf("the preload is %v, %v; want already", r, err)
		}
		if got := lefts(s); got != "a for good" {
			t.Errorf("active skills: %q", got)
		}
		s = withOptions(t, pasts(), session.Options{})
		loadAs(t, s, "a", session.LoadOptions{Retention: session.RetainPinned, Direct: true})
		if err := s.Restore(t.Context(), history(user("x"), answer("so", "b"), loaded, pairs(3)), nil); err != nil {
			t.Fatal(err)
		}
		if got := lefts(s); got != "a for good, b 1" || len(s.Events(0)) != 2 {
			t.Errorf("preloaded before: active %q by %q", got, kinds(s.Events(0)))
		}
	})
}

func decoded(t *testing.T, text string) (out []session.PastMessage) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// Load sentences count only with the Text option, and only if the history has
// no other evidence.
func TestW13OldTextPatterns(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       string
	}{
		{"loaded", "Skill 'a' has been loaded.", "a 5"},
		{"with what followed in the line", "Skill 'a' has been loaded. Its instructions were added to the conversation.", "a 5"},
		{"already active", "Skill 'a' is already active in this conversation turn. Go on.", "a 5"},
		{"active in short", "Skill 'a' is already active", "a 5"},
		{"a line among others", "Let me see.\nSkill 'a' has been loaded.\r\nIt says to begin.", "a 5"},
		{"two", "Skill 'a' has been loaded.\nSkill 'b' has been loaded.", "a 5, b 5"},
		{"an unknown name", "Skill 'zzz' has been loaded.", ""},
		{"part of a sentence", "I see that Skill 'a' has been loaded.", ""},
		{"a sentence that goes on", "Skill 'a' has been loaded by other people before", ""},
		{"not at the beginning of the line", "- Skill 'a' has been loaded.", ""},
		{"in quotation marks", "\"Skill 'a' has been loaded.\"", ""},
		{"in quotation marks on other lines", "The manual says \"\nSkill 'a' has been loaded.\n\" and so on.", ""},
		{"in printed quotation marks on other lines", "The manual says “first this:\nSkill 'a' has been loaded.\nThen that.”", ""},
		{"after a quotation", "The manual says \"so\".\nSkill 'a' has been loaded.", "a 5"},
		{"in a quoted block", "> Skill 'a' has been loaded.", ""},
		{"going on with a quoted block", "> It says:\nSkill 'a' has been loaded.", ""},
		{"after a quoted block", "> It says so.\n\nSkill 'a' has been loaded.", "a 5"},
		{"in code", "```\nSkill 'a' has been loaded.\n```", ""},
		{"a question", "Skill 'a' has been loaded?", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			past := history(user("x"), answer(tt.text))
			if got := lefts(restored(t, pasts(), past, nil, true)); got != tt.want {
				t.Errorf("active skills: %q, want %q", got, tt.want)
			}
			if got := lefts(restored(t, pasts(), past, nil, false)); got != "" {
				t.Errorf("unasked %q are active", got)
			}
		})
	}
	const said = "Skill 'a' has been loaded."
	for name, past := range map[string][]session.PastMessage{
		"said by a user":                 history(user(said), answer("so")),
		"said by a tool":                 history(user("x"), tool(said), answer("so")),
		"a note long ago":                history(user("x"), answer("so", "b"), pairs(50), user("x"), answer(said)),
		"a call that failed long ago":    history(user("x"), failedCall("load_skill", `{"skill_name":"b"}`), pairs(50), user("x"), answer(said)),
		"a note of nothing":              history(user("x"), session.PastMessage{Role: llm.Assistant, Text: said, LoadedSkills: []string{}}),
		"an answer too long to be read":  history(user("x"), answer(said+strings.Repeat("\nand so on", 10_000))),
		"said, and its time is over now": history(user("x"), answer(said), pairs(5)),
	} {
		if got := lefts(restored(t, pasts(), past, nil, true)); got != "" {
			t.Errorf("%s: active %q, want nothing", name, got)
		}
	}
}

// A restored skill is rendered once, by its event, and then behaves like a
// loaded one.
func TestRestoredSkillsContinue(t *testing.T) {
	s := restored(t, pasts(), history(user("x"), answer("so", "report", "a"), pairs(3)), nil, false)
	var reported []string
	for _, e := range s.Events(0) {
		if e.Loaded == nil || !e.Loaded.Direct || e.Loaded.Tokens == 0 || e.Loaded.Digest == "" {
			t.Errorf("event %+v is not a load that is reported", e)
		}
		reported = append(reported, e.Loaded.Text)
	}
	if text := strings.Join(reported, "\n"); strings.Count(text, "Report.") != 1 || strings.Count(text, "Do a.") != 1 {
		t.Errorf("got is %q", text)
	}
	if l := s.Events(0)[0].Loaded; l.RequiredBy != "report" {
		t.Errorf("%s is loaded for %q, want report", l.Skill.Name, l.RequiredBy)
	}
	if r := load(t, s, "a"); r.State != session.StateAlreadyLoaded {
		t.Errorf("a load of what was restored is %s, want already", r.State)
	}
	if got := lefts(s); got != "base 2, report 2, a 5" {
		t.Errorf("active skills: %q: a load begins the time again", got)
	}
	for range 3 {
		if err := s.AddMessage(t.Context(), llm.User, "x"); err != nil {
			t.Fatal(err)
		}
	}
	if got := lefts(s); got != "a 2" {
		t.Errorf("three turns later active %q", got)
	}
}

func TestRestoreLimits(t *testing.T) {
	t.Run("tokens: most recently used stays", func(t *testing.T) {
		sh := &shelf{}
		for _, name := range []string{"a", "b", "c", "base"} {
			sh.put(name, strings.Repeat("word ", 100))
		}
		sh.put("d", strings.Repeat("word ", 100), "base")
		one := sh.skills["a"].Tokens
		past := history(user("x"), answer("so", "a"), user("x"), answer("so", "b"), user("x"), answer("so", "c"), user("x"), answer("so", "d"))
		for budget, want := range map[int]string{
			1:         "base 5, d 5",
			3 * one:   "c 4, base 5, d 5",
			4*one + 1: "b 3, c 4, base 5, d 5",
			0:         "a 2, b 3, c 4, base 5, d 5",
		} {
			if got := lefts(restored(t, sh, past, &session.Options{Budget: budget}, false)); got != want {
				t.Errorf("within %d tokens %q, want %q", budget, got, want)
			}
		}
	})
	t.Run("names", func(t *testing.T) {
		sh := &shelf{}
		past := history(user("x"))
		for i := range 1000 {
			name := fmt.Sprint("s", i)
			sh.put(name, "x")
			past = append(past, answer("so", name))
		}
		if s := restored(t, sh, past, nil, false); len(s.Active()) != 64 || s.Active()[63].Skill.Name != "s999" || sh.fetches != 64 {
			t.Errorf("%d skills of 1,000 were restored, with %d fetches", len(s.Active()), sh.fetches)
		}
	})
	t.Run("names in one note", func(t *testing.T) {
		names := slices.Repeat([]string{"a"}, 100_000)
		if got := lefts(restored(t, pasts(), history(user("x"), answer("so", append(names, "b", "b")...)), nil, false)); got != "a 5, b 5" {
			t.Errorf("active skills: %q", got)
		}
	})
	t.Run("a name", func(t *testing.T) {
		sh, long := pasts(), strings.Repeat("n", 257)
		sh.put(long, "x")
		if got := lefts(restored(t, sh, history(user("x"), answer("so", long, "a")), nil, false)); got != "a 5" {
			t.Errorf("active skills: %q", got)
		}
	})
	t.Run("arguments", func(t *testing.T) {
		long := `{"skill_name":"a","x":"` + strings.Repeat("y", 100_000) + `"}`
		if got := lefts(restored(t, pasts(), history(user("x"), call("load_skill", long)), nil, false)); got != "" {
			t.Errorf("active skills: %q", got)
		}
	})
}

// unreadable is a shelf with one skill that cannot be read.
type unreadable struct {
	*shelf
	name string
}

func (u unreadable) Fetch(ctx context.Context, ref string) ([]*session.Skill, error) {
	if ref == u.name {
		return nil, errors.New("disk on fire")
	}
	return u.shelf.Fetch(ctx, ref)
}

func TestRestoreContinuesAfterUnreadableSkill(t *testing.T) {
	past := history(user("x"), answer("so", "a", "b", "c"))
	all, err := session.PastLoads(t.Context(), unreadable{pasts(), "b"}, past, nil, false)
	if err == nil || !strings.Contains(err.Error(), `restore skill "b": disk on fire`) {
		t.Errorf("error %v", err)
	}
	if got := kinds(all); !slices.Equal(got, []string{"loaded a", "loaded c"}) {
		t.Errorf("restored %q", got)
	}
	s := withOptions(t, unreadable{pasts(), "b"}, session.Options{})
	if err := s.Restore(t.Context(), past, nil); err == nil || lefts(s) != "a 5, c 5" {
		t.Errorf("a session has %q active, error %v", lefts(s), err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if all, err := session.PastLoads(ctx, pasts(), past, nil, false); len(all) != 0 || err == nil || err.Error() != "enough" {
		t.Errorf("after the end: %d events, %v", len(all), err)
	}
}

// W13, W14: an answer records the skills that the model loaded or used in its
// turn.
func TestW13LoadedSkillsOfTurn(t *testing.T) {
	sh := pasts()
	s := open(t, &session.MemoryLog{}, sh)
	turn := func(want ...string) {
		t.Helper()
		got := s.LoadedSkills()
		if !slices.Equal(got, want) {
			t.Errorf("turn %d: %q, want %q", s.Turn(), got, want)
		}
		if got == nil {
			t.Error("none is null, not an empty list: a note of nothing would be no note")
		}
		if err := s.AddMessage(t.Context(), llm.User, "next"); err != nil {
			t.Fatal(err)
		}
	}
	as := func(ref string, o session.LoadOptions) {
		t.Helper()
		if _, err := s.Load(t.Context(), ref, &o); err != nil {
			t.Fatal(err)
		}
	}
	as("c", session.LoadOptions{Retention: session.RetainPinned, Direct: true}) // W14: preloaded
	turn()
	load(t, s, "report")
	load(t, s, "zzz") // fails
	turn("report")    // without its dependency base
	turn()
	load(t, s, "report") // a repeated load counts
	as("a", session.LoadOptions{Direct: true})
	as("b", session.LoadOptions{Retention: session.RetainOnce})
	turn("report")
	for _, name := range []string{"a", "c"} { // the model uses skills loaded by others
		if err := s.RecordUse(t.Context(), sh.skills[name].ID); err != nil {
			t.Fatal(err)
		}
	}
	turn("a")
	load(t, s, "b")
	if _, err := s.Unload(t.Context(), "b", "enough", false); err != nil {
		t.Fatal(err)
	}
	turn()
	load(t, s, "base")
	turn("base")
}

// Restoring from a history of any length reads only the last turns. The goal in
// facts/cost.md is one millisecond.
func BenchmarkRestore20000(b *testing.B) {
	sh := pasts()
	for name, past := range map[string][]session.PastMessage{
		"notes": history(pairs(9_990), user("x"), answer("so", "a", "b"), pairs(3), user("x"), call("load_skill", `{"skill_name":"c"}`), answer("so")),
		"text":  history(pairs(9_990), user("x"), answer("Skill 'a' has been loaded.\nNow this."), pairs(4)),
		"none":  pairs(10_000),
		"users": slices.Repeat([]session.PastMessage{user("x")}, 20_000),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := session.PastLoads(b.Context(), sh, past, nil, name == "text"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
