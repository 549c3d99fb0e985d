package hostns

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/loadout-dev/loadout/internal/sandbox/launcher"
	"github.com/loadout-dev/loadout/internal/sandbox/stage"
	"github.com/loadout-dev/loadout/sandbox"
)

// A process limit of a user must leave room for the processes that the user has.
func TestProcessLimit(t *testing.T) {
	const limit, unused = 10, 4_000_000_000
	const most = limit + launcher.SpareThreads
	processes := func(all []stage.Rlimit) int {
		for _, l := range all {
			if l.Resource == unix.RLIMIT_NPROC {
				return int(l.Hard)
			}
		}
		return 0
	}
	l := sandbox.Limits{Processes: limit}
	if got := processes(rlimits(l, unused, true)); got != most {
		t.Errorf("limit of a user without processes: got %d, want %d", got, most)
	}
	if got := processes(rlimits(l, 0, true)); got <= most {
		t.Errorf("limit of the own user: got %d, want more than %d", got, most)
	}
	if got := processes(rlimits(l, os.Geteuid(), true)); got <= most {
		t.Errorf("limit of user %d: got %d, want more than %d", os.Geteuid(), got, most)
	}
	if got := processes(rlimits(l, 0, false)); got != 0 {
		t.Errorf("limit without a count by user: got %d, want none", got)
	}
}
