package anthropic

import (
	"regexp"
	"strconv"
	"sync"
)

// version is a model's family and number, as opus 4.8; zero where the name does not say.
type version struct {
	family string
	number int // 408 is 4.8
}

// versioned is compiled when a model is made: a program that uses none starts sooner.
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

// systemMessages are the first models of each family that take messages of the role
// "system" inside a conversation. Sonnet 5 answers 400 to them.
var systemMessages = map[string]int{"opus": 408, "fable": 500, "mythos": 500, "sonnet": 505, "haiku": 505}

func (v version) takesSystemMessages() bool {
	first, ok := systemMessages[v.family]
	return ok && v.number >= first
}

// thinksAdaptively says whether the model decides how long it thinks: from 4.7 on, a
// budget is refused.
func (v version) thinksAdaptively() bool { return v.number >= 406 }
