package skill_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/skill"
)

func TestSplitToolsReadsAllSpellings(t *testing.T) {
	for in, want := range map[string][]string{
		"":                              nil,
		" , ,\t":                        nil,
		"Read":                          {"Read"},
		"Read Write":                    {"Read", "Write"},
		"Read,Write":                    {"Read", "Write"},
		"Read, Write,\n Edit":           {"Read", "Write", "Edit"},
		"Bash(git:*) Read":              {"Bash(git:*)", "Read"},
		"Bash(git add:*, git commit:*)": {"Bash(git add:*, git commit:*)"},
		"Bash(a (b, c) d), Read":        {"Bash(a (b, c) d)", "Read"},
		"Bash(a, b":                     {"Bash(a, b"},
		"a) b, c":                       {"a)", "b", "c"},
		"a)) (b c) d":                   {"a))", "(b c)", "d"},
		"Bash (git:*)":                  {"Bash", "(git:*)"},
		"mcp__a__b\u00a0mcp__c":         {"mcp__a__b", "mcp__c"},
	} {
		if diff := cmp.Diff(want, skill.SplitTools(in)); diff != "" {
			t.Errorf("%q: %s", in, diff)
		}
	}
}

func TestNormalizeNameTrimsAndNormalizes(t *testing.T) {
	for in, want := range map[string]string{
		"pdf": "pdf", "  pdf\n": "pdf", "\u00a0pdf\u2028": "pdf", "\x1fpdf\x1c": "pdf", "cafe\u0301": "café",
		"ｐｄｆ": "pdf", "ﬁle": "file", "Pdf": "Pdf", "": "", " ": "",
	} {
		if got := skill.NormalizeName(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestSlugIsPortable(t *testing.T) {
	for in, want := range map[string]string{
		"pdf": "pdf", "PDF Tools": "pdf-tools", "  a__b--c  ": "a-b-c", "Crème Brûlée": "creme-brulee", "文档": "skill", "": "skill",
		"ℌello": "hello", "a/b\\c": "a-b-c", "---": "skill", "日本 go": "go", long(70): long(63),
		long(62) + "-yz": long(62) + "-y", "Ⅷ": "viii",
	} {
		got := skill.Slug(in)
		if got != want || !skill.IsPortableName(got) || skill.Slug(got) != got {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestPortableNames(t *testing.T) {
	for name, want := range map[string]bool{
		"pdf": true, "a-1": true, long(64): true,
		"": false, long(65): false, "-a": false, "a-": false, "a--b": false, "A": false, "a_b": false, "é": false, "a b": false,
	} {
		if skill.IsPortableName(name) != want {
			t.Errorf("%q: want %v", name, want)
		}
	}
}

func TestOneLineStaysWithinItsLine(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "a b": "a b", " a  b ": "a b", "a\nb\r\n\tc": "a b c", "a\u2028b\u0085c": "a b c", "é ü": "é ü",
		"a\x00b\x1b[2J": "a b [2J", "a\u009b2Jb": "a 2Jb", "a ": "a", "\u00a0": "",
	} {
		if got := skill.OneLine(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestTokensGrowWithText(t *testing.T) {
	if n := skill.EstimateTokens(""); n != 0 {
		t.Errorf("%d tokens in nothing", n)
	}
	for _, text := range []string{
		"Reads PDF files, then writes HTMLText: 12345 pages.\n\n    - a.Bc __x__ ====== \r\n",
		"Crème brûlée 图表，分析 데이터 навык ✅✅✅ ──────── x\ufffd\xff\n", strings.Repeat(" ", 20), "A", "AB", "ABc", "a.B", "!!", "\n\n",
	} {
		last := 0
		for n := 1; n <= len(text); n++ {
			got := skill.EstimateTokens(text[:n])
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
		if got := skill.EstimateTokens(tt.text); got < tt.want*85/100 || got > tt.want*115/100 {
			t.Errorf("%.30q…: %d tokens, the vocabulary has %d", tt.text, got, tt.want)
		}
	}
}

func BenchmarkTokens15KB(b *testing.B) {
	text := strings.Repeat("Reads **PDF** files: run `scripts/read.py --all` first, then check the 12 pages.\n", 15_000/81)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		skill.EstimateTokens(text)
	}
}
