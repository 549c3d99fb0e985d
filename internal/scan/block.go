package scan

import (
	"bytes"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
)

// maxUnit is the maximum size, in bytes, of a statement or paragraph that
// patterns are applied to. Longer ones are truncated.
const maxUnit = 8 << 10

// block is part of a file: code in one language, or prose.
type block struct {
	start, end int
	prose      bool
	whole      bool // the block is a whole file
	language   language
	hasWarning func() bool // reports whether the surrounding text warns about the block; may be nil

	isLexed    bool
	code, bare []byte
	units      []span // statements or paragraphs, in order
}

// span is a range of offsets in a block.
type span struct{ start, end int }

func (t *source) splitBlocks() []*block {
	if isMarkdown(t.name) {
		return t.markdownBlocks()
	}
	l := fileLanguage(t.name, t.data)
	return []*block{{start: 0, end: len(t.data), whole: true, prose: l == plainText, language: l}}
}

// markdownBlocks returns the fenced blocks, the commands in backquotes, and the
// prose between them.
func (t *source) markdownBlocks() []*block {
	data := t.data
	var out []*block
	prose, opened := 0, -1
	if n := frontmatterLength(data); n > 0 {
		out = append(out, &block{end: n, language: frontmatter})
	}
	var fence []byte
	info := ""
	text := func(end int) {
		if prose < end {
			out = append(out, &block{start: prose, end: end, prose: true, language: plainText})
			out = append(out, t.commandBlocks(prose, end)...)
			out = append(out, t.indentedBlocks(prose, end)...)
		}
	}
	for at := 0; at < len(data); {
		next := at + lineLength(data[at:]) + 1
		line := bytes.TrimLeft(data[at:min(next, len(data))], " \t>")
		switch mark := findFence(line); {
		case opened < 0 && mark != nil:
			text(at)
			fence, info, opened = mark, strings.ToLower(string(bytes.TrimSpace(line[len(mark):]))), min(next, len(data))
		case opened >= 0 && mark != nil && mark[0] == fence[0] && len(mark) >= len(fence) && len(bytes.TrimSpace(line)) == len(mark):
			out = append(out, newFencedBlock(data, opened, at, info))
			prose, opened = min(next, len(data)), -1
		}
		at = next
	}
	if opened >= 0 {
		return append(out, newFencedBlock(data, opened, len(data), info))
	}
	text(len(data))
	return out
}

// frontmatterLength returns the length of the frontmatter at the start of data,
// or 0 if there is none.
func frontmatterLength(data []byte) int {
	if !bytes.HasPrefix(data, []byte("---\n")) && !bytes.HasPrefix(data, []byte("---\r\n")) {
		return 0
	}
	return max(0, bytes.Index(data[:min(len(data), 64<<10)], []byte("\n---"))+1)
}

// findFence returns the run of backquotes or tildes that opens or closes a fenced
// block, or nil if the line is not a fence.
func findFence(line []byte) []byte {
	for _, c := range "`~" {
		if n := len(line) - len(bytes.TrimLeft(line, string(c))); n >= 3 && !(c == '`' && bytes.IndexByte(line[n:], '`') >= 0) {
			return line[:n]
		}
	}
	return nil
}

func newFencedBlock(data []byte, start, end int, info string) *block {
	b := &block{start: start, end: end}
	word := strings.FieldsFunc(info, func(r rune) bool { return r == ' ' || r == '{' || r == '}' || r == ',' || r == ':' || r == '.' })
	if len(word) > 0 {
		b.language = languageOf[word[0]]
	}
	if b.language == 0 {
		b.language = otherCode // a block without a language name is often a command
		if len(word) > 0 {     // a block with an unknown language name is not
			b.language = config
		}
	}
	if len(word) > 0 && (word[0] == "markdown" || word[0] == "md" || word[0] == "text" || word[0] == "txt") {
		b.prose, b.language = true, plainText
	}
	b.hasWarning = func() bool { return hasWarning(data[:start]) }
	return b
}

// commandBlocks returns the commands between single backquotes in prose.
func (t *source) commandBlocks(start, end int) []*block {
	var out []*block
	data := t.data
	for at := start; at < end; {
		open := bytes.IndexByte(data[at:end], '`')
		if open < 0 {
			break
		}
		at += open + 1
		shut := bytes.IndexAny(data[at:end], "`\n")
		if shut < 0 {
			break
		}
		t.work += open + shut
		if data[at+shut] == '\n' {
			at += shut
			continue
		}
		if shut >= 8 && bytes.IndexByte(data[at:at+shut], ' ') > 0 {
			before, after := data[max(start, at-400):at], data[at+shut+1:min(at+shut+200, end)]
			after = after[:lineLength(after)]
			out = append(out, &block{start: at, end: at + shut, language: inline, hasWarning: func() bool { return hasWarning(before) || warningWords.Match(after) }})
		}
		at += shut + 1
	}
	return out
}

