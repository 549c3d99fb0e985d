package untrusted

import (
	"strings"
	"testing"
)

// The tables without a counterpart in the standard library have as many
// characters as the files of Unicode that they were made from, in order.
func TestTablesAreComplete(t *testing.T) {
	for name, tt := range map[string]struct {
		table       ranges
		count, sums int64
	}{
		"joiningNext":     {joiningNext, 585, 6355178},
		"joiningPrevious": {joiningPrevious, 730, 4466394},
		"pictographs":     {pictographs, 3537, 5086487},
		"viramas":         {viramas, 65, 6564582},
		"disallowed":      {disallowed, 2146506913, 4310254907},
	} {
		count, sums, last := int64(0), int64(0), rune(0xa0)
		for _, r := range tt.table {
			if r[0] > r[1] || r[0] <= last {
				t.Errorf("%s: %x is out of order", name, r)
			}
			last = r[1]
			count += int64(r[1]-r[0]) + 1
			sums += int64(r[0]) ^ int64(r[1])<<1
		}
		if count != tt.count || sums != tt.sums {
			t.Errorf("%s: %d characters, want %d; checksum %d, want %d", name, count, tt.count, sums, tt.sums)
		}
	}
}

func TestInRanges(t *testing.T) {
	table := ranges{{10, 12}, {14, 14}, {20, 30}}
	var got []rune
	for r := range rune(40) {
		if inRanges(table, r) {
			got = append(got, r)
		}
	}
	if string(got) != "\x0a\x0b\x0c\x0e\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e" || inRanges(nil, 1) {
		t.Errorf("%d", got)
	}
}

// Between a joiner and the letter that it belongs to are at most 8 marks.
func TestMarksBesideJoiners(t *testing.T) {
	const mark, letter = "\u0301", "\u0628"
	for n, want := range map[int]bool{0: true, maxMarks - 1: true, maxMarks: false} {
		marks := strings.Repeat(mark, n)
		if joinsNext(letter+marks) != want || joinsPrevious(marks+letter) != want {
			t.Errorf("%d marks: %v and %v", n, joinsNext(letter+marks), joinsPrevious(marks+letter))
		}
	}
	if joinsNext("") || joinsPrevious("") {
		t.Error("nothing joins")
	}
}

// Characters are in or out of their block up to its ends.
func TestBlocks(t *testing.T) {
	for name, tt := range map[string]struct {
		is     func(rune) bool
		blocks [][2]rune
	}{
		"spaceless": {isSpaceless, [][2]rune{{0xe00, 0xeff}, {0x1000, 0x109f}, {0x1780, 0x17b3}, {0x17b6, 0x17ff}}}, "Mongolian": {isMongolian, [][2]rune{{0x1820, 0x18aa}}},
		"keycap": {isKeycap, [][2]rune{{'0', '9'}, {'#', '#'}, {'*', '*'}}}, "isolate": {isIsolate, [][2]rune{{0x2066, 0x2069}}},
		"skin tone": {func(r rune) bool {
			return endsInPictograph("\u2708"+string(r)) && !inRanges(pictographs, r) && r != emojiSelector || r >= 0x1f3fb && r <= 0x1f3ff && endsInPictograph("\u2708"+string(r))
		}, [][2]rune{{0x1f3fb, 0x1f3ff}}},
		"variant of a Chinese character": {func(r rune) bool { return allowedInContext(r, "数", "") && r >= 0xe0000 }, [][2]rune{{0xe0100, 0xe010f}}},
		"variant of a Mongolian letter":  {func(r rune) bool { return allowedInContext(r, "\u1820", "x") && r != zeroWidthJoiner }, [][2]rune{{0x180b, 0x180d}, {0x180f, 0x180f}}},
	} {
		for r := rune(0); r <= 0xe0200; r++ {
			want := false
			for _, b := range tt.blocks {
				want = want || r >= b[0] && r <= b[1]
			}
			if got := tt.is(r); got != want {
				t.Errorf("%s: U+%04X: %v", name, r, got)
			}
		}
	}
}

func TestBalancedIsolates(t *testing.T) {
	const open, pop = "\u2068", "\u2069"
	nested := func(n int) string { return strings.Repeat(open, n) + "a" + strings.Repeat(pop, n) }
	for text, want := range map[string]int{
		"": 0, open + pop: 0, open + " " + pop: 0, open + "a" + pop: 2, open + "a": 0, "a" + pop: 0, open + "a\n" + pop: 0, open + "a\r" + pop: 0, open + "a\f" + pop: 0, open + "a\u0085" + pop: 0, open + "a\u2028" + pop: 0, open + "a\u2029" + pop: 0,
		nested(maxIsolates): 2 * maxIsolates, nested(maxIsolates + 1): 2 * maxIsolates, open + open + "a" + pop + pop: 4, open + open + pop + "a" + pop: 2, open + open + "a" + pop + " " + pop: 4,
	} {
		if got := balancedIsolates(text, 0); len(got) != want {
			t.Errorf("%+q: %d", text, got)
		}
	}
}
