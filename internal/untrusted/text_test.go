package untrusted_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/internal/untrusted/untrustedtest"
)

func TestHostileTextIsCleanedForEachReader(t *testing.T) {
	all := untrustedtest.Hostile()
	if len(all) < 200 {
		t.Fatalf("%d hostile texts, want at least 200", len(all))
	}
	for _, s := range all {
		text := untrusted.New(s)
		js, err := json.Marshal(map[string]any{"text": text})
		if err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("x", "text", text)
		for reader, got := range map[string]string{
			"model": text.ForModel(), "model lines": text.ForModelLines(), "terminal": text.ForTerminal(), "terminal lines": text.ForTerminalLines(),
			"page": text.ForPage(), "log": text.ForLog(), "visible": text.Visible(), "JSON": string(js), "slog": strings.TrimSuffix(log.String(), "\n"),
			"%s": fmt.Sprintf("%s", text), "%v": fmt.Sprintf("%v", text), "%+v": fmt.Sprintf("%+v", text), "%#v": fmt.Sprintf("%#v", text), "%q": fmt.Sprintf("%q", text), "%x": fmt.Sprintf("%x", text),
		} {
			if leak := untrustedtest.Hidden(got); leak != "" {
				t.Errorf("%s: %+q: leaks %s", reader, s, leak)
			}
			if leak := untrustedtest.Forged(got); leak != "" && !slices.Contains([]string{"terminal", "terminal lines", "page", "log", "visible", "slog"}, reader) {
				t.Errorf("%s: %+q: forges %s", reader, s, leak)
			}
		}
		for _, line := range []string{text.ForModel(), text.ForTerminal(), text.ForLog()} {
			if strings.ContainsAny(line, "\n\r\t") {
				t.Errorf("%+q: more than one line: %+q", s, line)
			}
		}
	}
}

func TestHostileTextIsReported(t *testing.T) {
	for _, s := range untrustedtest.Hostile() {
		report := untrusted.Inspect(s)
		if hidden := untrustedtest.Hidden(s); report.Clean() && hidden != "" && !strings.Contains(hidden, `\u200c`) {
			t.Errorf("%+q: not reported: %s", s, hidden)
		}
		if report.Clean() != (report.String() == "") || report.Clean() != (untrusted.New(s).Visible() == s) {
			t.Errorf("%+q: report %+v", s, report)
		}
	}
}

func TestLegitimateTextIsUnchanged(t *testing.T) {
	all := untrustedtest.Legitimate()
	if len(all) < 200 {
		t.Fatalf("%d legitimate texts, want at least 200", len(all))
	}
	for _, s := range all {
		text := untrusted.New(s)
		for reader, got := range map[string]string{
			"model": text.ForModel(), "model lines": text.ForModelLines(), "terminal": text.ForTerminal(), "terminal lines": text.ForTerminalLines(),
			"page": text.ForPage(), "log": text.ForLog(), "visible": text.Visible(),
		} {
			if got != s {
				t.Errorf("%s: %+q became %+q", reader, s, got)
			}
		}
		if r := untrusted.Inspect(s); !r.Clean() {
			t.Errorf("%+q: %v", s, r)
		}
	}
}

func TestTextOnOneLine(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "a b": "a b", " a  b ": "a b", "a\nb\r\n\tc": "a b c", "a\u2028b\u0085c": "a b c", "é ü": "é ü",
		"a\x00b\x1b[2J": "a b [2J", "a\u009b2Jb": "a 2Jb", "a ": "a", "\u00a0": "", "cre\u200bate": "create", "a\xffb": "a\ufffdb",
	} {
		if got := untrusted.New(in).ForTerminal(); got != want {
			t.Errorf("%+q: %+q, want %+q", in, got, want)
		}
	}
}

func TestReport(t *testing.T) {
	for in, want := range map[string]string{
		"plain": "", "a\nb\U000e0069\U000e0067": "2 hidden characters (tags; the first is U+E0069 in line 2)",
		"x\u202e": "1 hidden character (text direction: U+202E in line 1)", "\x1b[2J\u200b": "2 hidden characters (invisible, terminal control; the first is U+001B in line 1)",
		"\xff": "1 hidden character (invalid UTF-8: 0xFF in line 1)",
	} {
		if got := untrusted.Inspect(in).String(); got != want {
			t.Errorf("%+q: %q, want %q", in, got, want)
		}
	}
	if got := untrusted.New("a\u202eb\xff").Visible(); got != "a⟨U+202E⟩b⟨0xFF⟩" {
		t.Errorf("visible: %q", got)
	}
}

func TestVisibleLines(t *testing.T) {
	text := "\ufeffone\ntwo \u202e and \u202e\n" + strings.Repeat("é", 200) + "\u200b" + strings.Repeat("é", 200) + "\nlast\xff"
	lines, others := untrusted.VisibleLines(text, 2)
	want := []untrusted.Line{{2, "two ⟨U+202E⟩ and ⟨U+202E⟩"}, {3, "…" + strings.Repeat("é", 60) + "⟨U+200B⟩" + strings.Repeat("é", 59) + "…"}}
	if !slices.Equal(lines, want) || others != 1 {
		t.Errorf("got %+v and %d others", lines, others)
	}
	for _, s := range untrustedtest.Hostile() {
		lines, _ := untrusted.VisibleLines(s, 10)
		if (len(lines) == 0) != untrusted.InspectFile(s).Clean() {
			t.Errorf("%+q: %+v", s, lines)
		}
		for _, l := range lines {
			if leak := untrustedtest.Hidden(l.Text); leak != "" {
				t.Errorf("%+q: leaks %s", s, leak)
			}
		}
	}
}

