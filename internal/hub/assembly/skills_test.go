package assembly_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/assembly"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
	"github.com/loadout-dev/loadout/session"
)

// names returns the skills of an assembly, without the bundled ones.
func names(k *assembly.Setup) string {
	var out []string
	for _, e := range k.Runtime.Catalog().Snapshot().Skills() {
		if e.Origin != "bundled" {
			out = append(out, e.Name)
		}
	}
	return strings.Join(out, " ")
}

// uploadSkills creates skills in all namespaces, and agents that name some.
func uploadSkills(w *fixture) map[string]*library.Skill {
	w.t.Helper()
	ctx := w.t.Context()
	all := map[string]*library.Skill{}
	for name, in := range map[string]store.Namespace{"ours": w.team, "hidden": w.team, "everybodys": store.Public, "pinned": store.Public} {
		all[name] = w.upload(w.root, in, name, tree(name, "", "First."))
	}
	all["mine"] = w.upload(w.ada, own(w.ada), "mine", tree("mine", "", "First."))
	pinned := all["pinned"].Digest
	_, err := w.lib.AddVersion(ctx, w.root, all["pinned"].ID, w.pack("pinned", tree("pinned", "", "Second.")))
	must(w.t, err)
	_, err = w.lib.Hide(ctx, w.root, all["hidden"].ID, true)
	must(w.t, err)
	w.apply(w.meg, fmt.Sprintf(`
{apiVersion: loadout/v1, kind: Ghost, metadata: {name: open, namespace: team}, spec: {}}
---
{apiVersion: loadout/v1, kind: Ghost, metadata: {name: chosen, namespace: team}, spec: {skills: [ours, hidden, pinned], preload_skills: [ours],
  skill_refs: {pinned: {skill_id: %q, content_hash: %q}}}}
`, all["pinned"].ID, pinned))
	return all
}

// A user has their own skills, those of their groups and public ones, without hidden
// ones. With an agent that names skills there are only these, including hidden ones and
// pinned versions, as far as the user may see them.
func TestSkillsByPrincipal(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := newFixture(t, db)
		all := uploadSkills(w)
		for _, c := range []struct {
			who  account.Principal
			want assembly.Request
			has  string
		}{
			{w.ada, assembly.Request{}, "everybodys mine ours pinned"},
			{w.bob, assembly.Request{}, "everybodys ours pinned"},
			{w.eve, assembly.Request{}, "everybodys pinned"},
			{w.ada, assembly.Request{Kind: "Ghost", Namespace: "team", Name: "open"}, "everybodys mine ours pinned"},
			{w.ada, assembly.Request{Kind: "Ghost", Namespace: "team", Name: "chosen"}, "hidden mine ours pinned"}, // what she uploaded is her default
			{w.bob, assembly.Request{Kind: "Ghost", Name: "chosen"}, "hidden ours pinned"},
			{w.bob.LimitedTo(account.ScopeMCP), assembly.Request{Kind: "Ghost", Name: "chosen"}, "hidden ours pinned"},
		} {
			c.want.Principal = c.who
			k := w.open(c.want)
			if got := names(k); got != c.has {
				t.Errorf("%s gets of %q %q, want %q", c.who.Name, c.want.Name, got, c.has)
			}
			if e, err := k.Runtime.Catalog().Snapshot().Get("pinned"); err == nil {
				sk, _, err := k.Runtime.Catalog().Read(t.Context(), e)
				must(t, err)
				want := "Second."
				if c.want.Name == "chosen" {
					want = "First."
				}
				if !strings.Contains(sk.Instructions, want) {
					t.Errorf("%s reads of %q %q", c.who.Name, c.want.Name, sk.Instructions)
				}
				if id := k.SkillID(session.ID{Name: e.Name, Origin: e.Origin, Dir: e.Dir}); id != all["pinned"].ID {
					t.Errorf("its id is %q, want %q", id, all["pinned"].ID)
				}
			}
		}
		if _, err := w.kits.Open(t.Context(), assembly.Request{Principal: w.eve, Kind: "Ghost", Namespace: "team", Name: "chosen"}); err == nil {
			t.Error("eve opens a Ghost of a group that she is not in")
		}
	})
}

