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
		"a\u202eb": "name-control", "a\x7f": "name-control", "\u200e": "name-control", "\u200f": "name-control", "\u061c": "name-control",
		"\u202a": "name-control", "\u2066": "name-control", "\u2069": "name-control", "\u2029": "", "\u202f": "", "\u2065": "", "\u206a": "",
		strings.Repeat("abc/", 127) + "abcd": "", strings.Repeat("abc/", 127) + "abcde": "path-too-long", // 512 and 513 bytes
		"\xff": "name-encoding", "/a": "absolute-path", `a\b`: "backslash", "c:": "drive", "a": "", ".": "path-unclean", "..": "path-escape", "": "path-unclean",
		"<": "name-character", "x*": "name-character", `a"b`: "name-character",
		"com1": "name-reserved", "COM¹.x": "name-reserved", "lpt9 .txt": "name-reserved", "com": "", "com0": "", "com10": "", "com12": "", "abc1": "", "lptx": "", "conin$": "name-reserved",
	} {
		if code, reason := skillpath.Check(p); code != want || (reason == "") != (want == "") {
			t.Errorf("Check(%.20q) = %q, %q; want %q", p, code, reason, want)
		}
	}
}
