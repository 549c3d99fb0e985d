package skill

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/skillfile"
)

// headSlack is the maximum number of bytes that [ParseHead] accepts before the
// YAML, for a byte order mark and blank lines. The same limit applies to the
// line of the closing fence.
const headSlack = 1 << 10

// layout holds the positions of the parts of a SKILL.md.
type layout struct {
	front, body int  // offsets of the first byte of the YAML and of the body
	end         int  // offset after the last byte of the YAML
	line        int  // 1-based line of the first byte of the YAML
	open        bool // whether src is too short to find the end
}

// findLayout finds the frontmatter. It starts after the first line, which must
// be a fence, and ends before the next fence. The body is everything after that
// fence line, unchanged: a later --- is a Markdown rule. A byte order mark and
// blank lines before the first fence are skipped and reported. If findLayout
// adds an error to ds, there is no frontmatter to read. whole means that src is
// the whole file, so that a line may end without a line feed.
func findLayout(src []byte, whole bool, ds *Diagnostics) (lay layout) {
	rest := src
	lay.line = 1
	if enc := foreignEncoding(src); enc != "" {
		ds.add(Diagnostic{Error, "encoding-utf-16", 1, 1, msgNoFrontmatter + ": the file is " + enc + ", not UTF-8",
			"save the file as UTF-8 without a byte order mark", 4})
		return lay
	}
	if after, ok := bytes.CutPrefix(rest, []byte("\xef\xbb\xbf")); ok {
		ds.add(Diagnostic{Warning, "byte-order-mark", 1, 1, msgNoFrontmatter + ": it starts with a byte order mark",
			"save the file as UTF-8 without a byte order mark", 4})
		rest = after
	}
	blank := 0
	for {
		line, after, ok := bytes.Cut(rest, []byte("\n"))
		if !ok || len(bytes.TrimSpace(line)) > 0 {
			break
		}
		rest, blank = after, blank+1
	}
	if blank > 0 {
		ds.add(Diagnostic{Warning, "leading-blank-lines", 1, 1, msgNoFrontmatter + ": it starts with blank lines",
			"delete the blank lines before the first ---", 4})
	}
	lay.line += blank
	first, after, ended := bytes.Cut(rest, []byte("\n"))
	lay.open = !ended && !whole
	if !isFence(first) {
		ds.add(noFrontmatter(first, lay.line))
		return lay
	}
	lay.front = len(src) - len(after)
	lay.line++
	at := lay.front
	for at-lay.front <= skillfile.MaxFrontmatterBytes {
		line, next := src[at:], len(src)
		i := bytes.IndexByte(line, '\n')
		if i >= 0 {
			line, next = line[:i], at+i+1
		}
		if isFence(line) {
			lay.end, lay.body, lay.open = at, next, i < 0 && !whole
			return lay
		}
		if i < 0 {
			break
		}
		at = next
	}
	size := len(src) - lay.front
	lay.open = !whole && at-lay.front <= skillfile.MaxFrontmatterBytes && size <= skillfile.MaxFrontmatterBytes+headSlack
	if size > skillfile.MaxFrontmatterBytes && !lay.open {
		ds.add(tooLong(lay.line))
		return lay
	}
	ds.add(Diagnostic{Error, "frontmatter-unclosed", lay.line - 1, 1, msgUnclosed, "add a line --- after the last field", 5})
	return lay
}

// Messages of the reference validator for rules 4 and 5.
const (
	msgNoFrontmatter = "SKILL.md must start with YAML frontmatter (---)"
	msgUnclosed      = "SKILL.md frontmatter not properly closed with ---"
)

func tooLong(line int) Diagnostic {
	return Diagnostic{Error, "frontmatter-too-long", line, 1,
		msgInvalidYAML + fmt.Sprintf("more than %d bytes", skillfile.MaxFrontmatterBytes), "move long text below the second ---", 6}
}

// isFence reports whether a line, without its line feed, is a fence: three
// hyphens, followed by nothing but white space.
func isFence(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte("---"))
	return ok && len(bytes.Trim(rest, " \t\r")) == 0
}

// noFrontmatter returns the diagnostic for a file without frontmatter. first is
// its first nonblank line.
func noFrontmatter(first []byte, line int) Diagnostic {
	d := Diagnostic{Severity: Error, Code: "frontmatter-missing", Line: line, Column: 1, Message: msgNoFrontmatter,
		Fix: "begin the file with ---, a line name: …, a line description: … and a line ---", Rule: 4}
	switch text := bytes.TrimSpace(first); {
	case len(text) == 0:
		d.Code, d.Message = "file-empty", msgNoFrontmatter+": the file is empty"
	case bytes.HasPrefix(text, []byte("```")):
		d.Code, d.Message = "frontmatter-code-block", msgNoFrontmatter+": the fields are inside a code block"
		d.Fix = "remove the ``` lines around the frontmatter"
	case bytes.HasPrefix(text, []byte("name:")), bytes.HasPrefix(text, []byte("description:")):
		d.Code, d.Message = "frontmatter-unfenced", msgNoFrontmatter+": the fields have no --- line before them"
		d.Fix = "add a line --- above the first field and one below the last"
	case bytes.HasPrefix(text, []byte("---")):
		d.Code, d.Message = "frontmatter-fence", msgNoFrontmatter+": the first line has more on it than ---"
		d.Fix = "put --- on a line of its own"
	case bytes.HasPrefix(text, []byte("#")):
		d.Message = msgNoFrontmatter + ": it starts with a heading"
	}
	return d
}

// foreignEncoding returns the name of the encoding if src is not UTF-8 text,
// and "" otherwise.
func foreignEncoding(src []byte) string {
	if bytes.HasPrefix(src, []byte{0xff, 0xfe}) || bytes.HasPrefix(src, []byte{0xfe, 0xff}) ||
		bytes.HasPrefix(src, []byte{'-', 0, '-', 0}) || bytes.HasPrefix(src, []byte{0, '-', 0, '-'}) {
		return "utf-16"
	}
	return ""
}

// checkBlock reports frontmatter that must not be passed to a YAML parser. It
// stops at the first fault.
func checkBlock(block []byte, line int, ds *Diagnostics) {
	if len(block) > skillfile.MaxFrontmatterBytes {
		ds.add(tooLong(line))
		return
	}
	for i := 0; i < len(block); {
		if c := block[i]; ' ' <= c && c <= '~' || c == '\n' || c == '\t' || c == '\r' {
			i++
			continue
		}
		r, n := utf8.DecodeRune(block[i:])
		d := Diagnostic{Severity: Error, Rule: 6}
		switch {
		case r == 0:
			d.Code, d.Message, d.Fix = "nul-byte", "a NUL byte", "delete the NUL byte"
		case r == utf8.RuneError && n == 1:
			d.Code, d.Message, d.Fix = "encoding-not-utf-8", "a byte that is not UTF-8", "save the file as UTF-8"
		case r < 0xa0 && r != 0x85 || r == 0xfffe || r == 0xffff:
			d.Code, d.Message, d.Fix = "control-character", fmt.Sprintf("the control character U+%04X", r), "delete the character"
		default:
			i += n
			continue
		}
		d.Line, d.Column = position(block, i)
		d.Line += line - 1
		d.Message = msgInvalidYAML + d.Message
		ds.add(d)
		return
	}
}

// position converts an offset to a 1-based line and column; columns count
// characters.
func position(src []byte, offset int) (line, column int) {
	head := src[:offset]
	line = 1 + bytes.Count(head, []byte("\n"))
	return line, 1 + utf8.RuneCount(head[bytes.LastIndexByte(head, '\n')+1:])
}