// The fast path finds each character in each position of a word.
func TestInspectFindsControlCharactersInEachPosition(t *testing.T) {
	for c := range 256 {
		for at := range 20 {
			s := strings.Repeat("a", at) + string([]byte{byte(c)}) + strings.Repeat("\n", 20-at)
			want := c >= 0x80 || c == 0x7f || c < ' ' && !strings.ContainsRune("\n\r\t\f", rune(c))
			if got := !untrusted.Inspect(s).Clean(); got != want {
				t.Errorf("%+q: %v, want %v", s, got, want)
			}
		}
	}
}

func FuzzText(f *testing.F) {
	for _, s := range append(untrustedtest.Hostile(), untrustedtest.Legitimate()...) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, clean := range []func(untrusted.Text) string{untrusted.Text.ForModel, untrusted.Text.ForModelLines, untrusted.Text.ForTerminal, untrusted.Text.ForTerminalLines, untrusted.Text.ForPage, untrusted.Text.ForLog, untrusted.Text.Visible} {
			got := clean(untrusted.New(s))
			if r := untrusted.Inspect(got); !r.Clean() {
				t.Fatalf("%+q: %+q has %v", s, got, r)
			}
			if again := clean(untrusted.New(got)); again != got {
				t.Fatalf("%+q: %+q became %+q", s, got, again)
			}
		}
	})
}

func BenchmarkInspect(b *testing.B) {
	for name, s := range map[string]string{"ASCII": strings.Repeat("Read the file and write it. ", 400), "Cyrillic": strings.Repeat("Читает файл. ", 800), "Chinese": strings.Repeat("从文件生成图表。", 500)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(s)))
			for b.Loop() {
				untrusted.Inspect(s)
			}
		})
	}
}

func TestCleanJSON(t *testing.T) {
	for in, want := range map[string]string{
		`{"type":"object","description":"a <b> c"}`:       `{"type":"object","description":"a <b> c"}`,
		`{"description":"a\u200bb","maximum":1e3}`:        `{"description":"ab","maximum":1e3}`,
		"{\"a\U000e0069\":[\"\\u001b[2J\",\"</skill>\"]}": `{"a":["[2J","‹/skill\u003e"]}`,
		`["a\bc","line\n \"two\""]`:                       `["ac","line\n \"two\""]`,
		"[\"\u2068a\",\"b\u2069\",\"\u2068c\\nd\u2069\"]": `["a","b","c\nd"]`, // isolates end with the string and the line
		"{ \"a\": [\"\u2068b\u2069\"] }":                  "{ \"a\": [\"\u2068b\u2069\"] }",
		`{`:                                               ``, `{"a\u200b":`: ``,
	} {
		if got := string(untrusted.CleanJSON(json.RawMessage(in))); got != want {
			t.Errorf("%+q: %+q, want %+q", in, got, want)
		}
	}
}

func TestVisibleJSON(t *testing.T) {
	for in, want := range map[string]string{
		`{"note":"a <b> c","number":1e3}`: `{"note":"a <b> c","number":1e3}`,
		`{"a\u202e":["\u001b[2J",null]}`:  `{"a⟨U+202E⟩":["⟨U+001B⟩[2J",null]}`,
		``:                                ``, `{`: ``,
	} {
		if got := string(untrusted.VisibleJSON(json.RawMessage(in))); got != want {
			t.Errorf("%+q: %+q, want %+q", in, got, want)
		}
	}
}

func TestEscapeJSONKeepsValues(t *testing.T) {
	for _, s := range append(untrustedtest.Hostile(), untrustedtest.Legitimate()...) {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(s); err != nil {
			t.Fatal(err)
		}
		js := bytes.TrimSpace(b.Bytes())
		var before, after string
		escaped := untrusted.EscapeJSON(string(js))
		if json.Unmarshal(js, &before) != nil || json.Unmarshal([]byte(escaped), &after) != nil || before != after || untrustedtest.Hidden(escaped)+untrustedtest.Forged(escaped) != "" {
			t.Errorf("%+q: %+q", s, escaped)
		}
	}
}

func TestLogHandlerCleansRecords(t *testing.T) {
	for _, s := range untrustedtest.Hostile() {
		var b bytes.Buffer
		for _, h := range []slog.Handler{slog.NewTextHandler(&b, nil), slog.NewJSONHandler(&b, nil)} {
			l := slog.New(untrusted.LogHandler(h))
			l.With("with", s).WithGroup("g").Info(s, "text", s, "error", errors.New(s), s, 1, "group", slog.GroupValue(slog.String("in", s)), "list", []string{s}, "bytes", []byte(s), "value", struct{ S string }{s})
		}
		for line := range strings.Lines(b.String()) {
			if leak := untrustedtest.Hidden(strings.TrimSuffix(line, "\n")); leak != "" {
				t.Errorf("%+q: leaks %s", s, leak)
			}
		}
	}
}
