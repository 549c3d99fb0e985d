package procstat_test

import (
	"fmt"
	"testing"

	"github.com/loadout-dev/loadout/internal/procstat"
)

func TestParse(t *testing.T) {
	const after = "S 1 7 7 0 -1 4194560 100 0 0 0 1 2 0 0 20 0 1 0 4711 1000 200 18446744073709551615"
	for _, program := range []string{"cat", "a b", "a) b", ") R 2 3", "a\n)"} {
		state, start := procstat.Parse(fmt.Sprintf("7 (%s) %s\n", program, after))
		if state != "S" || start != "4711" {
			t.Errorf("program %q: state %q, start %q", program, state, start)
		}
	}
	for _, stat := range []string{"", "7", "7 (cat)", "7 (cat) S 1 7"} {
		if state, start := procstat.Parse(stat); state != "" || start != "" {
			t.Errorf("%q: state %q, start %q", stat, state, start)
		}
	}
}
