package tokencount

import (
	"strings"
	"testing"
)

// The steps are as they were fitted: each text followed by a space, a, A, 1, a line
// end and a mark, repeated 100 times, has this many tokens. Only a new fit, compared
// as in bench/README.md, changes them.
func TestStepsAreAsFitted(t *testing.T) {
	for _, tt := range fitted {
		for i, c := range []string{" ", "a", "A", "1", "\n", "("} {
			if got := Estimate(strings.Repeat(tt.text+c, 100)); got != tt.tokens[i] {
				t.Errorf("%+q: %d tokens, want %d", tt.text+c, got, tt.tokens[i])
			}
		}
	}
}

// fitted holds texts that end in each state.
var fitted = []struct {
	text   string
	tokens [6]int
}{
	{"x ", [6]int{193, 104, 104, 284, 181, 197}},
	{"x  ", [6]int{193, 194, 194, 374, 271, 287}},
	{"x\n", [6]int{193, 182, 182, 298, 181, 220}},
	{"1", [6]int{192, 208, 177, 78, 207, 223}},
	{"12", [6]int{192, 208, 177, 117, 207, 223}},
	{"123", [6]int{192, 208, 177, 157, 207, 223}},
	{"1234", [6]int{309, 325, 294, 195, 324, 340}},
	{"(", [6]int{106, 129, 106, 223, 106, 11}},
	{" (", [6]int{195, 197, 166, 223, 106, 115}},
	{"((", [6]int{115, 206, 175, 232, 115, 16}},
	{"(((", [6]int{124, 215, 184, 241, 124, 21}},
	{"((((", [6]int{133, 224, 193, 250, 133, 26}},
	{"(((((", [6]int{142, 233, 202, 259, 142, 31}},
	{"((((((", [6]int{147, 238, 207, 264, 147, 36}},
	{" a", [6]int{192, 103, 163, 220, 193, 209}},
	{" aa", [6]int{192, 103, 163, 220, 193, 209}},
	{" aaa", [6]int{192, 103, 163, 220, 193, 209}},
	{" aaaa", [6]int{192, 103, 163, 220, 193, 209}},
	{" aaaaa", [6]int{192, 103, 163, 220, 193, 209}},
	{" aaaaaa", [6]int{192, 103, 163, 220, 193, 209}},
	{" aaaaaaa", [6]int{192, 103, 163, 220, 193, 209}},
	{" aaaaaaaa", [6]int{192, 103, 163, 220, 193, 209}},
	{" aaaaaaaaa", [6]int{192, 107, 163, 220, 193, 209}},
	{" aaaaaaaaaa", [6]int{196, 111, 167, 224, 197, 213}},
	{"(a", [6]int{196, 129, 189, 246, 219, 206}},
	{"(aa", [6]int{196, 129, 189, 246, 219, 206}},
	{"(aaa", [6]int{196, 129, 189, 246, 219, 206}},
	{"(aaaa", [6]int{196, 129, 189, 246, 219, 206}},
	{"(aaaaa", [6]int{196, 142, 189, 246, 219, 206}},
	{"(aaaaaa", [6]int{209, 155, 202, 259, 232, 219}},
	{"(aaaaaaa", [6]int{222, 168, 215, 272, 245, 232}},
	{" A", [6]int{192, 103, 106, 220, 193, 209}},
	{" AA", [6]int{195, 151, 119, 223, 196, 212}},
	{" AAA", [6]int{208, 197, 132, 236, 209, 225}},
	{" AAAA", [6]int{221, 210, 145, 249, 222, 238}},
	{" AAAAA", [6]int{234, 223, 158, 262, 235, 251}},
	{" AAAAAA", [6]int{247, 236, 171, 275, 248, 264}},
	{" AAAAAAA", [6]int{260, 249, 184, 288, 261, 277}},
	{" AAAAAAAA", [6]int{273, 262, 197, 301, 274, 290}},
	{" AAAAAAAAA", [6]int{286, 275, 197, 314, 287, 303}},
	{" AAAAAAAAAA", [6]int{286, 275, 197, 314, 287, 303}},
	{"(A", [6]int{165, 137, 152, 223, 196, 175}},
	{"(AA", [6]int{211, 197, 165, 269, 242, 221}},
	{"(AAA", [6]int{224, 243, 178, 282, 255, 234}},
	{"п", [6]int{61, 152, 121, 178, 151, 167}},
	{"пп", [6]int{92, 183, 152, 209, 182, 198}},
	{"→", [6]int{127, 218, 187, 244, 217, 233}},
	{"→→", [6]int{254, 345, 314, 371, 344, 360}},
	{"数", [6]int{72, 163, 132, 189, 162, 178}},
	{"数数", [6]int{144, 235, 204, 261, 234, 250}},
	{"한", [6]int{60, 151, 120, 177, 150, 166}},
	{"。", [6]int{50, 141, 110, 167, 140, 156}},
	{"é", [6]int{113, 36, 102, 218, 191, 140}},
	{" é", [6]int{202, 113, 173, 230, 203, 219}},
	{"aé", [6]int{113, 49, 102, 218, 191, 140}},
}

func TestClasses(t *testing.T) {
	want := map[uint8]string{space: " \t", newline: "\n\r", lower: "abcdefghijklmnopqrstuvwxyz", upper: "ABCDEFGHIJKLMNOPQRSTUVWXYZ", digit: "0123456789"}
	for c, class := range classes {
		expected := uint8(mark)
		for k, chars := range want {
			if strings.IndexByte(chars, byte(c)) >= 0 {
				expected = k
			}
		}
		if class != expected {
			t.Errorf("%q: class %d, want %d", rune(c), class, expected)
		}
	}
}

// Half a token is rounded up, and no text has none.
func TestRounding(t *testing.T) {
	for text, want := range map[string]int{"": 0, " ": 1, "a": 1, "(a": 1, "((a": 2} {
		if got := Estimate(text); got != want {
			t.Errorf("%q: %d tokens, want %d", text, got, want)
		}
	}
}
