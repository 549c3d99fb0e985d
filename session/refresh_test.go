package session_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/session"
	"github.com/loadout-dev/loadout/skill"
)

// reviewed is a shelf with approved skills, by name.
type reviewed struct {
	*shelf
	approved map[string]bool
}

func (r reviewed) IsApproved(_ context.Context, id session.ID, _ string) bool {
	return r.approved[id.Name]
}

func refresh(t *testing.T, s *session.Session, want ...string) {
	t.Helper()
	updates, err := s.Refresh(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, u := range updates {
		got = append(got, u.Skill.Name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("refresh returned %q, want %q", got, want)
	}
}

// newest returns the last n events.
func newest(s *session.Session, n int) []session.Event {
	all := s.Events(0)
	return all[len(all)-n:]
}

// A changed skill is loaded again if it has no code or is approved; otherwise
// the model is told to load it.
func TestUpdateReload(t *testing.T) {
	for name, tt := range map[string]struct {
		change   func(m *session.Skill)
		approved bool
		want     []string
	}{
		"without code":         {func(*session.Skill) {}, false, []string{"notice", "loaded a"}},
		"script":               {func(m *session.Skill) { m.Files = []skill.File{{Path: "run.py", Script: true}} }, false, []string{"updated a"}},
		"approved script":      {func(m *session.Skill) { m.Files = []skill.File{{Path: "run.py", Script: true}} }, true, []string{"notice", "loaded a"}},
		"unknown files":        {func(m *session.Skill) { m.Files = nil }, false, []string{"updated a"}},
		"servers":              {func(m *session.Skill) { m.UsesTools = true }, false, []string{"updated a"}},
		"approved servers":     {func(m *session.Skill) { m.UsesTools = true }, true, []string{"notice", "loaded a"}},
		"a file and no script": {func(m *session.Skill) { m.Files = []skill.File{{Path: "notes.md"}} }, false, []string{"notice", "loaded a"}},
	} {
		t.Run(name, func(t *testing.T) {
			sh := pasts()
			s := withOptions(t, reviewed{sh, map[string]bool{"a": tt.approved}}, session.Options{Updates: session.UpdateReload})
			ask(t, s, 1)
			loadAs(t, s, "a", session.LoadOptions{ByModel: true})
			first := s.Active()[0]
			now := sh.put("a", "Do otherwise: $ARGUMENTS.\n")
			tt.change(now)
			refresh(t, s, "a")
			if got := kinds(newest(s, len(tt.want))); !slices.Equal(got, tt.want) {
				t.Fatalf("events %q, want %q", got, tt.want)
			}
			refresh(t, s)
			a := s.Active()[0]
			if loaded := len(tt.want) == 2; loaded != (a.Digest == now.Digest) || a.Current != now.Digest || loaded != strings.Contains(a.Text, "Do otherwise: $ARGUMENTS.") {
				t.Errorf("active: digest %s, current %s, text %q", a.Digest, a.Current, a.Text)
			}
			if a.By != first.By || a.Why != first.Why || a.Retention != first.Retention || a.Used != first.Used {
				t.Errorf("by %q, why %q, retention %q, used %d; before: %+v", a.By, a.Why, a.Retention, a.Used, first)
			}
			if len(tt.want) == 2 {
				text := newest(s, 2)
				if !strings.Contains(text[0].Notice.Text, "skill a has changed") || !text[1].Loaded.Direct {
					t.Errorf("the model is told %q and then %+v", text[0].Notice.Text, text[1].Loaded)
				}
			}
		})
	}
}

// Skills that do not say which versions are approved have no approved code.
func TestUpdateReloadWithoutApprovals(t *testing.T) {
	sh := pasts()
	s := withOptions(t, sh, session.Options{Updates: session.UpdateReload})
	load(t, s, "a")
	sh.put("a", "New.\n").UsesTools = true
	refresh(t, s, "a")
	if got := kinds(newest(s, 1)); got[0] != "updated a" {
		t.Errorf("event %q", got)
	}
}

// A dependency keeps the skill that needs it, and an update is no use of either.
func TestUpdateReloadOfDependency(t *testing.T) {
	sh := pasts()
	s := withOptions(t, sh, session.Options{Updates: session.UpdateReload, RetentionTurns: 2})
	ask(t, s, 1)
	load(t, s, "report")
	ask(t, s, 1)
	sh.put("base", "Another base.\n")
	sh.put("report", "Another report.\n", "base", "a")
	refresh(t, s, "base", "report")
	if got, want := kinds(newest(s, 5)), []string{"notice", "loaded base", "loaded a", "notice", "loaded report"}; !slices.Equal(got, want) {
		t.Fatalf("events %q, want %q", got, want)
	}
	for _, a := range s.Active() {
		want := "report"
		if a.Skill.Name == "report" {
			want = ""
		}
		if a.RequiredBy != want {
			t.Errorf("%s is required by %q, want %q", a.Skill.Name, a.RequiredBy, want)
		}
	}
	ask(t, s, 2)
	if got := activeNames(s); slices.Contains(got, "report") || slices.Contains(got, "base") {
		t.Errorf("active %q, although unused for longer than their retention", got)
	}
}

// A skill that the next message unloads is not loaded again before it.
func TestUpdateReloadSkipsExpiringSkills(t *testing.T) {
	sh := pasts()
	s := withOptions(t, sh, session.Options{Updates: session.UpdateReload})
	ask(t, s, 1)
	loadAs(t, s, "a", session.LoadOptions{Retention: session.RetainOnce, ByModel: true})
	sh.put("a", "New.\n")
	refresh(t, s, "a")
	ask(t, s, 1)
	if got, want := kinds(newest(s, 3)), []string{"updated a", "message", "unloaded a"}; !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
}

// A dependency that was unused for longer than its retention is loaded again,
// because the skill that needs it keeps it active.
func TestUpdateReloadOfUnusedDependency(t *testing.T) {
	sh := pasts()
	s := withOptions(t, sh, session.Options{Updates: session.UpdateReload, RetentionTurns: 2})
	ask(t, s, 1)
	r := load(t, s, "report")
	for range 4 {
		ask(t, s, 1)
		if err := s.RecordUse(t.Context(), r.Skill.ID); err != nil {
			t.Fatal(err)
		}
	}
	sh.put("base", "Another base.\n")
	refresh(t, s, "base")
	if got, want := kinds(newest(s, 2)), []string{"notice", "loaded base"}; !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
}

// A version that cannot be loaded is announced.
func TestUpdateReloadOfBrokenVersion(t *testing.T) {
	sh := pasts()
	s := withOptions(t, sh, session.Options{Updates: session.UpdateReload})
	load(t, s, "a")
	sh.put("a", "New.\n", "missing")
	refresh(t, s, "a")
	if a := s.Active()[0]; a.Current == a.Digest || !strings.Contains(a.Text, "Do a.") {
		t.Errorf("active: %+v", a)
	}
}

// A pinned skill keeps its text until the user loads it again or it is unloaded.
func TestUpdatePin(t *testing.T) {
	sh := pasts()
	s := withOptions(t, sh, session.Options{Updates: session.UpdatePin})
	load(t, s, "report")
	sh.put("base", "Another base.\n")
	sh.put("report", "Another report.\n", "base").AllowedTools = []string{"Bash(*)"}
	refresh(t, s)
	before := len(s.Events(0))
	r := loadAs(t, s, "report", session.LoadOptions{ByModel: true})
	if r.State != session.StateAlreadyLoaded || len(s.Events(0)) != before {
		t.Errorf("loaded by the model: %s %q, events %q", r.State, r.Text, kinds(s.Events(0)))
	}
	for _, a := range s.Active() {
		if strings.Contains(a.Text, "Another") || len(a.AllowedTools) > 0 || a.Current != a.Digest {
			t.Errorf("active: %+v", a)
		}
	}
	if r := loadAs(t, s, "report", session.LoadOptions{Direct: true}); r.State != session.StateLoaded || !strings.Contains(r.Text, "Another base.") || !strings.Contains(r.Text, "Another report.") {
		t.Errorf("loaded by the user: %s %q", r.State, r.Text)
	}
	sh.put("report", "The third report.\n", "base")
	if _, err := s.Unload(t.Context(), "report", "done", false); err != nil {
		t.Fatal(err)
	}
	if r := loadAs(t, s, "report", session.LoadOptions{ByModel: true}); r.State != session.StateLoaded || !strings.Contains(r.Text, "The third report.") {
		t.Errorf("loaded after it was unloaded: %s %q", r.State, r.Text)
	}
}

// A version that only the user may load is not delivered to a skill that the
// model loaded, and the update says so.
func TestUpdateReloadOfUserOnlyVersion(t *testing.T) {
	for name, tt := range map[string]struct {
		options session.LoadOptions
		want    []string
	}{
		"loaded by the model": {session.LoadOptions{ByModel: true}, []string{"updated a"}},
		"loaded by the user":  {session.LoadOptions{Direct: true}, []string{"notice", "loaded a"}},
	} {
		t.Run(name, func(t *testing.T) {
			sh := pasts()
			s := withOptions(t, sh, session.Options{Updates: session.UpdateReload})
			ask(t, s, 1)
			loadAs(t, s, "a", tt.options)
			sh.put("a", "New.\n").Hidden = true
			refresh(t, s, "a")
			events := newest(s, len(tt.want))
			if got := kinds(events); !slices.Equal(got, tt.want) {
				t.Fatalf("events %q, want %q", got, tt.want)
			}
			if u := events[0].Updated; u != nil && (!u.UserOnly || !s.Active()[0].UserOnly) {
				t.Errorf("update %+v, active %+v", u, s.Active()[0])
			}
		})
	}
}

// A return to the version that was loaded is recorded as such.
func TestUpdateBackToLoadedVersion(t *testing.T) {
	sh := pasts()
	s := withOptions(t, sh, session.Options{})
	load(t, s, "a")
	loaded := sh.skills["a"]
	sh.put("a", "New.\n")
	refresh(t, s, "a")
	sh.skills["a"] = loaded
	refresh(t, s, "a")
	changed, back := newest(s, 2)[0].Updated, newest(s, 1)[0].Updated
	if changed.Restored || !back.Restored || back.Digest != loaded.Digest {
		t.Errorf("updates %+v, %+v", changed, back)
	}
}

// With UpdatePin, the model can load a change that was announced before that mode
// was set.
func TestUpdatePinAfterNotify(t *testing.T) {
	sh, log := pasts(), &session.MemoryLog{}
	s := withOptions(t, sh, session.Options{Log: log})
	load(t, s, "a")
	sh.put("a", "New.\n")
	refresh(t, s, "a")
	s = withOptions(t, sh, session.Options{Log: log, Updates: session.UpdatePin})
	if r := loadAs(t, s, "a", session.LoadOptions{ByModel: true}); r.State != session.StateLoaded || !strings.Contains(r.Text, "New.") {
		t.Errorf("%s: %q", r.State, r.Text)
	}
}

// A session without skills, which replays a log, has nothing to check.
func TestRefreshWithoutSkills(t *testing.T) {
	l := &session.MemoryLog{}
	load(t, open(t, l, pasts()), "a")
	s := open(t, l, nil)
	refresh(t, s)
	if got := activeNames(s); !slices.Equal(got, []string{"a"}) {
		t.Errorf("active %q", got)
	}
}
