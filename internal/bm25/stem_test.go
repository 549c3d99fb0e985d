package bm25

import "testing"

// The rows are from the sample and the rules of the Porter2 paper. The whole of its published vocabulary and the 100,000
// words of the skills in bench/search were compared once with two other implementations, without a difference.
func TestStem(t *testing.T) {
	for _, c := range []struct{ word, want string }{
		{"consign", "consign"}, {"consignment", "consign"}, {"consistency", "consist"}, {"consolation", "consol"},
		{"consolidated", "consolid"}, {"knightly", "knight"}, {"knots", "knot"}, {"knocking", "knock"},
		{"caresses", "caress"}, {"ties", "tie"}, {"cries", "cri"}, {"gas", "gas"}, {"gaps", "gap"}, {"kiwis", "kiwi"},
		{"agreed", "agre"}, {"feed", "feed"}, {"luxuriated", "luxuri"}, {"hopping", "hop"}, {"hoping", "hope"},
		{"happy", "happi"}, {"by", "by"}, {"fly", "fli"}, {"its", "it"}, {"say", "say"}, {"youth", "youth"},
		{"normalization", "normal"}, {"normalize", "normal"}, {"harmonization", "harmon"}, {"extraction", "extract"},
		{"hopefulness", "hope"}, {"geological", "geolog"}, {"replacement", "replac"}, {"adjustable", "adjust"},
		{"formative", "format"}, {"controlling", "control"}, {"communication", "communic"}, {"generate", "generat"},
		{"dying", "die"}, {"news", "news"}, {"proceeding", "proceed"}, {"succeeds", "succeed"},
		{"13f", "13f"}, {"c++", "c++"}, {"größen", "größen"}, {"is", "is"}, {"", ""},
	} {
		if got := string(stem([]byte(c.word))); got != c.want {
			t.Errorf("%s: got %q, want %q", c.word, got, c.want)
		}
	}
}
