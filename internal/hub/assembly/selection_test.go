package assembly_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub/assembly"
	"github.com/loadout-dev/loadout/internal/hub/chat"
)

// K17: an agent's selection limits the skills to load. A skill that the message names
// must be used: its instructions precede the first response. A skill outside the
// selection is refused.
func TestK17SelectionAndMustUse(t *testing.T) {
	w := sqlite(t)
	uploadSkills(w)
	w.apply(w.meg, "{apiVersion: loadout/v1, kind: Ghost, metadata: {name: bare, namespace: team}, spec: {skills: []}}")
	for agent, want := range map[string]string{"open": "everybodys ours pinned", "chosen": "hidden ours pinned", "bare": ""} {
		k := w.open(assembly.Request{Principal: w.bob, Kind: "Ghost", Namespace: "team", Name: agent})
		if got := names(k); got != want {
			t.Errorf("%s has %q, want %q", agent, got, want)
		}
		if e, err := k.Runtime.Catalog().Resolve(t.Context(), "everybodys"); (err == nil) != (agent == "open") {
			t.Errorf("%s finds %+v, %v", agent, e, err)
		}
	}
	named := func(agent, skill string) (reason chat.Reason, first string) {
		t.Helper()
		w.model.requests = nil
		id := w.begin(w.bob, "Ghost/team/"+agent)
		in, err := w.chat.SendMessage(t.Context(), w.bob, id, chat.Message{Text: "the report", Skill: skill})
		must(t, err)
		for ev, err := range w.chat.Watch(t.Context(), w.bob, id, 0) {
			must(t, err)
			if ev.Type == chat.TurnEnded && ev.Input == in {
				reason = ev.Reason
				break
			}
		}
		for _, r := range w.model.requests[:min(1, len(w.model.requests))] {
			for _, m := range r.Messages {
				first += m.Text() + "\n"
			}
		}
		return reason, first
	}
	if reason, first := named("open", "pinned"); reason != chat.Done || !strings.Contains(first, "Second.") || !strings.Contains(first, "/pinned the report") {
		t.Errorf("the turn is %s, and the model got %q", reason, first)
	}
	for _, agent := range []string{"chosen", "bare"} {
		if reason, first := named(agent, "everybodys"); reason != chat.Failed || first != "" {
			t.Errorf("for %s: the turn is %s, and the model got %q", agent, reason, first)
		}
	}
	if got := strings.Fields(names(w.open(assembly.Request{Principal: w.bob}))); !slices.Contains(got, "everybodys") {
		t.Errorf("without an agent there are %v", got)
	}
}
