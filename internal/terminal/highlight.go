package terminal

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Styles of code. Other characters of highlighted code have no style.
const (
	keywordStyle = purple
	stringStyle  = green
	numberStyle  = cyan
	commentStyle = faint
)

// syntax describes the syntax of a programming language for highlighting.
type syntax struct {
	keywords   map[string]bool
	ignoreCase bool     // whether keywords match in any case
	comment    []string // starts of comments up to the end of the line
	open       string   // start of a comment of several lines, or ""
	close      string   // its end
	quotes     []string // delimiters of strings on a line, longer ones first
	blocks     []string // delimiters of strings of several lines
	chars      bool     // whether ' delimits single characters
	isShell    bool     // whether a backslash is a character in single quotes, and escapes the next one elsewhere
	isData     bool     // whether // starts a comment only after a space
}

func words(text string) map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsSeq(text) {
		out[w] = true
	}
	return out
}

// syntaxes returns the syntaxes of the highlighted languages by the language names of
// code blocks. Similar languages share a syntax.
var syntaxes = sync.OnceValue(func() map[string]*syntax {
	const constants = " true false null nil None True False undefined this self super"
	goSyntax := &syntax{comment: []string{"//"}, open: "/*", close: "*/", quotes: []string{`"`}, blocks: []string{"`"}, chars: true, keywords: words("break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var" + constants)}
	cSyntax := &syntax{comment: []string{"//"}, open: "/*", close: "*/", quotes: []string{`"`}, chars: true, keywords: words("abstract alignas as async auto await base bool boolean break byte case catch char class const constexpr continue data default delete do double else enum explicit extends extern final finally float for foreach fun func get goto guard if implements import in init inline int interface internal is let long mutable namespace new noexcept object operator out override package private protected public readonly ref return sealed set short signed sizeof static string struct switch template throw throws try typedef typename union unsigned using val var virtual void volatile when where while yield" + constants)}
	rustSyntax := &syntax{comment: []string{"//"}, open: "/*", close: "*/", quotes: []string{`"`}, chars: true, keywords: words("as async await break const continue crate dyn else enum extern fn for if impl in let loop match mod move mut pub ref return static struct trait type unsafe use where while Self" + constants)}
	jsSyntax := &syntax{comment: []string{"//"}, open: "/*", close: "*/", quotes: []string{`"`, `'`}, blocks: []string{"`"}, keywords: words("abstract any as async await boolean break case catch class const continue debugger declare default delete do else enum export extends finally for from function if implements import in instanceof interface keyof let namespace new number of private protected public readonly return satisfies static string switch throw try type typeof var void while with yield" + constants)}
	pySyntax := &syntax{comment: []string{"#"}, quotes: []string{`"`, `'`}, blocks: []string{`"""`, `'''`}, keywords: words("and as assert async await break case class continue def del elif else except finally for from global if import in is lambda match nonlocal not or pass raise return try while with yield" + constants)}
	rubySyntax := &syntax{comment: []string{"#"}, quotes: []string{`"`, `'`}, keywords: words("alias and begin break case class def defined do else elsif end ensure for if in module next not or redo require rescue retry return then undef unless until when while yield" + constants)}
	shSyntax := &syntax{isShell: true, comment: []string{"#"}, blocks: []string{`"`, `'`}, keywords: words("case do done elif else esac exit export fi for function if in local return set then unset until while")}
	dataSyntax := &syntax{isData: true, comment: []string{"#", "//"}, quotes: []string{`"`, `'`}, keywords: words("true false null yes no on off FROM RUN COPY ADD ENV ARG CMD ENTRYPOINT WORKDIR USER EXPOSE")}
	sqlSyntax := &syntax{comment: []string{"--"}, open: "/*", close: "*/", quotes: []string{`"`, `'`}, ignoreCase: true, keywords: words("add all alter and as asc begin between by case cast check column commit constraint create cross default delete desc distinct drop else end exists foreign from full group having if in index inner insert into is join key left like limit not null offset on or order outer primary references returning right rollback select set table then union unique update using values view when where with")}
	luaSyntax := &syntax{comment: []string{"--"}, open: "--[[", close: "]]", quotes: []string{`"`, `'`}, keywords: words("and break do else elseif end for function goto if in local not or repeat return then until while" + constants)}
	cssSyntax := &syntax{open: "/*", close: "*/", quotes: []string{`"`, `'`}}
	xmlSyntax := &syntax{open: "<!--", close: "-->", quotes: []string{`"`}}
	out := map[string]*syntax{}
	for s, names := range map[*syntax]string{goSyntax: "go golang", rustSyntax: "rust rs", jsSyntax: "js jsx mjs javascript ts tsx typescript", pySyntax: "py python python3", rubySyntax: "rb ruby",
		cSyntax: "c h cc cpp c++ cxx hpp cs csharp java kotlin kt swift scala dart php proto protobuf groovy", shSyntax: "sh bash zsh fish shell", dataSyntax: "json jsonc json5 yaml yml toml ini conf dockerfile makefile hcl terraform tf",
		sqlSyntax: "sql postgresql mysql sqlite", luaSyntax: "lua", cssSyntax: "css scss less", xmlSyntax: "html xml svg vue"} {
		for name := range strings.FieldsSeq(names) {
			out[name] = s
		}
	}
	return out
})

