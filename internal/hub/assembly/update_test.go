package assembly_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// addVersion uploads another version of a skill with code.
func (w *fixture) addVersion(p account.Principal, s *library.Skill, body string) *library.Version {
	w.t.Helper()
	v, err := w.lib.AddVersion(w.t.Context(), p, s.ID, w.pack(s.Name, tree(s.Name, "", body, "run.sh", "echo "+body+"\n")))
	must(w.t, err)
	return v
}

// notices returns the notices in the last request of the model.
func (w *fixture) notices() string {
	var out []string
	for _, m := range w.model.last().Messages {
		if m.Role == llm.Notice {
			out = append(out, m.Text())
		}
	}
	return strings.Join(out, "\n")
}

// Another version becomes current on the hub while a conversation holds the
// skill: by approval, by withdrawal and by a return to an older version. The
// conversation gets an event with the next message and keeps its text.
func TestAnotherCurrentVersionIsAnnounced(t *testing.T) {
	for name, agent := range map[string]string{"by name": "", "bound to an agent": "Ghost/team/has"} {
		t.Run(name, func(t *testing.T) {
			w := sqlite(t)
			one := w.upload(w.ada, w.team, "ours", tree("ours", "", "First.", "run.sh", "echo\n"))
			w.review(one, library.Approved)
			w.apply(w.meg, fmt.Sprintf(`{apiVersion: loadout/v1, kind: Ghost, metadata: {name: has, namespace: team}, spec: {skills: [ours], skill_refs: {ours: {skill_id: %q}}}}`, one.ID))
			id := w.begin(w.ada, agent)
			w.ask(w.ada, id, `call load_skill {"name":"ours"}`, "First.")
			const text, restored = "The skill ours changed after it was loaded.", "The skill ours was changed back to the loaded version."
			seen := 0
			next := func(when string, announced bool, changed bool) {
				t.Helper()
				w.ask(w.ada, id, "hello "+when, "hello "+when)
				if announced {
					seen++
				}
				if got := strings.Count(w.notices(), text); got != seen {
					t.Errorf("%s: announced %d times, want %d", when, got, seen)
				}
				active, err := w.chat.ActiveSkills(t.Context(), w.ada, id)
				must(t, err)
				if len(active) != 1 || active[0].Changed != changed {
					t.Errorf("%s: active %+v, want changed %v", when, active, changed)
				}
			}
			next("unchanged", false, false)
			two := w.addVersion(w.ada, one, "Second.")
			next("pending", false, false)
			must(t, w.lib.ReviewVersion(t.Context(), w.root, one.ID, library.Decision{Digest: two.Digest, Review: library.Approved}))
			next("approved", true, true)
			next("again", false, true)
			must(t, w.lib.ReviewVersion(t.Context(), w.root, one.ID, library.Decision{Digest: two.Digest, Review: library.Pending}))
			next("withdrawn", false, false)
			if got := strings.Count(w.notices(), restored); got != 1 {
				t.Errorf("withdrawn: %d notices %q, want 1", got, restored)
			}
			must(t, w.lib.ReviewVersion(t.Context(), w.root, one.ID, library.Decision{Digest: two.Digest, Review: library.Approved}))
			w.ask(w.ada, id, `call load_skill {"name":"ours"}`, "Second.")
			seen++ // announced before the message
			next("loaded again", false, false)
			must(t, w.lib.SetCurrentVersion(t.Context(), w.meg, one.ID, 1))
			next("rolled back", true, true)
		})
	}
}

// With the mode reload, a conversation has the approved version with the next
// message, and still says why the skill is active.
func TestApprovedVersionIsLoadedAgain(t *testing.T) {
	w := sqlite(t)
	must(t, w.chat.Close(t.Context()))
	w.chat = w.newChat(func(o *chat.Options) { o.Updates = session.UpdateReload })
	one := w.upload(w.ada, w.team, "ours", tree("ours", "", "First.", "run.sh", "echo\n"))
	w.review(one, library.Approved)
	id := w.begin(w.ada, "")
	w.ask(w.ada, id, `call load_skill {"name":"ours"}`, "First.")
	two := w.addVersion(w.ada, one, "Second.")
	must(t, w.lib.ReviewVersion(t.Context(), w.root, one.ID, library.Decision{Digest: two.Digest, Review: library.Approved}))
	w.ask(w.ada, id, "hello", "hello")
	if got := w.notices(); !strings.Contains(got, "The skill ours has changed.") || !strings.Contains(got, "Second.") {
		t.Errorf("notices %q", got)
	}
	active, err := w.chat.ActiveSkills(t.Context(), w.ada, id)
	must(t, err)
	if len(active) != 1 || active[0].Changed || active[0].Why != "the model loaded it" {
		t.Errorf("active %+v", active)
	}
}
