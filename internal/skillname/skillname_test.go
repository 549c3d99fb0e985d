package skillname_test

import (
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/skillname"
)

func TestNormalizeNameTrimsAndNormalizes(t *testing.T) {
	for in, want := range map[string]string{
		"pdf": "pdf", "  pdf\n": "pdf", "\u00a0pdf\u2028": "pdf", "\x1fpdf\x1c": "pdf", "cafe\u0301": "café",
		"ｐｄｆ": "pdf", "ﬁle": "file", "Pdf": "Pdf", "": "", " ": "",
	} {
		if got := skillname.Normalize(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestSlugIsPortable(t *testing.T) {
	for in, want := range map[string]string{
		"pdf": "pdf", "PDF Tools": "pdf-tools", "  a__b--c  ": "a-b-c", "Crème Brûlée": "creme-brulee", "文档": "skill", "": "skill",
		"ℌello": "hello", "a/b\\c": "a-b-c", "---": "skill", "日本 go": "go", long(70): long(63),
		long(62) + "-yz": long(62) + "-y", "Ⅷ": "viii", "az09": "az09", "`{/:": "skill", "a`z{0/9:b": "a-z-0-9-b",
	} {
		got := skillname.Slug(in)
		if got != want || !skillname.IsPortable(got) || skillname.Slug(got) != got {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestPortableNames(t *testing.T) {
	for name, want := range map[string]bool{
		"pdf": true, "a-1": true, "az09": true, "a`": false, "a{": false, "a/": false, "a:": false, long(64): true,
		"": false, long(65): false, "-a": false, "a-": false, "a--b": false, "A": false, "a_b": false, "é": false, "a b": false,
	} {
		if skillname.IsPortable(name) != want {
			t.Errorf("%q: want %v", name, want)
		}
	}
}

func FuzzSlug(f *testing.F) {
	for _, s := range []string{"PDF Tools", "Crème Brûlée", "ℌ", "İ", "˘0", long(70)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		slug := skillname.Slug(s)
		if !skillname.IsPortable(slug) || skillname.Slug(slug) != slug {
			t.Errorf("%q: slug %q", s, slug)
		}
		if name := skillname.Normalize(s); skillname.Normalize(name) != name {
			t.Errorf("%q: name %q is not stable", s, name)
		}
	})
}

func long(n int) string { return strings.Repeat("x", n) }

func TestPythonModulesAreDottedNames(t *testing.T) {
	for in, want := range map[string]bool{
		"app.chat_shell.tools.pending_requests": true, "a.b": true, "_a.B1": true, "pdf": false, "a": false, "": false, ".": false, "a.": false, ".a": false,
		"a..b": false, "a.1b": false, "1.2": false, "tool@1.2": false, "a-b.c": false, "a.b@^1": false, "a. b": false, "ä.b": false,
	} {
		if got := skillname.IsPythonModule(in); got != want {
			t.Errorf("%q: %v, want %v", in, got, want)
		}
	}
}
