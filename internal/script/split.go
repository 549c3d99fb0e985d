package script

import (
	"errors"
	"strings"
)

// What [Split] refuses.
var (
	ErrQuote     = errors.New("arguments: a quotation mark is not closed; give the arguments as a list")
	ErrBackslash = errors.New("arguments: nothing follows the last backslash; give the arguments as a list")
)

// Split splits one string of arguments into words as a POSIX shell would, with
// its quotes and backslashes and nothing else: there are no variables, globs,
// substitutions, comments, pipes or redirections, and the characters that
// stand for them in a shell are kept. The error is [ErrQuote] or
// [ErrBackslash].
//
// go-shellwords is not used: it cuts the line at the first of ;&|<>, refuses
// parentheses, and turns \n and \t into control characters.
func Split(s string) ([]string, error) {
	var words []string
	var word strings.Builder
	in := false // a word has begun, be it empty
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case ' ', '\t', '\n', '\r':
			if in {
				words = append(words, word.String())
				word.Reset()
				in = false
			}
		case '\'':
			in = true
			end := strings.IndexByte(s[i+1:], '\'')
			if end < 0 {
				return nil, ErrQuote
			}
			word.WriteString(s[i+1 : i+1+end])
			i += 1 + end
		case '"':
			in = true
			n, ok := unquote(&word, s[i+1:])
			if !ok {
				return nil, ErrQuote
			}
			i += n
		case '\\':
			if i++; i == len(s) {
				return nil, ErrBackslash
			}
			if s[i] == '\n' { // a line goes on: not even a word begins
				continue
			}
			in = true
			word.WriteByte(s[i])
		default:
			in = true
			word.WriteByte(c)
		}
	}
	if in {
		words = append(words, word.String())
	}
	return words, nil
}

// unquote writes what is between double quotes to word. s begins after the
// opening one; the number is of bytes up to and with the closing one.
func unquote(word *strings.Builder, s string) (int, bool) {
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '"':
			return i + 1, true
		case c == '\\' && i+1 < len(s) && strings.IndexByte("$`\"\\\n", s[i+1]) >= 0:
			if i++; s[i] != '\n' {
				word.WriteByte(s[i])
			}
		default:
			word.WriteByte(c)
		}
	}
	return 0, false
}
