package demo

import (
	"strings"
	"testing"
)

func TestMentions(t *testing.T) {
	for _, tt := range []struct {
		text, name string
		want       bool
	}{
		{"use pdf", "pdf", true}, {"PDF please", "pdf", true}, {"pdf", "PDF", true}, {"(pdf)", "pdf", true}, {"use pdf.", "pdf", true}, {"pdf. Then", "pdf", true}, {"pdf, csv", "pdf", true},
		{"pdfs", "pdf", false}, {"mypdf", "pdf", false}, {"a.pdf", "pdf", true}, {"pdf.py", "pdf", false}, {"x/pdf", "pdf", false}, {"pdf/x", "pdf", false}, {"pdf-tools", "pdf", false}, {"pdf_2", "pdf", false}, {"pdf2", "pdf", false},
		{"mypdf and pdf", "pdf", true}, {"pdfs, pdf", "pdf", true}, {"fill forms now", "fill-forms", true}, {"fill_forms", "fill-forms", false}, {"fill-forms", "fill-forms", true},
		{"用pdf吧", "pdf", true}, {"请翻译文件", "翻译", true}, {"", "pdf", false}, {"pdf", "", false},
	} {
		if got := mentions(tt.text, tt.name); got != tt.want {
			t.Errorf("%q mentions %q: %t", tt.text, tt.name, got)
		}
	}
}

func TestIsWide(t *testing.T) {
	for r, want := range map[rune]bool{0x2e7f: false, 0x2e80: true, 0x9fff: true, 0xa000: false, 0xabff: false, 0xac00: true, 0xd7ff: true, 0xf8ff: false, 0xf900: true, 0xfaff: true, 0xfb00: false, 'é': false} {
		if got := isWide(r); got != want {
			t.Errorf("%#x is wide: %t", r, got)
		}
	}
}

func TestAsksForOverview(t *testing.T) {
	for text, want := range map[string]bool{
		"What can you do?": true, "hi!": true, "help": true, "hello": true, "what skills do you have?": true, "你好！": true, "你能做什么？": true,
		"hi there": false, "help me with my taxes": false, "hello world": false, "what skills does a sailor need on the sea": false, "": false,
	} {
		if got := (&turn{words: text}).asksForOverview(); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}

func TestFits(t *testing.T) {
	const commits = "git-commit-review Write commit messages from a diff, review a change before it is committed or merged. Use for \"write a commit message\" or what did I change."
	for _, tt := range []struct {
		request, description string
		want                 bool
	}{
		{"write me a poem", commits, false}, {"write a commit message", commits, true}, {"review my diff", commits, true},
		{"fill the form", "Fills PDF forms", true}, {"forms", "form", true}, {"what is in this csv", "Profiles CSV files", true},
		{"compare the harbour fees of last year", "Reads harbour charts", false},
		{"greeting", "is greeted", true}, {"commission", "commit", false},
		{"read tides", "spreadsheets", false}, {"the and", "the and", false}, {"", "x", false},
		{"帮我写周报", "整理周报", false}, {"周报", "整理周报", true},
	} {
		if got := fits(tt.request, tt.description); got != tt.want {
			t.Errorf("%q and %q: %t", tt.request, tt.description, got)
		}
	}
}

func TestIsName(t *testing.T) {
	for word, want := range map[string]bool{"PDF": true, "scripts/Fill.py": true, "fill.py": true, "fill": false, "scripts": false, "": false} {
		if got := isName(word, "pdf", "scripts/fill.py"); got != want {
			t.Errorf("%q: %t", word, got)
		}
	}
}

func TestLoadedName(t *testing.T) {
	for line, want := range map[string]string{
		"Skill tides (from mine) is loaded. Follow": "tides", "Skill tides (from mine) is loaded already": "tides",
		"Skill  (from mine) is loaded": "", "Skill tides (from mine) failed": "", "Skill tides is loaded": "", "The Skill tides (from mine) is loaded": "",
	} {
		name, ok := loadedName(line)
		if ok != (want != "") || ok && name != want {
			t.Errorf("%q: %q, %t", line, name, ok)
		}
	}
}

func TestTruncateAtCharacter(t *testing.T) {
	for limit, want := range map[int]string{0: "", 1: "a", 2: "a", 3: "aé", 4: "aéz", 9: "aéz"} {
		if got := truncate("aéz", limit); got != want {
			t.Errorf("%d: %q, want %q", limit, got, want)
		}
	}
}

func TestSplitWords(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "one": "one", "one two": "one |two", "one ": "one ", "a\nb": "a\n|b", "abcdefghijkl": "abcdefghijkl", "abcdefghijklm": "abcdefghijkl|m", "翻译文件内容": "翻译文件|内容",
	} {
		words := splitWords(text)
		if got := strings.Join(words, "|"); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// A description does not fit because it has a common word.
func TestCommonWordsAreIgnored(t *testing.T) {
	for w := range commonWords {
		if fits(w, w) {
			t.Errorf("%s is significant", w)
		}
	}
}
