package anthropic

import (
	"strconv"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
)

// version is a model's family and version number, such as opus 4.8. It is zero
// if the name does not contain them.
type version struct {
	family string
	number int // 408 means 4.8
}

var versionPattern = lazyregexp.New(`claude-([a-z]+)-(\d{1,2})(?:[-.](\d{1,2}))?(?:\D|$)`)

func parseVersion(model string) version {
	found := versionPattern.FindStringSubmatch(model)
	if found == nil {
		return version{}
	}
	major, _ := strconv.Atoi(found[2])
	minor, _ := strconv.Atoi(found[3])
	return version{found[1], 100*major + minor}
}

// systemMessages maps each family to the first version that accepts messages
// with the role "system" inside a conversation. Sonnet 5 rejects them with
// status 400.
var systemMessages = map[string]int{"opus": 408, "fable": 500, "mythos": 500, "sonnet": 505, "haiku": 505}

func (v version) acceptsSystemMessages() bool {
	first, ok := systemMessages[v.family]
	return ok && v.number >= first
}

// thinksAdaptively reports whether the model decides how long to think, as
// versions since 4.6 do. Versions since 4.7 reject a budget.
func (v version) thinksAdaptively() bool { return v.number >= 406 }
