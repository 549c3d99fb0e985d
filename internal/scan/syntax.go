package scan

import (
	"bytes"
	"path"
	"strings"
)

// syntax describes the comments and strings of a language.
type syntax struct {
	line       []string // delimiters that start a comment up to the end of the line
	open, shut string   // delimiters of a comment
	quotes     string   // delimiters of strings on one line
	long       []string // delimiters of multi-line strings
	hashWord   bool     // whether "#" starts a comment only at the beginning of a word
	raw        string   // delimiters of strings without escapes
	docstrings bool     // whether a multi-line string that is a statement is a comment
}

var syntaxes = map[language]*syntax{
	shell:      {line: []string{"#"}, long: []string{`"`, `'`}, raw: `'`, hashWord: true},
	inline:     {long: []string{`"`, `'`}, raw: `'`},
	python:     {line: []string{"#"}, quotes: `"'`, long: []string{`"""`, `'''`}, docstrings: true},
	javascript: {line: []string{"//"}, open: "/*", shut: "*/", quotes: `"'`, long: []string{"`"}},
	powershell: {line: []string{"#"}, open: "<#", shut: "#>", long: []string{`"`, `'`}, raw: `'"`, hashWord: true},
	otherCode:  {line: []string{"//", "# "}, open: "/*", shut: "*/", quotes: `"`},
	config:     {},
	plainText:  {},

	frontmatter: {},
}

// lexer tokenizes a block.
type lexer struct {
	*syntax
	src      []byte
	lineEnd  int             // end of the most recently requested line
	unclosed map[string]bool // delimiters that are not closed in the rest of the block
	work     *int
}

// lex returns two copies of src with the same length. In code, comments are
// replaced with spaces. In bare, string contents are replaced too. lex takes
// linear time.
func (t *source) lex(src []byte, l *syntax) (code, bare []byte) {
	code, bare = bytes.Clone(src), bytes.Clone(src)
	x := &lexer{syntax: l, src: src, lineEnd: -1, unclosed: map[string]bool{}, work: &t.work}
	first := true // only spaces so far on the line
	for i := 0; i < len(src); {
		c := src[i]
		if c == '\n' {
			first = true
			i++
			continue
		}
		if c == ' ' || c == '\t' || c == '\r' {
			i++
			continue
		}
		end, comment := x.skipToken(i)
		if end == 0 {
			first = false
			if c == '\\' {
				i++
			}
			i++
			continue
		}
		n := l.quoteLength(src[i:])
		if comment || l.docstrings && first && n == 3 {
			blankOut(code[i:end])
			blankOut(bare[i:end])
		} else if end-i >= 2*n {
			blankOut(bare[i+n : end-n])
			for j := i; j < end; j++ { // a string does not end a statement
				if bare[j] == '\n' {
					bare[j] = ' '
				}
			}
		}
		first = false
		i = end
	}
	return code, bare
}

// quoteLength returns the length of the opening quote at the start of src, or 0
// if there is none.
func (l *syntax) quoteLength(src []byte) int {
	for _, q := range l.long {
		if bytes.HasPrefix(src, []byte(q)) {
			return len(q)
		}
	}
	return 1
}

// skipToken returns the offset after the comment or string that starts at i, or
// 0 if none starts there.
func (x *lexer) skipToken(i int) (end int, comment bool) {
	rest := x.src[i:]
	for _, mark := range x.line {
		if bytes.HasPrefix(rest, []byte(mark)) && (!x.hashWord || i == 0 || strings.IndexByte(" \t\n;|&(", x.src[i-1]) >= 0) &&
			(mark != "//" || i == 0 || x.src[i-1] != ':') { // in a URL without quotes
			return x.endOfLine(i), true
		}
	}
	if x.open != "" && bytes.HasPrefix(rest, []byte(x.open)) && !x.unclosed[x.shut] {
		if n := x.stringEnd(rest[len(x.open):], x.shut, true); n > 0 {
			return i + len(x.open) + n, true
		}
		x.unclosed[x.shut] = true
	}
	for _, q := range x.long {
		if bytes.HasPrefix(rest, []byte(q)) && !x.unclosed[q] {
			if n := x.stringEnd(rest[len(q):], q, strings.Contains(x.raw, q)); n > 0 {
				return i + len(q) + n, false
			}
			x.unclosed[q] = true
		}
	}
	if c := x.src[i]; strings.IndexByte(x.quotes, c) >= 0 {
		if n := x.stringEnd(x.src[i+1:x.endOfLine(i)], string(c), false); n > 0 {
			return i + 1 + n, false
		}
	}
	return 0, false
}

