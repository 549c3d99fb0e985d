package untrusted

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// lookalikes maps letters and hyphens to the ASCII characters that they look
// like. Most pairs are in confusables.txt of Unicode Technical Standard 39.
// Full-width and mathematical letters are not here, because names are in NFKC.
var lookalikes = func() map[rune]rune {
	out := map[rune]rune{}
	for like, those := range map[rune]string{
		'a': "аαɑ", 'b': "ВΒƅ", 'c': "сϲᴄ", 'd': "ԁ", 'e': "еЕΕҽ", 'g': "ɡց", 'h': "һНΗհ", 'i': "іιıΙ", 'j': "јϳյ", 'k': "кКκΚ",
		'l': "ӏ", 'm': "МΜ", 'n': "Νոռ", 'o': "оοσօᴏ", 'p': "рρΡ", 'q': "ԛզ", 'r': "гᴦ", 's': "ѕꜱ", 't': "ТΤ", 'u': "υսᴜ", 'v': "νѵᴠ",
		'w': "ԝѡᴡ", 'x': "хΧ", 'y': "уУγΥ", 'z': "ᴢΖ", '-': "‐‑‒–—−֊",
	} {
		for _, r := range those {
			out[r] = like
		}
	}
	return out
}()

// Skeleton returns a name in lower case, without hidden characters and with each
// letter replaced by the ASCII letter that it looks like, if any. Two names with
// the same skeleton look alike. A lower-case ASCII name is its own skeleton.
func Skeleton(name string) string {
	if strings.IndexFunc(name, func(r rune) bool { return r >= utf8.RuneSelf || r >= 'A' && r <= 'Z' || r < ' ' }) < 0 {
		return name
	}
	skeleton := strings.Map(func(r rune) rune {
		if like, ok := lookalikes[r]; ok {
			return like
		}
		if r = unicode.ToLower(r); lookalikes[r] != 0 {
			return lookalikes[r]
		}
		if Disallowed(r) {
			return -1
		}
		return r
	}, New(name).ForModel())
	return strings.Join(strings.Fields(skeleton), " ") // a removed character may have been between spaces
}
