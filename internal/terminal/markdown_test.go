package terminal

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func shown(source string, width int) string {
	return strings.TrimSuffix(Render(source, width, true), "\n")
}

func TestMarkdown(t *testing.T) {
	for _, tt := range []struct {
		name, source, want string
		width              int
	}{
		{"a paragraph", "one *two*\n**three** `fo_ur` five", "one two three fo_ur\nfive", 20},
		{"a heading", "## High water\ntext", "High water\n\ntext", 20},
		{"a hard break", "one  \ntwo", "one\ntwo", 20},
		{"a list", "- one\n- two words\n  - three", "• one\n• two\n  words\n  • three", 8},
		{"numbers", "3. one\n4. two", "3. one\n4. two", 20},
		{"a loose list", "- one\n\n- two", "• one\n\n• two", 20},
		{"code is not wrapped", "```go\nif a {\n\treturn true\n}\n```", "if a {\n    return true\n}", 10},
		{"code in a line", "a `b c\nd` e", "a b c d e", 20},
		{"a quote", "> one two three", "│ one two\n│ three", 10},
		{"a link shows where it leads", "[here](https://example.com/a)", "here (https://example.com/a)", 60},
		{"a link that is its text", "<https://example.com/a>", "https://example.com/a", 60},
		{"HTML is text", "a <b>c</b>\n\n<script>x</script>", "a <b>c</b>\n\n<script>x</script>", 60},
		{"entities", "a &lt;b&gt; &#27;[2J", "a <b> [2J", 60},
		{"a backslash", `\*a\*`, "*a*", 60},
		{"wide letters", "高潮在十二点十分", "高潮在十二\n点十分", 10},
		{"punctuation of wide letters", "高潮在十二，「点」", "高潮在十\n二，「点」", 10},
		{"wide and narrow letters", "潮高 tide高潮。", "潮高 tide\n高潮。", 10},
		{"rare wide letters", "𠀀𠀁𠀂𠀃𠀄𠀅", "𠀀𠀁𠀂𠀃𠀄\n𠀅", 10},
		{"emoji", "high 👩‍👩‍👧👍🏽🇩🇪 tide", "high\n👩‍👩‍👧👍🏽🇩🇪\ntide", 10},
		{"a long word", "a abcdefghijklm b", "a\nabcdefghij\nklm b", 10},
		{"a long URL stays whole", "see https://example.com/a/b?c=d, now", "see\nhttps://example.com/a/b?c=d,\nnow", 12},
		{"a URL of a link stays whole", "[here](https://example.com/a)", "here\n(https://example.com/a)", 12},
		{"a table", "| a | long |\n|---|---:|\n| x | 1 |\n| y \\| z | 22 |", "a      long\n───────────\nx         1\ny | z    22", 40},
		{"a table without room is a list", "| harbour | high |\n|---|---|\n| Kiel | 12:10 |\n| Rostock | 11:40 |", "harbour: Kiel\nhigh: 12:10\n\nharbour:\n  Rostock\nhigh: 11:40", 13},
		{"no table", "a | b\nc | d", "a | b c | d", 40},
		{"a rule", "a\n\n---\n\nb", "a\n\n───\n\nb", 40},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := shown(tt.source, tt.width); got != tt.want {
				t.Errorf("\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

// Text of a model cannot control the terminal, and everything except code fits its
// width.
func FuzzMarkdown(f *testing.F) {
	f.Add("# a\n\n- b\n  1. c\n\n> d `e` [f](g)\n\n|a|b|\n|-|-|\n|c|d|\n", 20)
	f.Add("```\n\x1b[2J\n```\n&#x1b;[31m \u202e", 12)
	f.Add("| \x00 |\n|-|\n", 40)
	f.Fuzz(func(t *testing.T, source string, width int) {
		if len(source) > 4096 {
			return
		}
		width = 12 + (width%100+100)%100
		out := Render(source, width, true)
		if strings.ContainsFunc(out, IsControl) {
			t.Errorf("%q becomes %q", source, out)
		}
	})
}

// The blocks of a streamed response are complete, in order, and rendered like the whole
// response, except for lists and indented code, which end at a blank line.
func TestStreamIsWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		blocks := rapid.SliceOfN(rapid.SampledFrom([]string{"one two", "# head", "- a\n- b", "```\nx\n\ny\n```", "> q", "|a|b|\n|-|-|\n|c|d|", "    code"}), 1, 6).Draw(t, "blocks")
		whole := strings.Join(blocks, "\n\n")
		var s stream
		var got, at []string
		for rest := whole; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "bytes")
			if part := s.add(rest[:n]); part != "" {
				got = append(got, shown(part, 60))
				at = append(at, part)
			}
			rest = rest[n:]
		}
		last := s.takeRest()
		got, at = append(got, shown(last, 60)), append(at, last)
		if strings.Join(at, "") != whole {
			t.Fatalf("of %q there is %q", whole, at)
		}
		if want := shown(whole, 60); strings.Join(got, "\n\n") != want && !strings.Contains(whole, "- a") && !strings.Contains(whole, "    code") {
			t.Fatalf("in pieces\n%s\nat once\n%s", strings.Join(got, "\n\n"), want)
		}
	})
}
