package decision

import (
	"strings"
	"testing"
)

// Arguments that are nested too deeply have no canonical form.
func TestNestingOfArguments(t *testing.T) {
	for n, want := range map[int]bool{1: true, maxNesting + 1: true, maxNesting + 2: false} {
		text := strings.Repeat("[", n) + strings.Repeat("]", n)
		got, ok := canonicalJSON([]byte(text))
		if ok != want || ok && got != text {
			t.Errorf("%d levels: %t", n, ok)
		}
		object := strings.Repeat(`{"a":`, n-1) + "{}" + strings.Repeat("}", n-1)
		if _, ok := canonicalJSON([]byte(object)); ok != want {
			t.Errorf("%d objects: %t", n, ok)
		}
	}
}
