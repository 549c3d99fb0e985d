package assembly_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

// An agent is tried with its unsaved documents, in which references resolve first. Its
// conversation is not listed and does not change what is saved.
func TestTrialOfAnAgent(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := newFixture(t, db)
		w.apply(w.ada, team)
		changed := strings.NewReplacer("You lead.", "You try to lead.", "You work.", "You try to work.").Replace(team)
		changed = changed[strings.Index(changed, "---")+4:] // without the Model
		c, err := w.chat.CreateTrial(t.Context(), w.ada, "Team/default/crew", "", []byte(changed))
		must(t, err)
		if !c.Trial {
			t.Error("the conversation does not say that it is a trial")
		}
		plain := w.begin(w.ada, "Team/default/crew")
		for id, want := range map[string]string{c.ID: "You try to lead.", plain: "You lead."} {
			w.ask(w.ada, id, "hello")
			if told := fmt.Sprint(w.model.last()); !strings.Contains(told, want) {
				t.Errorf("the model got %s, want %q", told, want)
			}
		}
		w.ask(w.ada, c.ID, `call hand_task {"member":"work","task":"count"}`, "work answers:", "small  heard: count")
		listed, _, err := w.chat.List(t.Context(), w.ada, w.ada.User, chat.ListOptions{})
		must(t, err)
		found, _, err := w.chat.Search(t.Context(), w.ada, "hello", store.Page{})
		must(t, err)
		if len(listed) != 1 || listed[0].ID != plain || len(found) != 1 || found[0].ID != plain {
			t.Errorf("listed: %v, found: %v; want only %s", listed, found, plain)
		}
	})
}

// The oldest trial is deleted when the user starts too many.
func TestTrialsAreBounded(t *testing.T) {
	w := sqlite(t)
	var ids []string
	for range chat.MaxTrials + 1 {
		c, err := w.chat.CreateTrial(t.Context(), w.ada, "Ghost/default/lead", "", []byte("{kind: Ghost, metadata: {name: lead}}"))
		must(t, err)
		ids = append(ids, c.ID)
	}
	for i, id := range ids {
		_, err := w.chat.Get(t.Context(), w.ada, id)
		if gone := errors.Is(err, store.ErrNotFound); gone != (i == 0) {
			t.Errorf("trial %d: %v", i, err)
		}
	}
	must(t, w.chat.PruneTrials(t.Context()))
	if _, err := w.chat.Get(t.Context(), w.ada, ids[1]); err != nil {
		t.Errorf("a new trial was pruned: %v", err)
	}
}

// Only a user who may save the documents may try them, and only agents are tried. An
// unchanged server is the saved one. A changed one has neither its secrets nor its review.
func TestTrialGrantsNothing(t *testing.T) {
	w := sqlite(t)
	const ghost = "{kind: Ghost, metadata: {name: lead, namespace: %s}, spec: {mcpServers: {sea: {command: python3, args: [sea.py]}}}}"
	own := fmt.Sprintf(ghost, "default")
	w.apply(w.ada, own)
	profile, err := w.kinds.TrialProfile(t.Context(), w.ada, []byte(own), "Ghost", "default", "lead")
	must(t, err)
	saved, err := w.kinds.Profile(t.Context(), w.ada, "Ghost", "default", "lead")
	must(t, err)
	if profile.ID == saved.ID || profile.Owners[1] == saved.Owners[1] {
		t.Errorf("owners %v of the trial, %v of the saved agent", profile.Owners, saved.Owners)
	}
	if len(profile.Servers) != 1 || profile.Servers[0].PolicyDigest() != saved.Servers[0].PolicyDigest() || profile.Servers[0].ID != saved.ID {
		t.Errorf("the unchanged server is %+v, not %+v", profile.Servers, saved.Servers)
	}
	changed, err := w.kinds.TrialProfile(t.Context(), w.ada, []byte(strings.Replace(own, "sea.py", "other.py", 1)), "Ghost", "default", "lead")
	must(t, err)
	if len(changed.Servers) != 1 || changed.Servers[0].ID == saved.ID || changed.Servers[0].Usable() {
		t.Errorf("the changed server is %+v", changed.Servers)
	}
	if _, err := w.kinds.Secrets().ServerVariables(t.Context(), w.ada, changed.Servers[0], ""); err == nil || !strings.Contains(err.Error(), "its values apply after you save the agent") {
		t.Errorf("values of a changed server: %v", err)
	}
	for text, want := range map[string]error{
		fmt.Sprintf(ghost, "public"):                                 nil, // denied
		fmt.Sprintf(ghost, "user:someone"):                           store.ErrNotFound,
		"{kind: Model, metadata: {name: lead}}":                      store.ErrInvalid,
		"{kind: Ghost, metadata: {name: other}}":                     store.ErrNotFound,
		"{kind: Ghost, metadata: {name: lead}, spec: {expose: all}}": store.ErrInvalid,
		strings.Repeat(own+"\n---\n", 44):                            store.ErrTooMany,
	} {
		_, err := w.kinds.TrialProfile(t.Context(), w.ada, []byte(text), "Ghost", "default", "lead")
		if _, denied := errors.AsType[*account.DeniedError](err); err == nil || (want == nil && !denied) || (want != nil && !errors.Is(err, want)) {
			t.Errorf("%.80s: %v, want %v", text, err, want)
		}
	}
}
