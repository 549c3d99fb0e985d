package skill

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// Bounds on a SKILL.md. Real ones have a body of about 10 KB and frontmatter
// of about 500 bytes; the largest seen are 73,000 tokens and 4 KB.
const (
	// MaxFileBytes is the most of a SKILL.md that is read.
	MaxFileBytes = 10 << 20
	// MaxFrontmatterBytes bounds the YAML between the fences.
	MaxFrontmatterBytes = 64 << 10
)

// layout is where the parts of a SKILL.md lie.
type layout struct {
	front, body int // offsets: first byte of the YAML, of the body
	end         int // offset after the last byte of the YAML
	line        int // 1-based line of the first byte of the YAML
}

// cut finds the frontmatter: it begins after the first line, which must be a
// fence, and ends before the next line that is one. The body is everything
// after that line, untouched: a later --- is a rule in the Markdown. A byte
// order mark and blank lines before the first fence are passed over and
// reported. Where ds holds an error there is no frontmatter to read.
func cut(src []byte, ds *Diagnostics) (lay layout) {
	rest := src
	lay.line = 1
	if enc := foreignEncoding(src); enc != "" {
		ds.add(Diagnostic{Error, "encoding-" + enc, 1, 1, "Invalid YAML in frontmatter: the file is " + enc + ", not UTF-8",
			"save the file as UTF-8 without a byte order mark", 6})
		return lay
	}
	if after, ok := bytes.CutPrefix(rest, []byte("\xef\xbb\xbf")); ok {
		ds.add(Diagnostic{Warning, "byte-order-mark", 1, 1, "SKILL.md must start with YAML frontmatter (---): it starts with a byte order mark",
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
		ds.add(Diagnostic{Warning, "leading-blank-lines", 1, 1, "SKILL.md must start with YAML frontmatter (---): it starts with blank lines",
			"delete the blank lines before the first ---", 4})
	}
	lay.line += blank
	first, after, _ := bytes.Cut(rest, []byte("\n"))
	if !isFence(first) {
		ds.add(noFrontmatter(rest, lay.line))
		return lay
	}
	lay.front = len(src) - len(after)
	lay.line++
	for at := lay.front; at < len(src); {
		line, next := src[at:], len(src)
		if i := bytes.IndexByte(line, '\n'); i >= 0 {
			line, next = line[:i], at+i+1
		}
		if isFence(line) {
			lay.end, lay.body = at, next
			return lay
		}
		at = next
	}
	ds.add(Diagnostic{Error, "frontmatter-unclosed", lay.line - 1, 1, "SKILL.md frontmatter not properly closed with ---",
		"add a line --- after the last field", 5})
	return lay
}

// Body returns what follows the frontmatter in the beginning of a SKILL.md,
// nothing where the frontmatter does not end in it.
func Body(head []byte) []byte {
	var ds Diagnostics
	if lay := cut(head, &ds); ds.Loads() {
		return head[lay.body:]
	}
	return nil
}

// isFence reports whether a line, without its line feed, is a fence: three
// hyphens, and nothing but blanks after them.
func isFence(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte("---"))
	return ok && len(bytes.Trim(rest, " \t\r")) == 0
}

// noFrontmatter says which of the usual forms of "no frontmatter" this is.
func noFrontmatter(rest []byte, line int) Diagnostic {
	const msg = "SKILL.md must start with YAML frontmatter (---)"
	d := Diagnostic{Severity: Error, Code: "frontmatter-missing", Line: line, Column: 1, Message: msg,
		Fix: "begin the file with ---, a line name: …, a line description: … and a line ---", Rule: 4}
	first, after, _ := bytes.Cut(rest, []byte("\n"))
	first = bytes.TrimSpace(first)
	switch {
	case len(first) == 0:
		d.Code, d.Message = "file-empty", msg+": the file is empty"
	case bytes.HasPrefix(first, []byte("```")):
		d.Code, d.Message = "frontmatter-code-block", msg+": the fields are inside a code block"
		d.Fix = "remove the ``` lines around the frontmatter"
	case bytes.HasPrefix(first, []byte("name:")), bytes.HasPrefix(first, []byte("description:")):
		d.Code, d.Message = "frontmatter-unfenced", msg+": the fields have no --- line before them"
		d.Fix = "add a line --- above the first field and one below the last"
	case bytes.HasPrefix(first, []byte("---")) && !bytes.HasPrefix(after, []byte("---")):
		d.Code, d.Message = "frontmatter-fence", msg+": the first line has more on it than ---"
		d.Fix = "put --- on a line of its own"
		d.Rule = 0 // the reference splits there; its own rules are tried apart
	case bytes.HasPrefix(first, []byte("#")):
		d.Message = msg + ": it starts with a heading"
	}
	return d
}

// foreignEncoding names the encoding of a file that is not UTF-8 text.
func foreignEncoding(src []byte) string {
	head := src[:min(len(src), 4)]
	switch {
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}), bytes.HasPrefix(head, []byte{0xfe, 0xff}):
		return "utf-16"
	case len(head) == 4 && head[0] == '-' && head[1] == 0 && head[2] == '-', len(head) == 4 && head[0] == 0 && head[1] == '-' && head[2] == 0:
		return "utf-16"
	}
	return ""
}

// checkBlock refuses frontmatter that no YAML reader should see.
func checkBlock(block []byte, line int, ds *Diagnostics) {
	if len(block) > MaxFrontmatterBytes {
		ds.add(Diagnostic{Error, "frontmatter-too-long", line, 1,
			fmt.Sprintf("the frontmatter has %d bytes, more than %d", len(block), MaxFrontmatterBytes),
			"move long text below the second ---", 0})
		return
	}
	for i := 0; i < len(block); {
		if block[i] == 0 {
			l, c := position(block, i)
			ds.add(Diagnostic{Error, "nul-byte", line + l - 1, c, "Invalid YAML in frontmatter: a NUL byte",
				"delete the NUL byte", 6})
			return
		}
		r, n := utf8.DecodeRune(block[i:])
		if r == utf8.RuneError && n == 1 {
			l, c := position(block, i)
			ds.add(Diagnostic{Error, "encoding-not-utf-8", line + l - 1, c, "Invalid YAML in frontmatter: a byte that is not UTF-8",
				"save the file as UTF-8", 6})
			return
		}
		i += n
	}
}

// position turns an offset into a 1-based line and column in characters.
func position(src []byte, offset int) (line, column int) {
	head := src[:offset]
	line = 1 + bytes.Count(head, []byte("\n"))
	return line, 1 + utf8.RuneCount(head[bytes.LastIndexByte(head, '\n')+1:])
}

func (ds *Diagnostics) add(d Diagnostic) { *ds = append(*ds, d) }
