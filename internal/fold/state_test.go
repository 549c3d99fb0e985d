package fold_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/loadout-dev/loadout/internal/fold"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// anyEvent returns any event that a log can contain, even if it makes no sense.
func anyEvent() *rapid.Generator[session.Event] {
	id := rapid.Custom(func(t *rapid.T) string { return fmt.Sprint(rapid.IntRange(1, 4).Draw(t, "id")) })
	text := rapid.SampledFrom([]string{"", "a", "words", strings.Repeat("many words ", 300)})
	tides := session.ID{Name: "tides", Origin: "mine", Dir: "tides"}
	usage := rapid.SampledFrom([]*llm.Usage{nil, {}, {Input: 30, CacheRead: 70, Output: 5}})
	names := rapid.SampledFrom([][]string{nil, {"tides"}, {"tides", "ships"}})
	stop := rapid.SampledFrom([]string{"end", "tools", "pause", "cut"})
	return rapid.Custom(func(t *rapid.T) session.Event {
		switch rapid.IntRange(0, 13).Draw(t, "kind") {
		case 0, 1:
			return session.Event{Message: &session.Message{Role: llm.User, Text: text.Draw(t, "text"), Images: rapid.SampledFrom([][]llm.Image{nil, {{MIMEType: "image/png", Name: "a.png", Ref: "1"}}}).Draw(t, "images")}}
		case 2, 3, 4:
			m := &session.Message{Role: llm.Assistant, Text: text.Draw(t, "text"), Usage: usage.Draw(t, "usage"), Model: "m", Stop: stop.Draw(t, "stop")}
			for _, id := range rapid.SliceOfN(id, 0, 3).Draw(t, "calls") {
				m.Calls = append(m.Calls, llm.Call{ID: id, Name: "count", Arguments: "{}"})
			}
			if rapid.Bool().Draw(t, "thinks") {
				m.Thinking = []llm.Thinking{{Vendor: "v", Text: "hm", Signature: "s"}}
			}
			return session.Event{Message: m}
		case 5, 6, 7:
			r := &session.CallResult{Call: id.Draw(t, "call"), Text: text.Draw(t, "text"), Error: rapid.Bool().Draw(t, "error"), Instructions: rapid.SampledFrom([]string{"", "so"}).Draw(t, "instructions")}
			if rapid.Bool().Draw(t, "image") {
				r.Images = []llm.Image{{MIMEType: "image/png", Data: []byte{1, 2}}}
			}
			return session.Event{Result: r}
		case 8:
			return session.Event{Notice: &session.Notice{Text: text.Draw(t, "text"), Skills: names.Draw(t, "names")}}
		case 9:
			return session.Event{Loaded: &session.SkillLoad{Skill: tides, Text: text.Draw(t, "text"), Direct: rapid.Bool().Draw(t, "direct")}}
		case 10:
			return session.Event{CallStarted: &session.CallStart{Call: id.Draw(t, "call")}}
		case 11:
			return session.Event{Start: &session.Start{Instructions: text.Draw(t, "text"), Skills: names.Draw(t, "names")}}
		case 12:
			return session.Event{Updated: &session.SkillUpdate{Skill: tides, Old: "1", Digest: "2"}}
		}
		return session.Event{Unloaded: &session.SkillUnload{Skill: tides, Reason: "over"}}
	})
}

// anyLog returns any log, which may contain compactions.
func anyLog() *rapid.Generator[[]session.Event] {
	return rapid.Custom(func(t *rapid.T) []session.Event {
		events := rapid.SliceOfN(anyEvent(), 0, 40).Draw(t, "events")
		for range rapid.IntRange(0, 2).Draw(t, "compactions") {
			at := rapid.IntRange(0, len(events)).Draw(t, "at")
			events = slices.Insert(events, at, session.Event{Compacted: &session.Compaction{Text: "So far.", Model: "m", Usage: &llm.Usage{Output: 3}}})
		}
		for i := range events {
			events[i].Seq = int64(i) + 1
		}
		return events
	})
}

// foldAll returns the state after the events.
func foldAll(events []session.Event) *fold.State {
	s := &fold.State{}
	for _, e := range events {
		s.Apply(e)
	}
	return s
}

