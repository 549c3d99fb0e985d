package untrusted

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// EscapeJSON returns a JSON text with each disallowed character escaped as \u….
// It escapes the first character of a delimiter too, so that a model that reads
// the text sees none; see [Text.ForModel]. The values do not change. Carriage
// returns and form feeds are escaped, but line breaks and tabs are not.
func EscapeJSON(js string) string {
	escape := func(i int, r rune) bool {
		switch r {
		case '\r', '\f':
			return true
		case '<': // only in strings, as [ before a letter
			return isDelimiter(js[i+1:])
		case '[':
			return isInstruction(js[i+1:])
		}
		return Disallowed(r)
	}
	var b strings.Builder
	last := 0
	for i, r := range js {
		if !escape(i, r) {
			continue
		}
		b.WriteString(js[last:i])
		if high, low := utf16.EncodeRune(r); r < 0x10000 {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		}
		_, size := utf8.DecodeRuneInString(js[i:])
		last = i + size
	}
	if last == 0 {
		return js
	}
	return b.String() + js[last:]
}

// CleanJSON returns a JSON document, such as a schema, in which each string,
// even a key, is replaced with the result of [Text.ForModelLines]. If no string
// changes, it returns js. It returns nil if js is not valid JSON.
func CleanJSON(js json.RawMessage) json.RawMessage { return rewriteJSON(js, Text.ForModelLines) }

// VisibleJSON is like [CleanJSON], but replaces each string with the result of
// [Text.Visible].
func VisibleJSON(js json.RawMessage) json.RawMessage { return rewriteJSON(js, Text.Visible) }

// rewriteJSON returns a JSON document in which each string is replaced with the
// result of rewrite.
func rewriteJSON(js json.RawMessage, rewrite func(Text) string) json.RawMessage {
	d := json.NewDecoder(bytes.NewReader(js))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil
	}
	clean, changed := rewriteValue(v, rewrite)
	if !changed {
		return js
	}
	out, err := json.Marshal(clean)
	if err != nil {
		return nil
	}
	return out
}

// rewriteValue returns a decoded JSON value with rewritten strings, and whether
// any string changed. It may change v.
func rewriteValue(v any, rewrite func(Text) string) (clean any, changed bool) {
	switch v := v.(type) {
	case string:
		s := rewrite(New(v))
		return s, s != v
	case []any:
		for i := range v {
			var other bool
			v[i], other = rewriteValue(v[i], rewrite)
			changed = changed || other
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			name := rewrite(New(key))
			var other bool
			out[name], other = rewriteValue(value, rewrite)
			changed = changed || other || name != key
		}
		return out, changed
	}
	return v, changed
}
