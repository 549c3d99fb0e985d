package packages

import (
	"fmt"
	"strings"
	"testing"
)

func TestInstallerOutputIsPlainText(t *testing.T) {
	for said, want := range map[string]string{
		"ERROR: \x1b[31mno\x1b[0m\r\n":              "ERROR: no",
		"at https://me:pass@host/x and http://t@h/": "at https://host/x and http://h/",
		"\x1b]0;title\a\u202ebad\xff":               "]0;titlebad\ufffd",
	} {
		got := &outputTail{}
		fmt.Fprint(got, said)
		if got.String() != want {
			t.Errorf("%q became %q, want %q", said, got, want)
		}
	}
	long := &outputTail{}
	for i := range 10_000 {
		fmt.Fprintf(long, "line %d\n", i)
	}
	if s := long.String(); len(s) > maxTail || !strings.HasPrefix(s, "line ") || !strings.HasSuffix(s, "line 9999") {
		t.Errorf("%d bytes, %.20q…", len(s), s)
	}
}

func TestFileNamesAreOrdinary(t *testing.T) {
	for p, want := range map[string]bool{
		"a/b.py": true, ".package-lock.json": true, "a b/ü": true,
		"": false, "..": false, "../a": false, "a/../b": false, "/a": false, "a//b": false, "a/": false, "./a": false, `a\b`: false, "a\nb": false, strings.Repeat("a", 2000): false,
	} {
		if got := isAcceptable(p); got != want {
			t.Errorf("%q: %v", p, got)
		}
	}
}
