package terminal

import (
	"strings"
	"testing"
)

// marked returns a line with its styles: k keyword, s string, n number, c comment.
func marked(l line) string {
	var b strings.Builder
	for _, s := range l {
		if name := map[style]string{keywordStyle: "k", stringStyle: "s", numberStyle: "n", commentStyle: "c", red: "-"}[s.style]; name != "" {
			b.WriteString(name + "<" + s.text + ">")
		} else {
			b.WriteString(s.text)
		}
	}
	return b.String()
}

func TestHighlight(t *testing.T) {
	for _, tt := range []struct{ language, code, want string }{
		{"go", `if x := f("a\"b", 'c', 0x1F); x {`, `k<if> x := f(s<"a\"b">, s<'c'>, n<0x1F>); x {`},
		{"go", "a := `one\ntwo` // three", "a := s<`one>\ns<two`> c<// three>"},
		{"Go,ignore", "/* a\nb */ return nil", "c</* a>\nc<b */> k<return> k<nil>"},
		{"rust", "fn a<'b>(x: &'b str) -> char { '\\n' }", "k<fn> a<'b>(x: &'b str) -> char { s<'\\n'> }"},
		{"python", "def f(x):  # it's\n    '''a\n    b'''\n    return None", "k<def> f(x):  c<# it's>\n    s<'''a>\ns<    b'''>\n    k<return> k<None>"},
		{"ts", "const a = `x ${1}` + 'it\\'s'", "k<const> a = s<`x ${1}`> + s<'it\\'s'>"},
		{"sh", "for i in $#; do echo \"a\nb\"; done # x", "k<for> i k<in> $#; k<do> echo s<\"a>\ns<b\">; k<done> c<# x>"},
		{"sh", `echo 'a\' \"b \' "c\"d"`, `echo s<'a\'> \"b \' s<"c\"d">`},
		{"sh", `a\`, `a\`},
		{"json", `{"a": [1.5, true], "url": "http://x"}`, `{s<"a">: [n<1.5>, k<true>], s<"url">: s<"http://x">}`},
		{"yaml", "url: http://x # it's\na#b: don't", "url: http://x c<# it's>\na#b: don't"},
		{"sql", "SELECT a FROM b WHERE c='x' -- y", "k<SELECT> a k<FROM> b k<WHERE> c=s<'x'> c<-- y>"},
		{"diff", "-old\n+new\n same", "-<-old>\ns<+new>\n same"},
		{"html", `<a href="x">can't</a> <!-- y -->`, `<a href=s<"x">>can't</a> c<<!-- y -->>`},
		{"klingon", `if "x"`, `n<if "x">`}, // one color
	} {
		var got []string
		for _, l := range highlight(strings.Split(tt.code, "\n"), tt.language) {
			got = append(got, marked(l))
		}
		if text := strings.Join(got, "\n"); text != tt.want {
			t.Errorf("%s:\n%s\nwant\n%s", tt.language, text, tt.want)
		}
	}
}

// Highlighting changes no text, and its time grows with the length of the code.
func FuzzHighlight(f *testing.F) {
	for name := range syntaxes() {
		f.Add(name, "a \"b\\\" 'c' // d\n/* e # f `g` 1.5 --h <!-- \xff")
	}
	f.Fuzz(func(t *testing.T, language, code string) {
		lines := strings.Split(code, "\n")
		for i, l := range highlight(lines, language) {
			if l.plainText() != lines[i] {
				t.Errorf("%s: %q becomes %q", language, lines[i], l.plainText())
			}
		}
	})
}