// highlight styles the lines of a code block. Code in an unknown language is
// not highlighted. It takes linear time, because models write the code.
func highlight(code []string, language string) []line {
	language = strings.ToLower(strings.TrimLeft(language, "{."))
	if i := strings.IndexFunc(language, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '+' }); i >= 0 {
		language = language[:i]
	}
	h := highlighter{syntax: syntaxes()[language]}
	out := make([]line, len(code))
	for i, text := range code {
		switch {
		case language == "diff" || language == "patch":
			out[i] = line{{text, diffStyle(text)}}
		case h.syntax == nil:
			out[i] = line{{text, cyan}}
		default:
			out[i] = h.line(text)
		}
	}
	return out
}

func diffStyle(text string) style {
	switch {
	case strings.HasPrefix(text, "+++"), strings.HasPrefix(text, "---"):
		return bold
	case strings.HasPrefix(text, "+"):
		return green
	case strings.HasPrefix(text, "-"):
		return red
	case strings.HasPrefix(text, "@@"):
		return cyan
	}
	return normal
}

// highlighter holds the state between the lines of a code block.
type highlighter struct {
	*syntax
	end   string // end of the open string or comment, or ""
	style style  // its style
}

// line styles one line. The spans have the same text as the line.
func (h *highlighter) line(text string) line {
	var out line
	emit := func(n int, st style) {
		out = append(out, span{text[:n], st})
		text = text[n:]
	}
	afterSpace := true
	for text != "" {
		if h.end != "" {
			n := h.closing(text, 0, h.end)
			if n < 0 {
				emit(len(text), h.style)
				break
			}
			emit(n, h.style)
			h.end, afterSpace = "", false
			continue
		}
		n, st := h.token(text, afterSpace)
		r, _ := utf8.DecodeLastRuneInString(text[:n])
		afterSpace = unicode.IsSpace(r)
		emit(n, st)
	}
	return out.mergeSpans()
}

// token returns the length and the style of the token at the start of text.
func (h *highlighter) token(text string, afterSpace bool) (int, style) {
	if h.open != "" && strings.HasPrefix(text, h.open) {
		h.end, h.style = h.close, commentStyle
		return len(h.open), commentStyle
	}
	for _, c := range h.comment {
		if strings.HasPrefix(text, c) && (c != "#" && !(c == "//" && h.isData) || afterSpace) {
			return len(text), commentStyle
		}
	}
	for _, q := range h.blocks {
		if strings.HasPrefix(text, q) {
			h.end, h.style = q, stringStyle
			return len(q), stringStyle
		}
	}
	for _, q := range h.quotes {
		if strings.HasPrefix(text, q) {
			if n := h.closing(text, len(q), q); n > 0 {
				return n, stringStyle
			}
			return len(text), normal // an apostrophe, or a string that does not end on the line
		}
	}
	r, n := utf8.DecodeRuneInString(text)
	switch {
	case r == '\\' && h.isShell: // it escapes the next character
		_, next := utf8.DecodeRuneInString(text[n:])
		return n + next, normal
	case r == '\'' && h.chars:
		if end := charLength(text); end > 0 {
			return end, stringStyle
		}
	case unicode.IsDigit(r):
		return wordLength(text, "._"), numberStyle
	case unicode.IsLetter(r) || r == '_':
		n = wordLength(text, "_")
		word := text[:n]
		if h.ignoreCase {
			word = strings.ToLower(word)
		}
		if h.keywords[word] {
			return n, keywordStyle
		}
	}
	return n, normal
}

// charLength returns the length of the character literal at the start of text. It
// returns 0 if there is none, as for a lifetime in Rust.
func charLength(text string) int {
	_, n := utf8.DecodeRuneInString(text[1:])
	if strings.HasPrefix(text, `'\`) {
		n = 2 + strings.IndexByte(text[min(len(text), 3):min(len(text), 14)], '\'')
	}
	if n > 0 && strings.HasPrefix(text[1+n:], `'`) {
		return n + 2
	}
	return 0
}

// closing returns the offset after the first occurrence of the delimiter end in
// text at or after from, or -1 if there is none. In strings, a backslash
// escapes the next character, but not in the single quotes of a shell.
func (h *highlighter) closing(text string, from int, end string) int {
	escapes := end != h.close && end != "`" && !(h.isShell && end == "'")
	for i := from; i < len(text); i++ {
		if escapes && text[i] == '\\' {
			i++
			continue
		}
		if strings.HasPrefix(text[i:], end) {
			return i + len(end)
		}
	}
	return -1
}

// wordLength returns the length of the prefix of text that consists of letters,
// digits and characters in more.
func wordLength(text, more string) int {
	n := strings.IndexFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune(more, r)
	})
	if n < 0 {
		return len(text)
	}
	return n
}
