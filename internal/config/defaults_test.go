package config

import (
	"testing"

	"github.com/loadout-dev/loadout/session"
)

// The package imports no other package, so it repeats the constant.
func TestDefaultRetentionIsThatOfSessions(t *testing.T) {
	s, err := session.Open(t.Context(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	pdf := session.ID{Name: "pdf", Origin: "user", Dir: "pdf"}
	if err := s.Append(t.Context(), session.Event{Loaded: &session.SkillLoad{Skill: pdf}}); err != nil {
		t.Fatal(err)
	}
	turns, bounded := s.TurnsLeft(pdf)
	if got := defaults().Skills.Keep; !bounded || got != turns {
		t.Errorf("skills.keep defaults to %d, but a session keeps an unused skill for %d turns (limited: %v)", got, turns, bounded)
	}
}
