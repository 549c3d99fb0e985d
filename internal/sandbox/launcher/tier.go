package launcher

import "github.com/loadout-dev/loadout/sandbox"

// Tier returns the tier of a sandbox whose backend has tier t. If memory is not
// limited, a tier above [sandbox.Confined] is lowered by one.
func Tier(t sandbox.Tier, enforced map[string]string) sandbox.Tier {
	if enforced["memory"] == "" && t > sandbox.Confined {
		return t - 1
	}
	return t
}
