package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"net/url"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
)

// Forms returns the forms in which text may contain a value: the value itself, and its
// encodings in base64 (also within a longer encoded text), in hexadecimal, in a URL, in
// a JSON string, in a JSON string within a JSON string, and in HTML. Forms shorter than
// [MinLength] are omitted, so that it returns nothing for a shorter value.
func Forms(value string) []string {
	if len(value) < MinLength {
		return nil
	}
	out := []string{value}
	add := func(forms ...string) {
		for _, f := range forms {
			if len(f) >= MinLength && !slices.Contains(out, f) {
				out = append(out, f)
			}
		}
	}
	for offset := range 3 {
		inner := base64Inner(value, offset)
		add(inner, strings.NewReplacer("+", "-", "/", "_").Replace(inner))
	}
	hexed := hex.EncodeToString([]byte(value))
	add(hexed, strings.ToUpper(hexed))
	for _, escaped := range []string{url.QueryEscape(value), url.PathEscape(value), componentEscape(value)} {
		add(escaped, lowerEscapes(escaped))
	}
	for _, escaped := range []string{jsonEscape(value, false, false), jsonEscape(value, true, false), jsonEscape(value, false, true)} {
		add(escaped, jsonEscape(escaped, false, false))
	}
	add(html.EscapeString(value))
	return out
}

// base64Inner returns the characters of a base64 text that only depend on value, if the
// text encodes value after a number of other bytes that is offset modulo 3.
func base64Inner(value string, offset int) string {
	encoded := base64.RawStdEncoding.EncodeToString(append(make([]byte, offset), value...))
	bits := (offset + len(value)) * 8
	return encoded[(offset*8+5)/6 : bits/6]
}

// componentEscape escapes value like the function encodeURIComponent of browsers.
func componentEscape(value string) string {
	escaped := strings.ReplaceAll(url.QueryEscape(value), "+", "%20")
	return strings.NewReplacer("%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A", "*").Replace(escaped)
}

// lowerEscapes returns a URL's text with the digits of its escapes in lower case.
func lowerEscapes(escaped string) string {
	b := []byte(escaped)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:], strings.ToLower(escaped[i+1:i+3]))
		}
	}
	return string(b)
}

// jsonEscape returns the content of a JSON string: with html, characters of HTML are
// escaped too; with ascii, all characters beyond ASCII.
func jsonEscape(value string, html, ascii bool) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(html)
	if e.Encode(value) != nil {
		return value
	}
	text := strings.TrimSuffix(strings.TrimSpace(b.String())[1:], `"`)
	if !ascii {
		return text
	}
	b.Reset()
	for _, r := range text {
		if r < 0x80 {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			b.WriteString(`\u` + hex.EncodeToString([]byte{byte(unit >> 8), byte(unit)}))
		}
	}
	return b.String()
}

// wrapped matches base64 text that is split into lines, even within a JSON string.
var wrapped = lazyregexp.New(`[A-Za-z0-9+/_-]{16,}(?:(?:\r?\n|(?:\\r)?\\n)[ \t]*[A-Za-z0-9+/_=-]+)+`)

// minWrapped is the minimum length of the first line that [wrapped] matches.
const minWrapped = 16

// hasWrapped reports whether a line that ends with newline may be base64 text.
func hasWrapped(text, newline string) bool {
	for line := range strings.SplitSeq(text, newline) {
		end := strings.TrimSuffix(strings.TrimSuffix(line, "\r"), `\r`)
		if len(line) < len(text) && len(end) >= minWrapped && !strings.ContainsFunc(end[len(end)-minWrapped:], isNotBase64) {
			return true
		}
	}
	return false
}

func isNotBase64(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("+/_-", r)
}

var lineBreaks = lazyregexp.New(`(?:\r?\n|(?:\\r)?\\n)[ \t]*`)

// JoinLines joins the lines of text that may be base64 split into lines, so that the
// [Forms] of a value can be found in it. It joins only text for whose joined form
// join returns true.
func JoinLines(text string, join func(joined string) bool) string {
	if !hasWrapped(text, "\n") && !hasWrapped(text, `\n`) {
		return text // the expression is slow
	}
	return wrapped.ReplaceAllStringFunc(text, func(lines string) string {
		if joined := lineBreaks.ReplaceAllString(lines, ""); join(joined) {
			return joined
		}
		return lines
	})
}
