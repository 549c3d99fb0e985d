package skillpath_test

import (
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/skillpath"
)

func TestCheck(t *testing.T) {
	part := strings.Repeat("a", 255)
	for p, want := range map[string]string{
		"a/b.txt": "", part: "", "x/" + part + "/y": "", part + "a": "path-too-long", "x/" + part + "a/y": "path-too-long",
		"../a": "path-escape", "a/../b": "path-escape", "a//b": "path-unclean", "./a": "path-unclean", "a/": "path-unclean",
		"a:b": "drive", "ab:c": "name-colon", "a?": "name-character", "a|b": "name-character", "a.": "name-end", "a /b": "name-end", "con": "name-reserved", "x/NUL.txt": "name-reserved", "console": "",
		"a\u202eb": "name-control",
	} {
		if code, reason := skillpath.Check(p); code != want || (reason == "") != (want == "") {
			t.Errorf("Check(%.20q) = %q, %q; want %q", p, code, reason, want)
		}
	}
}
