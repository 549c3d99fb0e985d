package session_test

import (
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/session"
)

// What went out of force and is loaded again is a short note while the conversation
// still holds its instructions, and is told whole where it does not.
func TestLoadedAgainIsAShortNote(t *testing.T) {
	var id session.ID
	for _, tt := range []struct {
		name      string
		between   func(t *testing.T, sh *shelf, s *session.Session)
		options   session.LoadOptions
		wantWhole bool
	}{
		{"unloaded", nil, session.LoadOptions{ByModel: true}, false},
		{"changed meanwhile", func(_ *testing.T, sh *shelf, _ *session.Session) { sh.put("a", "Do otherwise.\n") }, session.LoadOptions{}, true},
		{"put in short without it", func(t *testing.T, _ *shelf, s *session.Session) {
			compacted(t, s)
		}, session.LoadOptions{}, true},
		{"by a person, whose text is told where it is", nil, session.LoadOptions{Direct: true}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sh := pasts()
			s := withOptions(t, sh, session.Options{})
			ask(t, s, 1)
			first := loadAs(t, s, "a", session.LoadOptions{ByModel: true})
			id = first.Material.ID
			if _, err := s.Unload(t.Context(), "a", "done", false); err != nil {
				t.Fatal(err)
			}
			if tt.between != nil {
				tt.between(t, sh, s)
			}
			r := loadAs(t, s, "a", tt.options)
			whole := strings.Contains(r.Text, "Do ")
			if r.State != session.StateLoaded || whole != tt.wantWhole || !whole && !strings.Contains(r.Text, "further up") {
				t.Errorf("%s: %q", r.State, r.Text)
			}
			// What a compaction tells again is whole in any case.
			if a, ok := find(s, id); !ok || !strings.Contains(a.Text, "Do ") {
				t.Errorf("the log has %q", a.Text)
			}
		})
	}
}

// What a skill may do unasked and the model that it wants come with a load after it was
// approved, although it was in force before.
func TestLoadAfterAnApproval(t *testing.T) {
	sh := pasts()
	s := withOptions(t, sh, session.Options{})
	ask(t, s, 1)
	loadAs(t, s, "a", session.LoadOptions{})
	sh.skills["a"].AllowedTools, sh.skills["a"].Model = []string{"Read"}, "small"
	r := loadAs(t, s, "a", session.LoadOptions{})
	a := s.Active()[0]
	if r.State != session.StateLoaded || !strings.Contains(r.Text, "further up") || len(a.AllowedTools) != 1 || a.Model != "small" {
		t.Errorf("%s: %q; in force %+v", r.State, r.Text, a)
	}
	if r := loadAs(t, s, "a", session.LoadOptions{}); r.State != session.StateAlready {
		t.Errorf("%s: %q", r.State, r.Text)
	}
}

func compacted(t *testing.T, s *session.Session, keep ...session.ID) {
	t.Helper()
	if err := s.Append(t.Context(), session.Event{Type: session.TypeCompacted, Compacted: &session.Compacted{Text: "short", Skills: keep}}); err != nil {
		t.Fatal(err)
	}
}

func find(s *session.Session, id session.ID) (session.Active, bool) {
	st := s.State()
	return st.Find(id)
}
