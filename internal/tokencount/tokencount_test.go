package tokencount_test

import (
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/tokencount"
)

func TestTokensGrowWithText(t *testing.T) {
	if n := tokencount.Estimate(""); n != 0 {
		t.Errorf("%d tokens in nothing", n)
	}
	for _, text := range []string{
		"Reads PDF files, then writes HTMLText: 12345 pages.\n\n    - a.Bc __x__ ====== \r\n",
		"Crème brûlée 图表，分析 데이터 навык ✅✅✅ ──────── x\ufffd\xff\n", strings.Repeat(" ", 20), "A", "AB", "ABc", "a.B", "!!", "\n\n",
	} {
		last := 0
		for n := 1; n <= len(text); n++ {
			got := tokencount.Estimate(text[:n])
			// The end of a piece may split a character.
			if valid := strings.ToValidUTF8(text[:n], "") == text[:n]; valid && (got < last || got == 0) {
				t.Errorf("%q has %d tokens, its beginning has %d", text[:n], got, last)
			} else if valid {
				last = got
			}
		}
	}
}

// The counts are from the o200k vocabulary.
func TestTokensApproximateVocabulary(t *testing.T) {
	for _, tt := range []struct {
		text string
		want int
	}{
		{"此技能用于分析错误报告并制定工作计划。当用户要求检查日志、查找故障原因或为团队准备简短说明时使用。", 31},
		{"Cette compétence aide à analyser les rapports d'erreur et à préparer un plan de travail. Utilisez-la quand quelqu'un " +
			"demande de vérifier le journal ou de trouver la cause d'une panne.", 38},
		{"이 스킬은 오류 보고서를 분석하고 작업 계획을 작성하는 데 도움이 됩니다. 사용자가 로그 확인이나 장애 원인 조사를 요청할 때 사용하세요.", 34},
		{"✅ Done 🚀 Launch ⚠️ Warning ❌ Failed 📦 Package 🔧 Fix → next ├── file └── other • item — dash … “quoted” ’s", 38},
	} {
		if got := tokencount.Estimate(tt.text); got < tt.want*85/100 || got > tt.want*115/100 {
			t.Errorf("%.30q…: %d tokens, the vocabulary has %d", tt.text, got, tt.want)
		}
	}
}

func BenchmarkTokens15KB(b *testing.B) {
	text := strings.Repeat("Reads **PDF** files: run `scripts/read.py --all` first, then check the 12 pages.\n", 15_000/81)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		tokencount.Estimate(text)
	}
}

// All characters of a block count alike, up to its ends.
func TestBlocksOfCharacters(t *testing.T) {
	for _, block := range [][3]rune{
		{0xc0, 'é', 0x36f}, {0x1e00, 'ế', 0x1eff}, // Latin letters and accents
		{0x3400, '数', 0x9fff}, {0x3040, 'か', 0x30ff}, {0xf900, '豈', 0xfaff}, {0x20000, '𠮷', 0x3ffff}, // Han and kana
		{0xac00, '한', 0xd7af},
		{0x3000, '。', 0x303f}, {0xff00, '，', 0xffef},
	} {
		estimate := func(r rune) int { return tokencount.Estimate(strings.Repeat("a"+string(r), 100)) }
		first, middle, last := estimate(block[0]), estimate(block[1]), estimate(block[2])
		if first != middle || last != middle {
			t.Errorf("%+q: %d, %d and %d tokens", block, first, middle, last)
		}
	}
}

// Accents make words longer in tokens.
func TestAccentsAreCounted(t *testing.T) {
	plain, accents := tokencount.Estimate(strings.Repeat("resume ete ", 50)), tokencount.Estimate(strings.Repeat("résumé été ", 50))
	if accents <= plain {
		t.Errorf("%d tokens with accents, %d without", accents, plain)
	}
}

// Words of one alphabet have fewer tokens than the same letters between others.
func TestAlphabetsAreContinued(t *testing.T) {
	word, mixed := tokencount.Estimate(strings.Repeat("привет", 50)), tokencount.Estimate(strings.Repeat("п数", 150))
	if han := tokencount.Estimate(strings.Repeat("数", 150)); word >= mixed-han+50 {
		t.Errorf("%d tokens in words, %d between Han characters", word, mixed-han)
	}
	// A line of the same symbol is a few tokens.
	if line, others := tokencount.Estimate(strings.Repeat("─", 80)), tokencount.Estimate(strings.Repeat("─│", 40)); line > 8 || others < 80 {
		t.Errorf("%d tokens in a line, %d in a pattern", line, others)
	}
}