// For any events, each request begins with the previous one, and each call of a
// message has one result right after it.
func TestEveryPromptIsAPrefixOfTheNext(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := rapid.SliceOfN(anyEvent(), 0, 30).Draw(t, "events")
		var before []llm.Message
		for n := range len(events) + 1 {
			_, now := foldAll(events[:n]).Request()
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

// encode returns the JSON form of a state.
func encode(t *rapid.T, s *fold.State) string {
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// For any events, a state that continues from a clone or a saved state anywhere in
// between equals the state of all events, and so do its requests. The states that it
// continues from do not change.
func TestFoldStartsAnywhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := anyLog().Draw(t, "log")
		whole := foldAll(events)
		want := encode(t, whole)
		instructions, messages := whole.Request()
		at := rapid.IntRange(0, len(events)).Draw(t, "position")
		base := foldAll(events[:at])
		before := encode(t, base)
		saved := &fold.State{}
		if err := json.Unmarshal([]byte(before), saved); err != nil {
			t.Fatal(err)
		}
		for name, s := range map[string]*fold.State{"clone": base.Clone(), "saved": saved, "clone of saved": saved.Clone()} {
			other := s.Clone() // continues on another branch
			for _, e := range events[at:] {
				s.Apply(e)
				other.Apply(session.Event{Seq: e.Seq, Message: &session.Message{Role: llm.Assistant, Text: "other", Calls: []llm.Call{{ID: "1"}}}})
			}
			if got := encode(t, s); got != want {
				t.Fatalf("%s from event %d: got\n%s\nwant\n%s", name, at, got, want)
			}
			i, m := s.Request()
			if i != instructions || !reflect.DeepEqual(m, messages) && len(m)+len(messages) > 0 {
				t.Fatalf("%s from event %d: request\n%v\nwant\n%v", name, at, m, messages)
			}
		}
		if got := encode(t, base); got != before {
			t.Fatalf("state %d changed from\n%s\nto\n%s", at, before, got)
		}
	})
}

// The answers of a state equal those computed from all events, last event first.
func TestStateEqualsWholeLog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := anyLog().Draw(t, "log")
		s := foldAll(events)
		for _, c := range []struct {
			what      string
			got, want any
		}{
			{"HasAnswer", s.HasAnswer(), hasAnswer(events)},
			{"Unanswered", s.Unanswered(), unanswered(events)},
			{"OfferedSkills", append([]string{}, s.OfferedSkills()...), append([]string{}, offered(events)...)},
			{"LastMessages", s.LastMessages(), lastMessages(events)},
		} {
			if !reflect.DeepEqual(c.got, c.want) {
				t.Fatalf("%s = %v, want %v", c.what, c.got, c.want)
			}
		}
	})
}

func hasAnswer(events []session.Event) bool {
	for _, e := range slices.Backward(events) {
		switch {
		case e.Compacted != nil:
			return false
		case e.Message != nil && e.Message.Role == llm.Assistant:
			return true
		}
	}
	return false
}

func unanswered(events []session.Event) string {
	for _, e := range slices.Backward(events) {
		switch {
		case e.Message == nil:
		case e.Message.Role == llm.User:
			return e.Message.Text
		case !fold.ContinuesTurn(e.Message):
			return ""
		}
	}
	return ""
}

func offered(events []session.Event) []string {
	lost := false
	for _, e := range slices.Backward(events) {
		lost = lost || e.Compacted != nil
		if e.Start != nil {
			return e.Start.Skills
		}
		if e.Notice != nil && e.Notice.Skills != nil && !lost {
			return e.Notice.Skills
		}
	}
	return nil
}

func lastMessages(events []session.Event) string {
	var parts []string
	size := 0
	for _, e := range slices.Backward(events) {
		if e.Message == nil || e.Message.Text == "" {
			continue
		}
		part := string(e.Message.Role) + ": " + e.Message.Text
		if size += len(part); size > 8000 {
			break
		}
		parts = append(parts, part)
	}
	slices.Reverse(parts)
	return strings.Join(parts, "\n")
}

