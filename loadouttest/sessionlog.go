package loadouttest

import (
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
	"github.com/loadout-dev/loadout/skill"
)

// SessionLog tests a log of session events. For each test, it calls open, which
// must return a new, empty log. To close it, open can use [testing.T.Cleanup].
// Some tests append concurrently.
func SessionLog(t *testing.T, open func(t *testing.T) session.Log) {
	for name, test := range map[string]func(*testing.T, session.Log){
		"new log":                      testEmptyLog,
		"order":                        testEventOrder,
		"round trip":                   testEventRoundTrip,
		"read after a sequence number": testReadAfter,
		"append nothing":               testAppendNothing,
		"concurrent appends":           testConcurrentAppend,
		"atomic appends":               testAtomicAppend,
		"copies":                       testEventCopies,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

func testEmptyLog(t *testing.T, l session.Log) {
	if got := readEvents(t, l, 0); len(got) != 0 {
		t.Errorf("new log has %d events", len(got))
	}
}

func testEventOrder(t *testing.T, l session.Log) {
	appendMessages(t, l, "one", "two")
	appendMessages(t, l, "three")
	if got, want := messageTexts(readEvents(t, l, 0)), []string{"one", "two", "three"}; !slices.Equal(got, want) {
		t.Errorf("read %q, want %q", got, want)
	}
}

func testEventRoundTrip(t *testing.T, l session.Log) {
	id := session.ID{Name: "pdf", Origin: "user.claude", Dir: "tools/pdf"}
	at := time.Date(2026, 11, 20, 10, 11, 12, 123456789, time.UTC)
	want := []session.Event{
		{Time: at, Type: "message", Message: &session.Message{Role: llm.User, Text: "line\nline \u2028 <b> \"quoted\" 指南"}},
		{Time: at, Type: "skill_loaded", Loaded: &session.SkillLoad{Skill: id, Digest: "sha256:1", Text: "body\n", Tokens: 3, RequiredBy: "report", Needs: []string{"csv"},
			Files: []skill.File{{Path: "scripts/run.py", Size: 5, Script: true}}}},
		{Time: at, Type: "skill_updated", Updated: &session.SkillUpdate{Skill: id, Old: "sha256:1", Digest: "sha256:2"}},
		{Time: at, Type: "skill_unloaded", Unloaded: &session.SkillUnload{Skill: id, Reason: "no longer needed"}},
		{Time: at, Type: "branched", Branched: &session.Branch{After: 2}},
		{Time: at, Type: "unknown"},
	}
	ptrs := make([]*session.Event, len(want))
	for i := range want {
		ptrs[i] = &want[i]
	}
	if err := l.Append(t.Context(), ptrs...); err != nil {
		t.Fatal(err)
	}
	for i, e := range want {
		if e.Seq != int64(i)+1 {
			t.Errorf("event %d has the sequence number %d", i+1, e.Seq)
		}
	}
	if diff := cmp.Diff(want, readEvents(t, l, 0)); diff != "" {
		t.Errorf("events differ (-appended +read):\n%s", diff)
	}
}

func testReadAfter(t *testing.T, l session.Log) {
	appendMessages(t, l, "1", "2", "3", "4")
	for _, tt := range []struct {
		after int64
		want  []string
	}{
		{-1, []string{"1", "2", "3", "4"}},
		{0, []string{"1", "2", "3", "4"}},
		{2, []string{"3", "4"}},
		{4, nil},
		{99, nil},
	} {
		if got := messageTexts(readEvents(t, l, tt.after)); !slices.Equal(got, tt.want) {
			t.Errorf("after %d: read %q, want %q", tt.after, got, tt.want)
		}
	}
}

func testAppendNothing(t *testing.T, l session.Log) {
	if err := l.Append(t.Context()); err != nil {
		t.Fatal(err)
	}
	appendMessages(t, l, "one")
	if got := readEvents(t, l, 0); len(got) != 1 || got[0].Seq != 1 {
		t.Errorf("got %+v, want one event with sequence number 1", got)
	}
}

func testConcurrentAppend(t *testing.T, l session.Log) {
	const writers, each = 8, 20
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for range each {
				if err := l.Append(t.Context(), newMessage("x")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	events := readEvents(t, l, 0)
	if len(events) != writers*each {
		t.Errorf("%d events, want %d", len(events), writers*each)
	}
	for i, e := range events {
		if e.Seq != int64(i)+1 {
			t.Fatalf("event %d of the log has the sequence number %d", i+1, e.Seq)
		}
	}
}

func testAtomicAppend(t *testing.T, l session.Log) {
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 10 {
				text := strconv.Itoa(100*i + j)
				if err := l.Append(t.Context(), newMessage(text), newMessage(text)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for pair := range slices.Chunk(messageTexts(readEvents(t, l, 0)), 2) {
		if len(pair) != 2 || pair[0] != pair[1] {
			t.Fatalf("events of one append are not together: %q", pair)
		}
	}
}

func testEventCopies(t *testing.T, l session.Log) {
	e := &session.Event{Type: "skill_loaded", Loaded: &session.SkillLoad{Text: "body", Needs: []string{"a"}, Files: []skill.File{{Path: "x"}}}}
	if err := l.Append(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	spoil := func(e *session.Event) {
		e.Loaded.Text, e.Loaded.Needs[0], e.Loaded.Files[0].Path = "changed", "changed", "changed"
	}
	before := readEvents(t, l, 0)
	spoil(e)
	spoil(&readEvents(t, l, 0)[0])
	if diff := cmp.Diff(before, readEvents(t, l, 0)); diff != "" {
		t.Errorf("an event of the log changed:\n%s", diff)
	}
}

func newMessage(text string) *session.Event {
	return &session.Event{Type: "message", Message: &session.Message{Role: llm.User, Text: text}}
}

func appendMessages(t *testing.T, l session.Log, texts ...string) {
	t.Helper()
	var events []*session.Event
	for _, text := range texts {
		events = append(events, newMessage(text))
	}
	if err := l.Append(t.Context(), events...); err != nil {
		t.Fatal(err)
	}
}

func readEvents(t *testing.T, l session.Log, after int64) []session.Event {
	t.Helper()
	events, err := l.Read(t.Context(), after)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func messageTexts(events []session.Event) []string {
	var out []string
	for _, e := range events {
		out = append(out, e.Message.Text)
	}
	return out
}