// endOfLine returns the offset of the end of the line that contains i.
func (x *lexer) endOfLine(i int) int {
	if i > x.lineEnd {
		x.lineEnd = i + lineLength(x.src[i:])
		*x.work += x.lineEnd - i
	}
	return x.lineEnd
}

func lineLength(s []byte) int {
	if n := bytes.IndexByte(s, '\n'); n >= 0 {
		return n
	}
	return len(s)
}

// stringEnd returns the offset after a string's closing quote, or 0 if there is
// none.
func (x *lexer) stringEnd(s []byte, quote string, raw bool) int {
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && !raw {
			i++
			continue
		}
		if s[i] == quote[0] && bytes.HasPrefix(s[i:], []byte(quote)) {
			*x.work += i
			return i + len(quote)
		}
	}
	*x.work += len(s)
	return 0
}

func blankOut(s []byte) {
	for i, c := range s {
		if c != '\n' {
			s[i] = ' '
		}
	}
}

var languageOf = map[string]language{
	"sh": shell, "bash": shell, "zsh": shell, "shell": shell, "console": shell, "shellsession": shell, "fish": shell, "ksh": shell,
	"terminal": shell, "dockerfile": shell, "makefile": shell, "mk": shell, "command": shell,
	"py": python, "python": python, "python3": python, "pyw": python, "ipython": python,
	"js": javascript, "mjs": javascript, "cjs": javascript, "ts": javascript, "tsx": javascript, "jsx": javascript, "mts": javascript, "cts": javascript,
	"javascript": javascript, "typescript": javascript, "node": javascript,
	"ps1": powershell, "psm1": powershell, "powershell": powershell, "pwsh": powershell, "bat": powershell, "cmd": powershell, "batch": powershell,
	"go": otherCode, "rb": otherCode, "ruby": otherCode, "pl": otherCode, "perl": otherCode, "php": otherCode, "rs": otherCode, "rust": otherCode,
	"c": otherCode, "h": otherCode, "cpp": otherCode, "cc": otherCode, "hpp": otherCode, "java": otherCode, "cs": otherCode, "csharp": otherCode,
	"swift": otherCode, "kt": otherCode, "kotlin": otherCode, "scala": otherCode, "lua": otherCode, "r": otherCode, "applescript": otherCode,
	"json": config, "jsonc": config, "json5": config, "yaml": config, "yml": config, "toml": config, "ini": config, "cfg": config, "conf": config,
	"xml": config, "plist": config, "env": config, "csv": config, "tsv": config, "sql": config, "html": config, "htm": config, "css": config, "svg": config,
}

// fileLanguage determines a file's language from its name and first line.
func fileLanguage(name string, data []byte) language {
	base := strings.ToLower(path.Base(name))
	if l, ok := languageOf[strings.TrimPrefix(path.Ext(base), ".")]; ok {
		return l
	}
	if l, ok := languageOf[strings.TrimPrefix(base, ".")]; ok { // Makefile, Dockerfile, .env
		return l
	}
	if !bytes.HasPrefix(data, []byte("#!")) {
		return plainText
	}
	interpreter := string(data[:min(lineLength(data), 200)])
	switch {
	case strings.Contains(interpreter, "python"), strings.Contains(interpreter, "uv run"):
		return python
	case strings.Contains(interpreter, "node"), strings.Contains(interpreter, "deno"), strings.Contains(interpreter, "bun"):
		return javascript
	case strings.Contains(interpreter, "pwsh"):
		return powershell
	case strings.Contains(interpreter, "sh"):
		return shell
	}
	return otherCode
}

func isMarkdown(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".md", ".markdown", ".mdx", ".mdc":
		return true
	}
	return false
}