// indentedBlocks returns indented lines of prose, which may be code. It
// includes indented lines in lists, because an agent would run them too.
func (t *source) indentedBlocks(start, end int) []*block {
	var out []*block
	data, last := t.data, (*block)(nil)
	for at := start; at < end; {
		next := min(at+lineLength(data[at:end])+1, end)
		line := data[at:next]
		t.work += len(line)
		switch in := len(line) - len(bytes.TrimLeft(line, " ")); {
		case len(bytes.TrimSpace(line)) == 0:
			last = nil
		case line[0] != '\t' && in < 4:
			last = nil
		case last != nil:
			last.end = next
		default:
			before := data[max(start, at-400):at]
			last = &block{start: at, end: next, language: inline, hasWarning: func() bool { return hasWarning(before) }}
			out = append(out, last)
		}
		at = next
	}
	return out
}

// warningWords matches words that introduce bad examples, or that explain how
// to detect attacks. It does not match parts of host names.
var warningWords = lazyregexp.New(`(?i)(?:^|[\s"'(*_#/|>` + "`" + `])(?:vulnerab\w*|malicious\w*|dangerous|insecure|unsafe|attack(?:er|s|ers|ing)?|exploit\w*|payloads?|arbitrary|injections?|anti-?patterns?|red flags?|suspicious|backdoors?|malware|bypass\w*|trojan\w*|exfiltrat\w*|compromised?|detect\w*|pitfalls?|mistakes?|risky?|` +
	`bad|wrong|avoid|forbidden|prohibited|blocked|refuse[sd]?|reject(?:s|ed)?|never|flag(?:s|ged)?\s+(?:these|this|any|it|them|when|if|every|each)|(?:do|does|must|should) not (?:run|use|execute|call|commit)|don'?t (?:run|use|execute|call|commit))(?:$|[\s,:;!?)"'*_/|<-]|\.(?:\s|$))|❌|✗|🚫|⛔|⚠`)

// hasWarning reports whether the text before a block contains a warning, either
// in its last lines or in the heading above the block.
func hasWarning(before []byte) bool {
	tail := before[max(0, len(before)-4096):]
	lines := bytes.Split(bytes.TrimRight(tail, " \n"), []byte("\n"))
	near := 0
	for i := len(lines) - 1; i >= 0; i-- {
		line := bytes.TrimSpace(lines[i])
		heading := bytes.HasPrefix(line, []byte("#"))
		if len(line) > 0 && (near < 3 || heading) && warningWords.Match(line) {
			return true
		}
		if heading {
			return false
		}
		if len(line) > 0 {
			near++
		}
	}
	return false
}

// lex separates code from comments and strings. Only the first call for a block
// has an effect.
func (b *block) lex(t *source) {
	if b.isLexed {
		return
	}
	b.isLexed = true
	src := t.data[b.start:b.end]
	if b.prose {
		b.code, b.bare, b.units = src, src, splitParagraphs(src)
		return
	}
	b.code, b.bare = t.lex(src, syntaxes[b.language])
	b.units = splitStatements(b.code, b.bare, b.language)
}

// unitAt returns the index of the statement or paragraph that contains a file
// offset.
func (b *block) unitAt(offset int) (int, bool) {
	i, ok := slices.BinarySearchFunc(b.units, offset-b.start, func(s span, at int) int {
		switch {
		case s.end <= at:
			return -1
		case s.start > at:
			return 1
		}
		return 0
	})
	return i, ok
}

// splitStatements splits code at line ends, except inside brackets and strings
// and after a continuation.
func splitStatements(code, bare []byte, l language) []span {
	var out []span
	depth, start := 0, 0
	for at := 0; at < len(bare); {
		end := at + lineLength(bare[at:])
		line := bytes.TrimRight(bare[at:end], " \t\r")
		if l&(python|javascript|otherCode) != 0 {
			for _, c := range line {
				switch c {
				case '(', '[', '{':
					depth++
				case ')', ']', '}':
					depth = max(depth-1, 0)
				}
			}
			if n := len(line); n > 0 && l&(javascript|otherCode) != 0 && line[n-1] == '{' {
				depth = 0 // a function body, not an argument
			}
		}
		next := min(end+1, len(bare))
		if !isContinued(line, l) && depth == 0 || next-start > maxUnit || next == len(bare) {
			for ; next-start > maxUnit; start += maxUnit {
				out = append(out, span{start, start + maxUnit})
			}
			out = append(out, span{start, next})
			start, depth = next, 0
		}
		at = next
	}
	return out
}

func isContinued(line []byte, l language) bool {
	n := len(line)
	if n == 0 || l&(shell|inline|powershell|otherCode) == 0 {
		return n > 0 && line[n-1] == '\\'
	}
	return line[n-1] == '\\' || line[n-1] == '|' || line[n-1] == '`' && l == powershell || n > 1 && line[n-1] == '&' && line[n-2] == '&'
}

// splitParagraphs splits prose at blank lines.
func splitParagraphs(src []byte) []span {
	var out []span
	start := 0
	for at := 0; at < len(src); {
		next := min(at+lineLength(src[at:])+1, len(src))
		if len(bytes.TrimSpace(src[at:next])) == 0 || next-start > maxUnit || next == len(src) {
			for ; next-start > maxUnit; start += maxUnit {
				out = append(out, span{start, start + maxUnit})
			}
			out = append(out, span{start, next})
			start = next
		}
		at = next
	}
	return out
}
