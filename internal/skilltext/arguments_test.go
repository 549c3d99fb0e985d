package skilltext_test

import (
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/skilltext"
)

func FuzzFillArguments(f *testing.F) {
	f.Add("Fix $1 in `$1` for $ARGUMENTS\n```\n$2\n", `a "b c`, true)
	f.Add("", "", false)
	f.Fuzz(func(t *testing.T, body, typed string, hint bool) {
		filled, rest := skilltext.FillArguments(body, []string{typed}, hint)
		if strings.TrimSpace(typed) == "" && rest == "" && !strings.Contains(body, "$ARGUMENTS") && filled != body {
			t.Fatalf("nothing was typed, and %q became %q", body, filled)
		}
		if rest != "" && filled != body {
			t.Fatalf("%q became %q, and %q is left", body, filled, rest)
		}
		if !strings.Contains(body, "$") && filled != body {
			t.Fatalf("%q has no position, and became %q", body, filled)
		}
	})
}