// Skills that come, change and go are seen by a kit that is open.
func TestAssemblyFollowsChanges(t *testing.T) {
	w := sqlite(t)
	talk, endpoint := w.open(assembly.Request{Principal: w.ada, Session: "x"}), w.open(assembly.Request{Principal: w.ada})
	changed := make(chan struct{}, 100)
	defer endpoint.Runtime.Catalog().Subscribe(func(_, _ *catalog.Snapshot) { changed <- struct{}{} })()
	w.upload(w.ada, own(w.ada), "new", tree("new", "", "It is new."))
	<-changed
	must(t, talk.Refresh(t.Context()))
	if a, b := names(talk), names(endpoint); a != "new" || b != "new" {
		t.Errorf("they have %q and %q", a, b)
	}
	one, two := w.open(assembly.Request{Principal: w.ada, Session: "x"}), w.open(assembly.Request{Principal: w.ada, Session: "y"})
	if one.Runtime != two.Runtime {
		t.Error("two conversations of one person do not share a catalog")
	}
	if other := w.open(assembly.Request{Principal: w.bob, Session: "z"}); other.Runtime == one.Runtime {
		t.Error("conversations of two people share a catalog")
	}
	once := w.ada
	once.Groups = nil // she left it
	if other := w.open(assembly.Request{Principal: once, Session: "x"}); other.Runtime == one.Runtime {
		t.Error("who lost a right has the catalog from before")
	}
}

// W14: an agent's preloaded skills and forced defaults are active from the first
// response on.
func TestW14Preload(t *testing.T) {
	w := sqlite(t)
	all := uploadSkills(w)
	must(t, w.lib.SetDefault(t.Context(), w.ada, library.Default{Namespace: own(w.ada), SkillID: all["mine"].ID, Preload: true,
		Exceptions: []library.Exception{{Type: "agent", Value: "Ghost/team/open"}}}))
	for agent, want := range map[string][]string{"Ghost/team/chosen": {"ours", "mine"}, "Ghost/team/open": nil, "": {"mine"}} {
		id := w.begin(w.ada, agent)
		w.ask(w.ada, id, "hello", "script heard: hello")
		in, err := w.chat.ActiveSkills(t.Context(), w.ada, id)
		must(t, err)
		var got []string
		for _, s := range in {
			got = append(got, s.Skill.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("with %q there are %v active, want %v", agent, got, want)
		}
	}
	k := w.open(assembly.Request{Principal: w.ada, Kind: "Ghost", Namespace: "team", Name: "chosen"})
	if got := names(k); got != "hidden mine ours pinned" {
		t.Errorf("with a default there are %q", got)
	}
}

// The kill switch ends a running turn and refuses others until it is off. That of a
// group applies to the group's skills.
func TestKillSwitch(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := newFixture(t, db)
		uploadSkills(w)
		started := make(chan struct{}, 1)
		w.model.answer = blocking(started)
		id := w.begin(w.ada, "Ghost/team/open")
		ended := make(chan []chat.Event, 1)
		go func() { ended <- w.say(w.ada, id, "wait") }()
		<-started
		endpoint := w.open(assembly.Request{Principal: w.ada})
		w.settings("team", agents.SkillSettings{Disabled: true})
		if got := answer(<-ended); !strings.Contains(got, "failed: skills are switched off") {
			t.Errorf("the turn ends with %q", got)
		}
		w.model.answer = echo
		w.ask(w.ada, id, "hello", "skills are switched off")
		w.ask(w.ada, w.begin(w.ada, ""), `call load_skill {"name":"everybodys"}`, "First.")
		within(t, func() bool { return names(endpoint) == "everybodys mine pinned" })
		w.settings("team", agents.SkillSettings{Allow: []string{"h*"}, Generation: 1})
		w.ask(w.ada, id, "hello", "script heard: hello")
		within(t, func() bool { return names(endpoint) == "everybodys mine pinned" })
		w.settings(agents.HubScope, agents.SkillSettings{Disabled: true})
		within(t, func() bool { return names(endpoint) == "" })
		w.ask(w.ada, w.begin(w.ada, ""), "hello", "skills are switched off")
	})
}

// settings changes the settings of a scope.
func (w *fixture) settings(scope string, s agents.SkillSettings) {
	w.t.Helper()
	must(w.t, w.kinds.SetSkillSettings(w.t.Context(), w.root, scope, s))
}

// within waits until something is so.
func within(t *testing.T, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it is not so in 20 seconds")
		}
	}
}

// If an agent was deleted or is not visible to the user, the turn ends with advice.
func TestDeletedAgent(t *testing.T) {
	w := sqlite(t)
	for agent, want := range map[string]string{"Bot/default/gone": "agent Bot/default/gone not found", "nonsense": "invalid agent"} {
		w.ask(w.ada, w.begin(w.ada, agent), "hello", "failed", want)
	}
}
