package agents_test

import (
	"path"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/loadout-dev/loadout/internal/hub/agents"
)

// What two lists let through together each of them lets through; and a name that both
// of them have is let through.
func TestIntersectNeverWidens(t *testing.T) {
	passes := func(list []string, name string) bool {
		return len(list) == 0 || slices.ContainsFunc(list, func(p string) bool { ok, _ := path.Match(p, name); return ok })
	}
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringMatching(`[ab*?-]{1,5}|[ab]\[ab\]`)
		a, b := rapid.SliceOfN(pattern, 0, 4).Draw(t, "a"), rapid.SliceOfN(pattern, 0, 4).Draw(t, "b")
		list, some := agents.Both(a, b)
		for _, name := range rapid.SliceOfN(rapid.StringMatching(`[ab-]{1,6}`), 1, 20).Draw(t, "names") {
			if some && passes(list, name) && !(passes(a, name) && passes(b, name)) {
				t.Errorf("%v and %v are %v, which lets %q through", a, b, list, name)
			}
			if slices.Contains(a, name) && slices.Contains(b, name) && (!some || !passes(list, name)) {
				t.Errorf("%v and %v are %v, which keeps %q out", a, b, list, name)
			}
		}
	})
}
