package untrusted

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf16"
)

// EscapeJSON returns a JSON text with each disallowed character escaped as \u….
// The values do not change. Carriage returns and form feeds are escaped too,
// line breaks and tabs are not.
func EscapeJSON(js string) string {
	hidden := func(r rune) bool { return r == '\r' || r == '\f' || Disallowed(r) }
	if !strings.ContainsFunc(js, hidden) {
		return js
	}
	var b strings.Builder
	for _, r := range js {
		switch high, low := utf16.EncodeRune(r); {
		case !hidden(r):
			b.WriteRune(r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		}
	}
	return b.String()
}

// CleanJSON returns a JSON document, such as a schema, with each string as
// [Text.ForModelLines] returns it, including keys. A document without escapes
// and disallowed characters is returned as it is, and one that is not valid JSON
// as nil.
func CleanJSON(js json.RawMessage) json.RawMessage {
	if !bytes.Contains(js, []byte(`\u`)) && New(string(js)).ForModelLines() == string(js) {
		return js
	}
	d := json.NewDecoder(bytes.NewReader(js))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil
	}
	out, err := json.Marshal(cleanValue(v))
	if err != nil {
		return nil
	}
	return out
}

func cleanValue(v any) any {
	switch v := v.(type) {
	case string:
		return New(v).ForModelLines()
	case []any:
		for i := range v {
			v[i] = cleanValue(v[i])
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			out[New(key).ForModelLines()] = cleanValue(value)
		}
		return out
	}
	return v
}
