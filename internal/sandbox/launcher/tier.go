package launcher

import "github.com/loadout-dev/loadout/sandbox"

// Tier returns the tier of a sandbox whose backend has the given tier: one lower
// if memory is not limited. A sandbox that isolates code or confines its access
// has at least [sandbox.Confined].
func Tier(t sandbox.Tier, enforced map[string]string) sandbox.Tier {
	if enforced["memory"] == "" && t > sandbox.Confined {
		return t - 1
	}
	return t
}
