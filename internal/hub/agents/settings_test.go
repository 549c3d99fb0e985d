package agents_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/bus"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

// A skill must pass the filters of both the hub and the group.
func TestFilter(t *testing.T) {
	h := newHub(t, sqlite(t), nil)
	for _, tt := range []struct {
		name       string
		hub, group agents.SkillSettings
		want       catalog.Filter
	}{
		{name: "nothing is set"},
		{"the hub is off", agents.SkillSettings{Disabled: true}, agents.SkillSettings{}, catalog.Filter{Disabled: true}},
		{"the group is off", agents.SkillSettings{}, agents.SkillSettings{Disabled: true}, catalog.Filter{Disabled: true}},
		{"a list of the hub", agents.SkillSettings{Allow: []string{"a"}}, agents.SkillSettings{}, catalog.Filter{Allow: []string{"a"}}},
		{"a list of the group", agents.SkillSettings{}, agents.SkillSettings{Allow: []string{"a"}}, catalog.Filter{Allow: []string{"a"}}},
		{"both", agents.SkillSettings{Allow: []string{"docs-*", "pdf@>=1.0", "csv"}}, agents.SkillSettings{Allow: []string{"docs-a-*", "pdf@<2 || =3.1", "*", "other"}},
			catalog.Filter{Allow: []string{"docs-a-*", "docs-*", "pdf@>=1.0, <2 || >=1.0, =3.1", "pdf@>=1.0", "csv"}}},
		{"nothing in common", agents.SkillSettings{Allow: []string{"a-*"}}, agents.SkillSettings{Allow: []string{"*-b"}}, catalog.Filter{Disabled: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			set(t, h, agents.HubScope, tt.hub)
			set(t, h, "team", tt.group)
			got, err := h.Filter(t.Context(), h.team)
			must(t, err)
			wantEqual(t, got, tt.want)
			own, err := h.Filter(t.Context(), h.of("reporter"))
			must(t, err)
			wantEqual(t, own, catalog.Filter{Disabled: tt.hub.Disabled, Allow: tt.hub.Allow})
		})
	}
}

// What is of two groups is let through by both.
func TestFilterForTwoGroups(t *testing.T) {
	h := newHub(t, sqlite(t), nil)
	g, err := h.db.Groups.Create(t.Context(), store.Group{Name: "other"})
	must(t, err)
	other := store.GroupNamespace(g.ID)
	set(t, h, "team", agents.SkillSettings{Allow: []string{"a", "b"}})
	set(t, h, "other", agents.SkillSettings{Allow: []string{"b", "c"}})
	f, err := h.Filter(t.Context(), h.of("reporter"), h.team, other)
	must(t, err)
	wantEqual(t, f, catalog.Filter{Allow: []string{"b"}})
	set(t, h, "other", agents.SkillSettings{Allow: []string{"c"}})
	f, err = h.Filter(t.Context(), other, h.team)
	must(t, err)
	wantEqual(t, f, catalog.Filter{Disabled: true})
}

// set changes settings, whatever they are now.
func set(t testing.TB, h *hub, scope string, s agents.SkillSettings) {
	t.Helper()
	old, err := h.SkillSettings(t.Context(), h.people["admin"], scope)
	must(t, err)
	s.Generation = old.Generation
	must(t, h.SetSkillSettings(t.Context(), h.people["admin"], scope, s))
}

func TestSettingsRefused(t *testing.T) {
	h := newHub(t, sqlite(t), nil)
	admin := h.people["admin"]
	for _, allow := range [][]string{{"["}, {""}, {"a@new"}, slices.Repeat([]string{"a"}, agents.MaxAllow+1)} {
		wantError(t, h.SetSkillSettings(t.Context(), admin, agents.HubScope, agents.SkillSettings{Allow: allow}), store.ErrInvalid)
	}
	wantError(t, h.SetSkillSettings(t.Context(), admin, "public", agents.SkillSettings{}), store.ErrInvalid)
	must(t, h.SetSkillSettings(t.Context(), admin, agents.HubScope, agents.SkillSettings{Disabled: true}))
	wantError(t, h.SetSkillSettings(t.Context(), admin, agents.HubScope, agents.SkillSettings{}), store.ErrConflict)
	log, err := h.db.Audit.List(t.Context(), store.AuditQuery{Action: string(account.SettingsWrite)})
	must(t, err)
	if len(log) != 1 || log[0].Subject != "settings/hub/skills" || string(log[0].Details) != `{"allow":null,"disabled":true}` {
		t.Errorf("%+v", log)
	}
}

// start runs a node until the end of the test.
func start(t *testing.T, r *agents.Registry) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var over sync.WaitGroup
	over.Go(func() {
		if err := r.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); over.Wait() })
}

