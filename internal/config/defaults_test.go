package config

import (
	"testing"

	"github.com/loadout-dev/loadout/session"
)

// The package imports no other package, so it repeats the constant.
func TestDefaultRetentionIsThatOfSessions(t *testing.T) {
	if got := defaults().Skills.Keep; got != session.DefaultRetentionTurns {
		t.Errorf("skills.keep defaults to %d, session.DefaultRetentionTurns is %d", got, session.DefaultRetentionTurns)
	}
}
