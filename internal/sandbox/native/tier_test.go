//go:build linux

package native_test

import (
	"testing"

	"github.com/loadout-dev/loadout/internal/sandbox/execute"
	"github.com/loadout-dev/loadout/internal/sandbox/native"
	"github.com/loadout-dev/loadout/sandbox"
)

// In the network of the host, code can have connections with large buffers,
// which only a control group limits. The result has a lower tier.
func TestUnlimitedMemoryLowersTier(t *testing.T) {
	backend(t)
	b := native.New(&native.Options{Stage: stagePath, NoGroups: true})
	for host, want := range map[bool]sandbox.Tier{false: sandbox.Isolated, true: sandbox.Confined} {
		res, err := execute.Run(t.Context(), b, &sandbox.Spec{Network: sandbox.Network{Host: host}}, &sandbox.Cmd{Args: []string{"true"}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if limited := res.Enforced["memory"] != ""; res.Tier != want || limited != (want == sandbox.Isolated) {
			t.Errorf("host network %v: tier %v, memory limited %v, want tier %v", host, res.Tier, limited, want)
		}
	}
}