func TestKillSwitchOnOtherNodes(t *testing.T) {
	for _, tt := range []struct {
		name string
		poll time.Duration
		told bool
	}{{"by a message", time.Hour, true}, {"by looking", 10 * time.Millisecond, false}} {
		t.Run(tt.name, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, db *store.DB) {
				var shared bus.Bus
				if tt.told {
					local := bus.New()
					t.Cleanup(func() { must(t, local.Close()) })
					shared = local
				}
				h := newHub(t, db, &agents.Options{Bus: shared})
				other := agents.New(db, &agents.Options{Bus: shared, Poll: tt.poll})
				start(t, other)
				held, stop, err := other.WithKillSwitch(t.Context(), h.team)
				must(t, err)
				defer stop()
				beside, stopBeside, err := other.WithKillSwitch(t.Context(), h.of("reporter"))
				must(t, err)
				defer stopBeside()

				set(t, h, "team", agents.SkillSettings{Disabled: true})
				<-held.Done()
				disabled, _ := errors.AsType[*agents.DisabledError](context.Cause(held))
				wantEqual(t, disabled, &agents.DisabledError{})
				must(t, context.Cause(beside))
				_, _, err = other.WithKillSwitch(t.Context(), h.team)
				if _, ok := errors.AsType[*agents.DisabledError](err); !ok {
					t.Errorf("where it has fallen: %v", err)
				}
				set(t, h, agents.HubScope, agents.SkillSettings{Disabled: true})
				<-beside.Done()
				set(t, h, agents.HubScope, agents.SkillSettings{})
				again, stopAgain, err := other.WithKillSwitch(t.Context(), h.of("reporter"))
				must(t, err)
				must(t, context.Cause(again))
				stopAgain()
				wantError(t, context.Cause(again), context.Canceled)
			})
		})
	}
}

// A follower receives the current settings and then each change once.
func TestFollow(t *testing.T) {
	h := newHub(t, sqlite(t), &agents.Options{Poll: time.Hour})
	start(t, h.Registry)
	reported := make(chan catalog.Filter, 10)
	stop, err := h.WatchFilter(t.Context(), []store.Namespace{h.team, h.of("reporter")}, func(f catalog.Filter, err error) { reported <- f })
	must(t, err)
	wantEqual(t, <-reported, catalog.Filter{})
	set(t, h, "team", agents.SkillSettings{Allow: []string{"a"}})
	wantEqual(t, <-reported, catalog.Filter{Allow: []string{"a"}})
	set(t, h, "team", agents.SkillSettings{Allow: []string{"a"}}) // not a change
	set(t, h, agents.HubScope, agents.SkillSettings{Disabled: true})
	wantEqual(t, <-reported, catalog.Filter{Disabled: true, Allow: []string{"a"}})
	stop()
	second := make(chan catalog.Filter, 10)
	stop, err = h.WatchFilter(t.Context(), []store.Namespace{h.team, h.of("reporter")}, func(f catalog.Filter, err error) { second <- f })
	must(t, err)
	defer stop()
	<-second
	set(t, h, agents.HubScope, agents.SkillSettings{})
	<-second
	wantEqual(t, len(reported), 0)
}

// Settings that cannot be read for too long stop what runs; a node that is asked while
// it cannot read them lets nothing through.
func TestKillSwitchFailsClosed(t *testing.T) {
	db := sqlite(t)
	h := newHub(t, db, &agents.Options{Poll: time.Millisecond, FailClosedAfter: 5 * time.Millisecond})
	start(t, h.Registry)
	held, stop, err := h.WithKillSwitch(t.Context(), h.team)
	must(t, err)
	defer stop()
	must(t, db.Close())
	<-held.Done()
	if e, _ := errors.AsType[*agents.DisabledError](context.Cause(held)); e == nil || !e.Unread {
		t.Errorf("stopped for %v", context.Cause(held))
	}
	f, err := h.Filter(t.Context(), h.team)
	if err == nil || !f.Disabled {
		t.Errorf("%+v %v", f, err)
	}
}

// What is kept and cannot be read lets nothing through, and takes no other scope along.
func TestDamagedSettings(t *testing.T) {
	h := newHub(t, sqlite(t), nil)
	_, err := h.db.Settings.Set(t.Context(), store.Setting{Scope: string(h.team), Name: "skills", Value: []byte(`{"allow": "all"}`)})
	must(t, err)
	f, err := h.Filter(t.Context(), h.team)
	must(t, err)
	wantEqual(t, f.Disabled, true)
	f, err = h.Filter(t.Context(), h.of("reporter"))
	must(t, err)
	wantEqual(t, f.Disabled, false)
}
