package skill_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/skill"
)

// laughs is an alias bomb: n levels of nine aliases each.
func laughs(n int) string {
	var b strings.Builder
	b.WriteString("l0: &l0 [lol]\n")
	for i := 1; i <= n; i++ {
		alias := fmt.Sprintf("*l%d", i-1)
		fmt.Fprintf(&b, "l%d: &l%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(alias+",", 9), ","))
	}
	return b.String()
}

func lines(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// hostile lists hostile files and the expected diagnostic codes.
var hostile = []struct {
	name string
	src  func() string
	code string // "" for none
}{
	{"body of 10 MB", func() string { return doc(ok) + strings.Repeat("0123456789abcde\n", 10<<20/16-100) }, "body-lines"},
	{"body of one line of 10 MB", func() string { return doc(ok) + long(skillfile.MaxFileBytes-100) }, "body-tokens"},
	{"more than 10 MB", func() string { return doc(ok) + long(skillfile.MaxFileBytes) }, "file-too-long"},
	{"10 MB of one line", func() string { return long(skillfile.MaxFileBytes) }, "frontmatter-missing"},
	{"10 MB of blank lines", func() string { return strings.Repeat("\n", skillfile.MaxFileBytes) }, "file-empty"},
	{"10 MB of one field", func() string { return "---\nname: " + long(skillfile.MaxFileBytes-10) }, "frontmatter-too-long"},
	{"10 MB of hyphens", func() string { return strings.Repeat("-", skillfile.MaxFileBytes) }, "frontmatter-fence"},
	{"10 MB of lines of two hyphens", func() string { return "---\n" + strings.Repeat("--\n", skillfile.MaxFileBytes/3-10) }, "frontmatter-too-long"},
	{"100,000 keys", func() string { return doc(ok + lines(100_000, "k%d: v\n")) }, "frontmatter-too-long"},
	{"as many keys as fit", func() string { return doc(ok + lines(7_000, "k%d: v\n")) }, "unexpected-fields"},
	{"as many metadata as fit", func() string { return doc(ok + "metadata:\n" + lines(5_000, " k%d: 1\n")) }, "metadata-values"},
	{"as many duplicates as fit", func() string { return doc(ok + strings.Repeat("a:\n", 20_000)) }, "duplicate-key"},
	{"duplicates, and --- in a value", func() string { return doc(ok + strings.Repeat("a:\n", 20_000) + "b: ---\n") }, "duplicate-key"},
	{"as many fields to repair as fit", func() string { return doc(ok + lines(5_000, "k%d: a: b\n")) }, "yaml-invalid"},
	{"flow lists 60,000 deep", func() string { return doc(ok + "a: " + strings.Repeat("[", 60_000) + "\n") }, "yaml-repaired"},
	{"flow lists 100,000 deep", func() string { return doc(ok + "a: " + strings.Repeat("[", 100_000) + "\n") }, "frontmatter-too-long"},
	{"flow lists 9,000 deep, closed", func() string {
		return doc(ok + "a: " + strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000) + "\n")
	}, "yaml-too-large"},
	{"flow maps 60,000 deep", func() string { return doc(ok + "a: " + strings.Repeat("{", 60_000) + "\n") }, "yaml-repaired"},
	{"block lists 30,000 deep", func() string { return doc(ok + "a:\n " + strings.Repeat("- ", 30_000) + "x\n") }, "yaml-repaired"},
	{"block maps 300 deep", func() string {
		var b strings.Builder
		for i := range 300 {
			b.WriteString(strings.Repeat(" ", i) + "a:\n")
		}
		return doc(b.String())
	}, "yaml-too-large"},
	{"complex keys 30,000 deep", func() string { return doc(ok + strings.Repeat("? ", 30_000) + "x\n") }, "yaml-invalid"},
	{"a billion laughs", func() string { return doc(ok + laughs(9)) }, "yaml-too-large"},
	{"a quadratic bomb", func() string {
		return doc(ok + "a: &a " + long(30_000) + "\nb: [" + strings.Repeat("*a,", 10_000) + "]\n")
	}, "yaml-too-large"},
	{"an alias inside what it names", func() string { return doc(ok + "a: &a [*a]\n") }, "yaml-too-large"},
	{"deep lists in deep lists by an alias", func() string {
		deep := func(s string) string { return strings.Repeat("[", 40) + s + strings.Repeat("]", 40) }
		return doc(ok + "a: &a " + deep("") + "\nb: " + deep("*a") + "\n")
	}, "yaml-too-large"},
	{"lists by an alias, as deep as permitted", func() string {
		deep := func(s string) string { return strings.Repeat("[", 25) + s + strings.Repeat("]", 25) }
		return doc(ok + "a: &a " + deep("") + "\nb: " + deep("*a") + "\n")
	}, "unexpected-fields"},
	{"an alias of nothing", func() string { return doc(ok + "a: *b\n") }, "yaml-repaired"},
	{"NUL bytes", func() string { return strings.Repeat("\x00", 1000) }, "frontmatter-missing"},
	{"UTF-16, little end first", func() string { return "\xff\xfe-\x00-\x00-\x00" }, "encoding-utf-16"},
	{"UTF-16, big end first", func() string { return "\xfe\xff\x00-\x00-\x00-" }, "encoding-utf-16"},
	{"UTF-16, little end first, without a mark", func() string { return "-\x00-\x00-\x00" }, "encoding-utf-16"},
	{"UTF-16, big end first, without a mark", func() string { return "\x00-\x00-\x00-" }, "encoding-utf-16"},
	{"C1 control character", func() string { return doc("name: pdf\ndescription: a\u0090b\n") }, "control-character"},
	{"escape sequence", func() string { return doc("name: pdf\ndescription: \x1b[2J\n") }, "control-character"},
	{"a byte that is not UTF-8", func() string { return doc("name: pdf\ndescription: \x80\n") }, "encoding-not-utf-8"},
	{"an overlong encoding", func() string { return doc("name: pdf\ndescription: \xc0\xaf\n") }, "encoding-not-utf-8"},
	{"a surrogate", func() string { return doc("name: pdf\ndescription: \xed\xa0\x80\n") }, "encoding-not-utf-8"},
	{"a name of 60,000 characters", func() string { return doc("name: " + long(60_000) + "\ndescription: d\n") }, "name-unusable"},
	{"control characters by escape in the name", func() string { return doc("name: \"a\\e[2Jb\"\ndescription: d\n") }, "name-unusable"},
	{"the name of a parent", func() string { return doc("name: ..\ndescription: d\n") }, "name-unusable"},
	{"60,000 tools", func() string { return doc(ok + "allowed-tools: " + strings.Repeat("a,", 30_000) + "\n") }, "allowed-tools-commas"},
	{"60,000 parentheses", func() string { return doc(ok + "allowed-tools: " + strings.Repeat("(", 60_000) + "\n") }, ""},
	{"an integer of 60,000 digits", func() string { return doc(ok + "version: " + strings.Repeat("9", 60_000) + "\n") }, "unexpected-fields"},
}

func TestHostileFilesAreRefusedOrReadWithinLimits(t *testing.T) {
	for _, tt := range hostile {
		t.Run(tt.name, func(t *testing.T) {
			src := []byte(tt.src())
			s, ds := skill.ParseBytes(src, skill.FileName, "pdf")
			found := tt.code == "" && len(ds) == 0
			for _, d := range ds {
				found = found || d.Code == tt.code
				if len(d.Message) > 10_000 || strings.ContainsAny(d.Message+d.Fix, "\n\x00\x1b\u009b") {
					t.Errorf("message is not fit to be shown: %.200q", d.Message)
				}
			}
			if !found {
				t.Errorf("want %q, got %.500v", tt.code, ds)
			}
			if len(ds) > 50 {
				t.Errorf("%d diagnostics", len(ds))
			}
			if s != nil {
				if _, err := s.FrontmatterJSON(); err != nil && !s.Repaired {
					t.Error(err)
				}
			}
			skill.ParseHead(src[:min(len(src), skillfile.MaxFrontmatterBytes+4<<10)], false, skill.FileName, "pdf")
		})
	}
}

// BenchmarkHostile shows that no hostile file costs much more than its size.
func BenchmarkHostile(b *testing.B) {
	for _, tt := range hostile {
		b.Run(tt.name, func(b *testing.B) {
			src := []byte(tt.src())
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				skill.ParseBytes(src, skill.FileName, "pdf")
			}
		})
	}
}