// Tokens counts the instructions once, what follows the last count of the vendor,
// and nothing that a compaction removed.
func TestTokens(t *testing.T) {
	start := session.Event{Start: &session.Start{Instructions: strings.Repeat("word ", 100)}}
	said := session.Event{Message: &session.Message{Role: llm.User, Text: strings.Repeat("word ", 10)}}
	answer := session.Event{Message: &session.Message{Role: llm.Assistant, Text: "so", Usage: &llm.Usage{Input: 1000, Output: 50}}}
	compacted := session.Event{Compacted: &session.Compaction{Text: strings.Repeat("word ", 20)}}
	sum := func(events ...session.Event) int { return foldAll(events).Tokens() }
	instructions, words, summary := sum(start), sum(said), sum(compacted)
	for _, c := range []struct {
		events []session.Event
		want   int
	}{
		{[]session.Event{start, said}, instructions + words},
		{[]session.Event{start, said, answer}, 1050},
		{[]session.Event{start, said, answer, said}, 1050 + words},
		{[]session.Event{start, said, answer, compacted, said}, instructions + summary + words},
		{[]session.Event{start, said, answer, start, compacted}, instructions + summary},
		{[]session.Event{start, said, answer, start, said}, 1050 + instructions + words},
		{[]session.Event{start, answer, compacted, said, answer, said}, 1050 + words},
	} {
		if got := sum(c.events...); got != c.want {
			t.Errorf("%d events: %d tokens, want %d", len(c.events), got, c.want)
		}
	}
}

// If this test fails, states in databases differ from those that are computed
// again: change [fold.Format] with it.
func TestFormat(t *testing.T) {
	tides := session.ID{Name: "tides", Origin: "mine", Dir: "tides"}
	events := []session.Event{
		{Start: &session.Start{Instructions: "Help.", Skills: []string{"tides"}}},
		{Message: &session.Message{Role: llm.User, Text: "High water?"}},
		{Message: &session.Message{Role: llm.Assistant, Text: "I look.", Model: "v:m", Stop: "tools", Usage: &llm.Usage{Input: 9, Output: 2},
			Thinking: []llm.Thinking{{Vendor: "v", Text: "hm", Signature: "s"}}, Calls: []llm.Call{{ID: "1", Name: "look", Arguments: "{}"}, {ID: "2", Name: "load_skill", Arguments: "{}"}}}},
		{CallStarted: &session.CallStart{Call: "1"}},
		{Result: &session.CallResult{Call: "1", Text: "12:00", Images: []llm.Image{{MIMEType: "image/png", Data: []byte{1}}}, Instructions: "Be brief."}},
		{Loaded: &session.SkillLoad{Skill: tides, Text: "Add one hour."}},
		{Loaded: &session.SkillLoad{Skill: tides, Text: "Add one hour.", Direct: true}},
		{Updated: &session.SkillUpdate{Skill: tides}},
		{Unloaded: &session.SkillUnload{Skill: tides, Reason: "over"}},
		{Notice: &session.Notice{Text: "News.", Skills: []string{"ships"}}},
	}
	for i := range events {
		events[i].Seq = int64(i) + 1
	}
	data, err := json.Marshal(foldAll(events))
	if err != nil {
		t.Fatal(err)
	}
	const format, want = 3, `{"seq":10,"begun":true,"instructions":"Help.","messages":[{"role":"user","parts":[{"text":"High water?"}]},{"role":"assistant","parts":[{"thinking":{"vendor":"v","text":"hm","signature":"s"}},{"text":"I look."},{"call":{"id":"1","name":"look","arguments":"{}"}},{"call":{"id":"2","name":"load_skill","arguments":"{}"}}]}],"waiting":["1","2"],"results":{"1":{"parts":[{"result":{"call":"1","parts":[{"text":"12:00"},{"image":{"mime_type":"image/png","data":"AQ=="}}]}}]}},"deferred":[{"role":"notice","parts":[{"text":"Be brief."}]},{"role":"notice","parts":[{"text":"Add one hour."}]},{"role":"notice","parts":[{"text":"The skill tides changed after it was loaded. Load it again before you follow it."}]},{"role":"notice","parts":[{"text":"The skill tides is no longer in force: over. Load it again where it is needed."}]},{"role":"notice","parts":[{"text":"News."}]}],"size":2216,"start":["tides"],"known":["ships"],"recent":[{"seq":3,"time":"0001-01-01T00:00:00Z","type":"","message":{"role":"assistant","text":"I look.","thinking":[{"vendor":"v","text":"hm","signature":"s"}],"calls":[{"id":"1","name":"look","arguments":"{}"},{"id":"2","name":"load_skill","arguments":"{}"}],"model":"v:m","stop":"tools","usage":{"input":9,"cache_read":0,"cache_write":0,"output":2}}},{"seq":4,"time":"0001-01-01T00:00:00Z","type":"","started":{"call":"1"}},{"seq":5,"time":"0001-01-01T00:00:00Z","type":"","result":{"call":"1","text":"12:00","images":[{"mime_type":"image/png","data":"AQ=="}],"instructions":"Be brief."}},{"seq":6,"time":"0001-01-01T00:00:00Z","type":"","loaded":{"skill":{"name":"tides","origin":"mine","dir":"tides"},"digest":"","text":"Add one hour.","tokens":0}}],"answered":true,"unanswered":"High water?","counted":11,"later":1509,"start_tokens":2,"last":[{"role":"user","text":"High water?"},{"role":"assistant","text":"I look."}],"usage":{"v:m":{"input":9,"cache_read":0,"cache_write":0,"output":2}},"responses":1,"turn_tokens":11}`
	if string(data) != want || fold.Format != format {
		t.Errorf("format %d:\n%s\nwant format %d:\n%s", fold.Format, data, format, want)
	}
}

