package skill

import "unicode"

// Tokens estimates how many tokens a language model counts in text. It is
// made to agree with the o200k vocabulary within about a tenth on real skills
// (bench/README.md has the comparison); other vocabularies differ by up to a
// fifth. It is for budgets and warnings, never for billing.
func Tokens(text string) int {
	const unit = 100 // hundredths of a token
	total, run := 0, 0
	class := classNone
	flush := func() {
		switch class {
		case classLetter:
			total += letterCost(run)
		case classDigit:
			total += (run + 2) / 3 * unit
		case classMark:
			total += 62 + 38*(run-1)
		case classWide:
			total += 72 * run
		case classOther:
			total += 55*run + 20
		case classNewline:
			total += 55
		}
		run = 0
	}
	for _, r := range text {
		c := classify(r)
		if c != class {
			flush()
			class = c
		}
		run++
	}
	flush()
	return (total + unit - 1) / unit
}

const (
	classNone = iota
	classLetter
	classDigit
	classSpace
	classNewline
	classMark
	classWide
	classOther
)

func classify(r rune) int {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z':
		return classLetter
	case '0' <= r && r <= '9':
		return classDigit
	case r == ' ' || r == '\t' || r == '\r':
		return classSpace
	case r == '\n':
		return classNewline
	case r < 0x80:
		return classMark
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul):
		return classWide
	default:
		return classOther
	}
}

// letterCost is the cost of a run of ASCII letters in hundredths: common
// words are one token, long ones two or three.
func letterCost(n int) int {
	if n <= 6 {
		return 100
	}
	return 100 + (n-6)*9
}
