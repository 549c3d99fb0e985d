package chat_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// inForce returns the active skills with their remaining turns.
func inForce(t *testing.T, e *chat.Engine, id string) []string {
	t.Helper()
	all, err := e.ActiveSkills(t.Context(), ada, id)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, s := range all {
		left := "for good"
		if s.TurnsLeft != nil {
			left = fmt.Sprint(*s.TurnsLeft)
		}
		out = append(out, s.Skill.Name+" "+left)
	}
	return out
}

func wantSkills(t *testing.T, e *chat.Engine, id string, want ...string) {
	t.Helper()
	if got := inForce(t, e, id); !slices.Equal(got, want) {
		t.Errorf("active skills: %q, want %q", got, want)
	}
}

// W12: a skill stays active for the turn in which it is loaded and five more; each use
// restarts that. W18: it is active on any node that runs the next turn.
func TestW12Retention(t *testing.T) {
	eachDatabase(t, func(t *testing.T, open func() *store.DB) {
		nodes := []*chat.Engine{node(t, open(), setupFixture{}), node(t, open(), setupFixture{})}
		id := begin(t, nodes[0])
		turns := 0
		turn := func(text string) {
			t.Helper()
			turns++
			e := nodes[turns%2]
			if ev := end(t, e, id, say(t, e, id, text)); ev.Reason != chat.Done {
				t.Fatalf("it ended as %+v", ev)
			}
		}
		turn(`call load_skill {"name": "tides"}`)
		wantSkills(t, nodes[0], id, "tides 5")
		turn("one")
		turn("two")
		wantSkills(t, nodes[1], id, "tides 3")
		turn(`call load_skill {"name": "tides"}`)
		wantSkills(t, nodes[0], id, "tides 5")
		for range 5 {
			turn("again")
		}
		wantSkills(t, nodes[0], id, "tides 0")
		turn("and gone")
		wantSkills(t, nodes[0], id)
	})
}

