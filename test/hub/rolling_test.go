//go:build unix

package hub_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/chat"
)

func TestStoppingNodeFinishesItsTurns(t *testing.T) {
	h, m, l := onPostgres(t, "--drain", "60s"), newModel(t, time.Millisecond), newLedger(t)
	one, two := h.start(), h.start()
	one.hire(m, l)
	session := one.begin()
	w := one.watch(session, "")
	one.say(session, calls("write", "before"), calls("hold", "long"), calls("write", "behind"))
	<-l.begun
	one.tell()
	if _, err := w.until(func(chat.Event) bool { return false }); !errors.Is(err, errBye) {
		t.Errorf("the stream ends with %v", err)
	}
	seen := w.seen
	w = two.watch(session, w.last)
	l.letGo()
	if end := two.until(w, isType(chat.TurnEnded)); end.Reason != chat.Done {
		t.Errorf("it ended as %+v", end)
	}
	one.exit()
	if err := inOrder(append(seen, w.seen...)); err != nil {
		t.Error(err)
	}
	all := must(two.told(session))(t)
	got := results(all)
	for _, what := range []string{"before", "long", "behind"} {
		if !strings.Contains(got[what], "kept "+what) || l.all()[what] != 1 {
			t.Errorf("%s was done %d times: %s", what, l.all()[what], got[what])
		}
	}
	if n := count(all, isType(chat.TurnResumed)); n != 0 {
		t.Errorf("%d other nodes went on with it", n)
	}
}

func TestStoppingNodeHandsTurnsOver(t *testing.T) {
	h, m, l := onPostgres(t, "--drain", "1s"), newModel(t, time.Millisecond), newLedger(t)
	one, two := h.start(), h.start()
	one.hire(m, l)
	session := one.begin()
	w := two.watch(session, "")
	one.say(session, calls("hold", "for ever"), calls("write", "behind"))
	<-l.begun
	one.stop()
	if end := two.until(w, isType(chat.TurnEnded)); end.Reason != chat.Done {
		t.Errorf("it ended as %+v", end)
	}
	if err := inOrder(w.seen); err != nil {
		t.Error(err)
	}
	if n := count(w.seen, isType(chat.TurnResumed)); n != 1 {
		t.Errorf("it was resumed %d times", n)
	}
	if got, all := results(w.seen), l.all(); !strings.Contains(got["for ever"], unknown) || all["for ever"] != 1 || all["behind"] != 1 {
		t.Errorf("done %v: %v", all, got)
	}
}

// Skills that are switched off on one node end the turns of all, and let none begin, until
// they are switched on again.
func TestKillSwitchOfAllNodes(t *testing.T) {
	h, m, l := onPostgres(t), newModel(t, time.Millisecond), newLedger(t)
	one, two := h.start(), h.start()
	one.hire(m, l)
	session := two.begin()
	w := one.watch(session, "")
	two.say(session, calls("hold", "long"), calls("write", "behind"))
	<-l.begun
	set := func(enabled bool) {
		t.Helper()
		var now map[string]any
		one.send("GET", "/api/v1/settings/skills", nil).want(t, 200).into(t, &now)
		one.send("PUT", "/api/v1/settings/skills", map[string]any{"enabled": enabled, "allow": []string{}, "generation": now["generation"]}).want(t, 200)
	}
	set(false)
	end := one.until(w, isType(chat.TurnEnded))
	if end.Reason == chat.Done || !strings.Contains(end.Text, "switched off") {
		t.Errorf("it ended as %+v", end)
	}
	if l.all()["behind"] != 0 {
		t.Error("it went on")
	}
	ended := func(n *node, text string) chat.Event {
		t.Helper()
		session := n.begin()
		w := one.watch(session, "")
		defer w.close()
		n.say(session, text)
		return one.until(w, isType(chat.TurnEnded))
	}
	for _, n := range []*node{one, two} {
		if end := ended(n, calls("write", "while it is off")); end.Reason != chat.Failed || !strings.Contains(end.Text, "switched off") {
			t.Errorf("a turn while it is off ended as %+v", end)
		}
	}
	set(true)
	two.eventually("skills are on again", func() bool { return ended(two, calls("write", "again")).Reason == chat.Done })
	if n := l.all()["while it is off"]; n != 0 {
		t.Errorf("%d calls were made while it was off", n)
	}
}
