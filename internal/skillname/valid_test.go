package skillname_test

import (
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/skillname"
)

func TestIsValid(t *testing.T) {
	for name, want := range map[string]bool{
		"pdf": true, "a-1": true, "发布说明": true, "übung": true, "日本-語": true, strings.Repeat("发", 64): true,
		"": false, "Pdf": false, "Übung": false, "-a": false, "a-": false, "a--b": false, "a_b": false, "a b": false, "a/b": false, "a.b": false, "发布！": false, strings.Repeat("发", 65): false,
	} {
		if got := skillname.IsValid(name); got != want {
			t.Errorf("%q: %t, want %t", name, got, want)
		}
	}
}
