package agent_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// editable is a talk about skills in a directory.
type editable struct {
	*talk
	root string
}

func newEditable(t *testing.T, mode session.UpdateMode, answers ...*llm.Answer) *editable {
	t.Helper()
	e := &editable{root: t.TempDir()}
	e.edit(t, "tides", "Add one hour in summer.")
	for _, name := range []string{"ships", "tunes", "trees", "tiles"} {
		e.edit(t, name, "All about "+name+".")
	}
	rt, err := loadout.New(t.Context(), &loadout.Options{Sources: []catalog.Source{catalog.NewDir("mine", catalog.User, e.root, nil)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	s, err := rt.NewSession(t.Context(), &session.Options{ID: "talk", Updates: mode})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	e.talk = &talk{model: &script{answers: answers}, session: s}
	e.Agent = agent.New(e.model, s, nil)
	return e
}

// edit writes the SKILL.md of a skill, as if it had been changed an hour ago.
func (e *editable) edit(t *testing.T, name, body string) {
	t.Helper()
	dir := filepath.Join(e.root, name)
	file := filepath.Join(dir, "SKILL.md")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("---\nname: "+name+"\ndescription: About "+name+".\n---\n"+body+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(file, old, old); err != nil {
		t.Fatal(err)
	}
}

// After a file is edited, the conversation gets an event with the next message
// and keeps the earlier text until the skill is loaded again.
func TestChangedSkillIsAnnouncedWithTheNextMessage(t *testing.T) {
	e := newEditable(t, session.UpdateNotify, calls(load("1", "tides")), says("1"), says("2"), says("3"), calls(load("2", "tides")), says("4"))
	e.turn(t, "When is high water?")
	e.edit(t, "tides", "Add two hours in summer.")
	e.edit(t, "ships", "Ships are short.") // not loaded, so not announced
	e.told = nil
	e.turn(t, "And tomorrow?")
	if want := []string{"skill_updated tides", "text", "usage", "done"}; !slices.Equal(e.told, want) {
		t.Errorf("events %q, want %q", e.told, want)
	}
	notice := []string{"The skill tides changed after it was loaded. Load it again before you follow it."}
	if got := e.notices(); !slices.Equal(got, notice) {
		t.Errorf("notices %q, want %q", got, notice)
	}
	messages := e.model.requests[len(e.model.requests)-1].Messages
	if last := messages[len(messages)-1]; last.Text() != "And tomorrow?" || strings.Contains(allText(messages), "two hours") {
		t.Errorf("the request ends with %q; it has the text %q", last.Text(), allText(messages))
	}
	e.told = nil
	e.turn(t, "Go on.")
	if got := e.notices(); !slices.Equal(got, notice) || slices.Contains(e.told, "skill_updated tides") {
		t.Errorf("announced again: %q, %q", got, e.told)
	}
	e.turn(t, "Load it.")
	if messages := e.model.requests[len(e.model.requests)-1].Messages; !strings.Contains(allText(messages), "Add two hours in summer.") {
		t.Errorf("after it was loaded again: %q", allText(messages))
	}
	e.prefixes(t)
}

// allText returns the texts of messages and tool results.
func allText(messages []llm.Message) string {
	var b strings.Builder
	for _, m := range messages {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case llm.Text:
				b.WriteString(string(p) + "\n")
			case llm.Result:
				b.WriteString(allText([]llm.Message{{Parts: p.Parts}}))
			}
		}
	}
	return b.String()
}

// With the mode reload, the new text comes with the next message.
func TestChangedSkillIsLoadedAgain(t *testing.T) {
	e := newEditable(t, session.UpdateReload, calls(load("1", "tides")), says("1"), says("2"))
	e.turn(t, "When is high water?")
	e.edit(t, "tides", "Add two hours in summer.")
	e.told = nil
	e.turn(t, "And tomorrow?")
	if want := []string{"skill_updated tides", "skill_loaded tides", "text", "usage", "done"}; !slices.Equal(e.told, want) {
		t.Errorf("events %q, want %q", e.told, want)
	}
	if got := e.notices(); len(got) != 2 || !strings.HasPrefix(got[0], "The skill tides has changed.") || !strings.Contains(got[1], "Add two hours in summer.") {
		t.Errorf("notices %q", got)
	}
	e.prefixes(t)
}

// With the mode pin, nothing is announced.
func TestChangedSkillStaysPinned(t *testing.T) {
	e := newEditable(t, session.UpdatePin, calls(load("1", "tides")), says("1"), calls(load("2", "tides")), says("2"))
	e.turn(t, "When is high water?")
	e.edit(t, "tides", "Add two hours in summer.")
	e.told = nil
	e.turn(t, "And tomorrow?")
	messages := e.model.requests[len(e.model.requests)-1].Messages
	if slices.Contains(e.told, "skill_updated tides") || len(e.notices()) > 0 || strings.Contains(allText(messages), "two hours") {
		t.Errorf("events %q, texts %q", e.told, allText(messages))
	}
}

// The user's command loads the current version, so that it is not announced.
func TestInvokedSkillIsNotAnnounced(t *testing.T) {
	e := newEditable(t, session.UpdateNotify, calls(load("1", "tides")), says("1"), says("2"))
	e.turn(t, "When is high water?")
	e.edit(t, "tides", "Add two hours in summer.")
	e.told = nil
	if err := e.InvokeSkill(t.Context(), "tides", "", e.tell); err != nil {
		t.Fatal(err)
	}
	if got := e.notices(); len(got) != 1 || !strings.Contains(got[0], "two hours") || slices.Contains(e.told, "skill_updated tides") {
		t.Errorf("notices %q, events %q", got, e.told)
	}
}

// A compaction keeps the earlier text, and the model is told again that it
// changed.
func TestCompactionKeepsTheAnnouncement(t *testing.T) {
	e := newEditable(t, session.UpdateNotify, calls(load("1", "tides")), says("1"), says("2"), says("Short."))
	e.turn(t, "When is high water?")
	e.edit(t, "tides", "Add two hours in summer.")
	e.turn(t, "And tomorrow?")
	if err := e.Compact(t.Context(), e.tell); err != nil {
		t.Fatal(err)
	}
	for _, ev := range e.session.Events(0) {
		if ev.Compacted != nil && (!strings.Contains(ev.Compacted.Text, "one hour") || !strings.Contains(ev.Compacted.Text, "The skill tides changed after it was loaded.")) {
			t.Errorf("compacted to %q", ev.Compacted.Text)
		}
	}
}

// A message checks unchanged skills by the stamps of their files: it does not
// notice new content under the same stamp, because it does not read it.
func TestMessageDoesNotReadUnchangedSkills(t *testing.T) {
	names := []string{"tides", "ships", "tunes", "trees", "tiles"}
	e := newEditable(t, session.UpdateNotify, says("1"), says("2"))
	for _, name := range names {
		if r, err := e.session.Load(t.Context(), name, nil); err != nil || r.State != session.StateLoaded {
			t.Fatal(r, err)
		}
	}
	e.turn(t, "first") // records the stamps
	for _, name := range names {
		rewriteSameStamp(t, filepath.Join(e.root, name, "SKILL.md"))
	}
	e.turn(t, "second")
	if got := e.notices(); len(got) > 0 {
		t.Errorf("the files were read: %q", got)
	}
}

// rewriteSameStamp changes the content of a file but not its stamp.
func rewriteSameStamp(t *testing.T, file string) {
	t.Helper()
	fi, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.ToUpper(string(text))), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(file, fi.ModTime(), fi.ModTime()); err != nil {
		t.Fatal(err)
	}
}
