package script

import (
	"errors"
	"strings"
)

// Errors of [Split].
var (
	ErrQuote     = errors.New("arguments: missing closing quote; pass the arguments as a list")
	ErrBackslash = errors.New("arguments: trailing backslash; pass the arguments as a list")
)

// Split splits a string of arguments into words as a POSIX shell does. It
// handles only quotes and backslashes. It expands no variables, globs or
// substitutions, and treats comment, pipe and redirection characters as
// ordinary text. The error is [ErrQuote] or [ErrBackslash].
//
// It does not use go-shellwords, which truncates the line at the first of
// ;&|<>, rejects parentheses, and turns \n and \t into control characters.
func Split(s string) ([]string, error) {
	var words []string
	var word strings.Builder
	in := false // inside a word, which may be empty
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
			n, ok := appendQuoted(&word, s[i+1:])
			if !ok {
				return nil, ErrQuote
			}
			i += n
		case '\\':
			if i++; i == len(s) {
				return nil, ErrBackslash
			}
			if s[i] == '\n' { // a continued line does not start a word
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

// appendQuoted appends the text between double quotes to word. s starts after
// the opening quote. It returns the number of bytes up to and including the
// closing quote, and whether there is one.
func appendQuoted(word *strings.Builder, s string) (int, bool) {
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
