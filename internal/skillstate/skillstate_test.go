package skillstate_test

import (
	"testing"

	"github.com/loadout-dev/loadout/internal/skillstate"
)

func TestState(t *testing.T) {
	for _, tt := range []struct {
		decision skillstate.State
		code     bool
		current  int64
		want     skillstate.State
	}{
		{"", true, 2, skillstate.Pending},
		{skillstate.Pending, true, 1, skillstate.Pending},
		{skillstate.Pending, true, 3, skillstate.Pending},
		{skillstate.Pending, false, 2, skillstate.Approved}, // there is nothing to review
		{skillstate.Pending, false, 3, skillstate.Superseded},
		{skillstate.Approved, true, 2, skillstate.Approved},
		{skillstate.Approved, true, 3, skillstate.Superseded},
		{skillstate.Approved, true, 1, skillstate.Withdrawn},
		{skillstate.Rejected, false, 2, skillstate.Rejected},
		{skillstate.Rejected, true, 3, skillstate.Rejected},
		{skillstate.ChangesRequested, true, 1, skillstate.ChangesRequested},
		{"unknown", false, 2, "unknown"}, // and not cleared
	} {
		v := skillstate.Version{Number: 2, Decision: tt.decision, HasCode: tt.code}
		if got := v.State(tt.current); got != tt.want {
			t.Errorf("%+v has the state %s while %d is current, want %s", v, got, tt.current, tt.want)
		}
	}
}

func TestMayReplace(t *testing.T) {
	version := func(n int64, d skillstate.State, code bool) skillstate.Version { return skillstate.Version{n, d, code} }
	approved, waiting, rejected := version(1, skillstate.Approved, true), version(1, "", true), version(1, skillstate.Rejected, true)
	for _, tt := range []struct {
		current, next skillstate.Version
		want          bool
	}{
		{skillstate.Version{}, version(1, skillstate.Rejected, true), true}, // there is no other
		{approved, approved, true},
		{approved, version(2, skillstate.Approved, true), true},
		{approved, version(2, "", false), true},
		{approved, version(2, "", true), false},
		{approved, version(2, skillstate.Rejected, false), false},
		{waiting, version(2, "", true), true},
		{waiting, version(2, skillstate.ChangesRequested, true), false},
		{rejected, version(2, "", true), false},
		{rejected, version(2, "", false), true},
	} {
		if got := tt.next.MayReplace(tt.current); got != tt.want {
			t.Errorf("%+v may replace %+v: %v, want %v", tt.next, tt.current, got, tt.want)
		}
	}
}
