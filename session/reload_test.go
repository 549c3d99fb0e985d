package session_test

import (
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/session"
)

// Loading an inactive skill again returns a short note while the conversation
// contains its instructions, and the whole text otherwise.
func TestRepeatedLoadIsAShortNote(t *testing.T) {
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
			id = first.Skill.ID
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
			// A compaction always includes the whole text.
			if a, ok := findLoad(s, id); !ok || !strings.Contains(a.Text, "Do ") {
				t.Errorf("the log has %q", a.Text)
			}
		})
	}
}

// After an approval, a load applies the allowed tools and the model, even if
// the skill was already active.
func TestLoadAfterApproval(t *testing.T) {
	sh := pasts()
	s := withOptions(t, sh, session.Options{})
	ask(t, s, 1)
	loadAs(t, s, "a", session.LoadOptions{})
	sh.skills["a"].AllowedTools, sh.skills["a"].Model = []string{"Read"}, "small"
	r := loadAs(t, s, "a", session.LoadOptions{})
	a := s.Active()[0]
	if r.State != session.StateLoaded || !strings.Contains(r.Text, "further up") || len(a.AllowedTools) != 1 || a.Model != "small" {
		t.Errorf("%s: %q; active %+v", r.State, r.Text, a)
	}
	if r := loadAs(t, s, "a", session.LoadOptions{}); r.State != session.StateAlreadyLoaded {
		t.Errorf("%s: %q", r.State, r.Text)
	}
}

func compacted(t *testing.T, s *session.Session, keep ...session.ID) {
	t.Helper()
	if err := s.Append(t.Context(), session.Event{Compacted: &session.Compaction{Text: "short", Skills: keep}}); err != nil {
		t.Fatal(err)
	}
}

func findLoad(s *session.Session, id session.ID) (session.ActiveSkill, bool) {
	st := s.State()
	return st.Find(id)
}
