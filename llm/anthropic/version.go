package anthropic

import (
	"regexp"
	"strconv"
	"sync"
)

// version is a model's family and number, such as opus 4.8. It is zero if the
// name does not contain them.
type version struct {
	family string
	number int // 408 means 4.8
}

// versioned compiles the pattern on first use, so that programs without such a
// model start faster.
var versioned = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`claude-([a-z]+)-(\d{1,2})(?:[-.](\d{1,2}))?(?:\D|$)`)
})

func versionOf(model string) version {
	found := versioned().FindStringSubmatch(model)
	if found == nil {
		return version{}
	}
	major, _ := strconv.Atoi(found[2])
	minor, _ := strconv.Atoi(found[3])
	return version{found[1], 100*major + minor}
}

// systemMessages maps each family to its first version that accepts messages
// with the role "system" inside a conversation. Sonnet 5 answers 400 to them.
var systemMessages = map[string]int{"opus": 408, "fable": 500, "mythos": 500, "sonnet": 505, "haiku": 505}

func (v version) takesSystemMessages() bool {
	first, ok := systemMessages[v.family]
	return ok && v.number >= first
}

// thinksAdaptively reports whether the model decides how long it thinks.
// Version 4.6 and later do; from 4.7 on, the vendor refuses a budget.
func (v version) thinksAdaptively() bool { return v.number >= 406 }