// The notice of an update says what the model can do about it. A name cannot add
// lines.
func TestUpdateNotice(t *testing.T) {
	tides := session.ID{Name: "tides", Origin: "mine", Dir: "tides"}
	for _, tt := range []struct {
		u    session.SkillUpdate
		want string
	}{
		{session.SkillUpdate{Skill: tides}, "The skill tides changed after it was loaded. Load it again before you follow it."},
		{session.SkillUpdate{Skill: tides, UserOnly: true}, "The skill tides changed after it was loaded. Only the user can load it again."},
		{session.SkillUpdate{Skill: tides, UserOnly: true, Restored: true}, "The skill tides was changed back to the loaded version."},
	} {
		if got := fold.UpdateNotice(&tt.u); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.u, got, tt.want)
		}
	}
	if got := fold.UpdateNotice(&session.SkillUpdate{Skill: session.ID{Name: "a\nb\u202e"}}); strings.ContainsAny(got, "\n\u202e") {
		t.Errorf("notice %q", got)
	}
}

// Images precede the text of their message. A compaction during the turn keeps them,
// and a later one does not.
func TestImagesOfUser(t *testing.T) {
	image := llm.Image{MIMEType: "image/png", Name: "a.png", Ref: "1"}
	message := session.Event{Message: &session.Message{Role: llm.User, Text: "What is it?", Images: []llm.Image{image}}}
	compacted := session.Event{Compacted: &session.Compaction{Text: "In short."}}
	images := func(events ...session.Event) (n int) {
		t.Helper()
		var s fold.State
		for i, e := range events {
			e.Seq = int64(i + 1)
			s.Apply(e)
			data, err := json.Marshal(&s)
			if err == nil {
				s = fold.State{}
				err = json.Unmarshal(data, &s)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		_, messages := s.Request()
		for _, m := range messages {
			for i, p := range m.Parts {
				if got, ok := p.(llm.Image); ok {
					if n++; i != 0 || !reflect.DeepEqual(got, image) {
						t.Errorf("part %d is %+v", i, got)
					}
				}
			}
		}
		return n
	}
	done := session.Event{Message: &session.Message{Role: llm.Assistant, Text: "A cat.", Stop: "end"}}
	if n := images(message, done); n != 1 {
		t.Errorf("%d images", n)
	}
	if n := images(message, compacted); n != 1 {
		t.Errorf("%d images after a compaction during the turn", n)
	}
	if n := images(message, done, compacted); n != 0 {
		t.Errorf("%d images after a later compaction", n)
	}
}