// W13: the skills that were loaded or used are stored with the last response of the
// turn, and the history activates them elsewhere.
func TestW13LoadedSkillsInHistory(t *testing.T) {
	e := node(t, storetest.Open(t, storetest.SQLite(t)), setupFixture{preload: []string{"ships"}})
	id := begin(t, e)
	for _, text := range []string{"hello", `call load_skill {"name": "harbour"}`, "thanks"} {
		end(t, e, id, say(t, e, id, text))
	}
	h, err := e.History(t.Context(), ada, id, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	var past []session.PastMessage
	for _, l := range h.Messages {
		past = append(past, l.PastMessage)
		if l.Role == llm.Assistant {
			got = append(got, fmt.Sprint(l.LoadedSkills, len(l.Calls)))
		}
	}
	// W14: preloaded skills are not among them.
	if want := []string{"[] 0", "[] 1", "[harbour] 0", "[] 0"}; !slices.Equal(got, want) {
		t.Errorf("answers have %q, want %q", got, want)
	}
	rt, err := loadout.New(t.Context(), &loadout.Options{Sources: []catalog.Source{catalog.NewFS("mine", catalog.User, skills)}})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	s, err := rt.NewSession(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Restore(t.Context(), past, nil); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, a := range s.Active() {
		names = append(names, a.Skill.Name)
	}
	if !slices.Equal(names, []string{"tides", "harbour"}) {
		t.Errorf("the history brings back %v", names)
	}
}

// History comes in parts, and says from where to watch for the rest.
func TestHistoryPages(t *testing.T) {
	e := node(t, storetest.Open(t, storetest.SQLite(t)), setupFixture{})
	id := begin(t, e)
	for i := range 4 {
		end(t, e, id, say(t, e, id, fmt.Sprint("message ", i)))
	}
	var got []string
	var told int64
	for after := int64(0); ; {
		h, err := e.History(t.Context(), ada, id, after, 3)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range h.Messages {
			got = append(got, l.Text)
		}
		told = h.LastEvent
		if after = h.Next; after == 0 {
			break
		}
		if len(h.Messages) != 3 {
			t.Errorf("a part that is not the last has %d lines", len(h.Messages))
		}
	}
	if len(got) != 8 || got[0] != "message 0" || got[7] != "you said: message 3" {
		t.Errorf("the parts are %q", got)
	}
	say(t, e, id, "more")
	if next := until(t, e, id, told, isType(chat.TurnEnded))[0]; next.Text != "more" {
		t.Errorf("after the history comes %+v", next)
	}
	if usage, err := e.ModelUsage(t.Context(), ada, id); err != nil || usage.Models["script:1"].Input != 50 || usage.Models["script:1"].Output != 10 || usage.Last.Prompt() != 10 || usage.Model != "script:1" {
		t.Errorf("spent %v, %v", usage, err)
	}
}

// W14: preloaded skills are active before the first response and permanently. Those that
// cannot be loaded are reported.
func TestW14Preload(t *testing.T) {
	e := node(t, storetest.Open(t, storetest.SQLite(t)), setupFixture{preload: []string{"tides", "nothing"}})
	id := begin(t, e)
	n := say(t, e, id, "hello")
	all := until(t, e, id, 0, func(ev chat.Event) bool { return ev.Type == chat.TurnEnded && ev.Input == n })
	if text := isReported(all); !strings.HasPrefix(text, "said, begun, skill_loaded, notice, begun, user") {
		t.Errorf("got %s", text)
	}
	wantSkills(t, e, id, "tides for good")
}

// A user loads and unloads manually: the command waits for its turn on any node and
// returns the result.
func TestManualLoad(t *testing.T) {
	eachDatabase(t, func(t *testing.T, open func() *store.DB) {
		a, b := node(t, open(), setupFixture{}), node(t, open(), setupFixture{})
		id := begin(t, a)
		l, err := b.Load(t.Context(), ada, id, "harbour", session.RetainPinned)
		if err != nil || l.State != session.StateLoaded || l.Skill != "harbour" || !slices.Equal(l.Dependencies, []string{"tides"}) {
			t.Fatalf("loaded %+v, %v", l, err)
		}
		wantSkills(t, a, id, "tides for good", "harbour for good")
		if l, err := a.Load(t.Context(), ada, id, "harbour", session.RetainPinned); err != nil || l.State != session.StateAlreadyLoaded {
			t.Errorf("again: %+v, %v", l, err)
		}
		if l, err := a.Load(t.Context(), ada, id, "nothing", ""); err != nil || l.State != session.StateFailed || len(l.Problems) == 0 {
			t.Errorf("of nothing: %+v, %v", l, err)
		}
		var failed *chat.CommandError
		if _, err := a.Unload(t.Context(), ada, id, "tides", false); !errors.As(err, &failed) || failed.Reason != chat.Failed || !strings.Contains(err.Error(), "needed by harbour") {
			t.Errorf("what another needs: %v", err)
		}
		if unloaded, err := b.Unload(t.Context(), ada, id, "tides", true); err != nil || !slices.Equal(unloaded, []string{"harbour", "tides"}) {
			t.Errorf("unloaded %v, %v", unloaded, err)
		}
		wantSkills(t, b, id)
		for _, wrong := range []func() error{
			func() error { _, err := a.Load(t.Context(), ada, id, "", ""); return err },
			func() error { _, err := a.Load(t.Context(), ada, id, "tides", "sometimes"); return err },
			func() error { _, err := a.Unload(t.Context(), ada, id, strings.Repeat("x", 2000), false); return err },
		} {
			if err := wrong(); !errors.Is(err, chat.ErrInvalid) {
				t.Errorf("got %v", err)
			}
		}
	})
}

// A message that names a skill uses it. An unknown skill is reported, and the message is
// kept.
func TestInvokedSkill(t *testing.T) {
	e := node(t, storetest.Open(t, storetest.SQLite(t)), setupFixture{})
	id := begin(t, e)
	n, err := e.SendMessage(t.Context(), ada, id, chat.Message{Skill: "tides", Text: "of Rome"})
	if err != nil {
		t.Fatal(err)
	}
	if ev := end(t, e, id, n); ev.Reason != chat.Done || !strings.HasPrefix(transcript(t, e, id), "user: /tides of Rome\n") {
		t.Errorf("it ended as %+v\n%s", ev, transcript(t, e, id))
	}
	wantSkills(t, e, id, "tides 5")
	if n, err = e.SendMessage(t.Context(), ada, id, chat.Message{Skill: "nothing", Text: "x"}); err != nil {
		t.Fatal(err)
	}
	if ev := end(t, e, id, n); ev.Reason != chat.Failed || !strings.Contains(ev.Text, "nothing") {
		t.Errorf("turn ended as %+v", ev)
	}
}

// A conversation is put in short when its turn comes.
func TestCompact(t *testing.T) {
	e := node(t, storetest.Open(t, storetest.SQLite(t)), setupFixture{})
	id := begin(t, e)
	end(t, e, id, say(t, e, id, "hello"))
	n, err := e.Compact(t.Context(), ada, id)
	if err != nil {
		t.Fatal(err)
	}
	if ev := end(t, e, id, n); ev.Reason != chat.Done {
		t.Errorf("turn ended as %+v", ev)
	}
	if usage, err := e.ModelUsage(t.Context(), ada, id); err != nil || usage.Models["script:1"].Input != 20 || usage.Last != nil {
		t.Errorf("one message and its compaction used %+v, %v", usage, err)
	}
	if n, err = e.Compact(t.Context(), ada, id); err != nil {
		t.Fatal(err)
	}
	if ev := end(t, e, id, n); ev.Reason != chat.Failed || !strings.Contains(ev.Text, "nothing to compact") {
		t.Errorf("a second time it ended as %+v", ev)
	}
}

// What skills are used for is counted once, whatever node it happens on.
func TestUsageIsCounted(t *testing.T) {
	eachDatabase(t, func(t *testing.T, open func() *store.DB) {
		db := open()
		made, err := db.Skills.Create(t.Context(), store.Skill{Namespace: store.Public, Name: "tides", CreatedBy: "ada"})
		if err != nil {
			t.Fatal(err)
		}
		k := setupFixture{skillID: func(name string) string {
			if name == "tides" {
				return made.ID
			}
			return ""
		}, tools: deadly(nil, &counter{}, &counter{}, &counter{})}
		nodes := []*chat.Engine{node(t, db, k), node(t, open(), k)}
		id := begin(t, nodes[0])
		for i, text := range []string{`call load_skill {"name": "harbour"}`, `call file {"skill": "tides"}`, `call nothing {"skill": "tides"}`, `call file {"skill": "ships"}`} {
			e := nodes[i%2]
			end(t, e, id, say(t, e, id, text))
		}
		sum, err := db.Usage.Sum(t.Context(), []string{made.ID}, time.Now().Add(-time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		if u := sum[made.ID]; u.Loads != 1 || u.Calls != 2 || u.Errors != 1 || u.Tokens == 0 {
			t.Errorf("counted %+v", u)
		}
	})
}
