package tools

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestBounded(t *testing.T) {
	chain := `{"$defs": {"a0": {"type": "string"}`
	for i := range 40 {
		chain += fmt.Sprintf(`, "a%d": {"allOf": [{"$ref": "#/$defs/a%d"}, {"$ref": "#/$defs/a%d"}]}`, i+1, i, i)
	}
	chain += `}, "properties": {"x": {"$ref": "#/$defs/a40"}}}`
	for _, tt := range []struct {
		schema string
		want   bool
	}{
		{`{"type": "object", "properties": {"a": {"type": "string"}}}`, true},
		{`{"$defs": {"p": {"type": "object"}}, "properties": {"a": {"$ref": "#/$defs/p"}, "b": {"$ref": "#/$defs/p"}}}`, true},
		{`{"properties": {"id": {"type": "string"}, "$id": {"type": "string"}}}`, true},
		{`{"type": "object", "allOf": [{"$ref": "#"}]}`, false},
		{`{"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"anyOf": [{"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"}`, false},
		{`{"$dynamicRef": "#x"}`, false},
		{`{"$ref": "https://example.com/schema"}`, false},
		{`{"$ref": "#/$defs/gone"}`, false},
		{chain, false},
		{strings.Repeat(`{"not":`, 500) + `{}` + strings.Repeat(`}`, 500), false},
		{`{"description": "` + strings.Repeat("x", maxSchema) + `"}`, false},
	} {
		if got := isBounded([]byte(tt.schema)); got != tt.want {
			t.Errorf("%.100s: %t, want %t", tt.schema, got, tt.want)
		}
	}
}

// No schema of a server ends the program, or keeps it busy.
func FuzzSchema(f *testing.F) {
	for _, s := range []string{`{"type":"object","allOf":[{"$ref":"#"}]}`, `{"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/a"}]}},"properties":{"x":{"$ref":"#/$defs/a"}}}`,
		`{"type":"object","properties":{"x":{"type":"integer","minimum":3}},"required":["x"]}`, `true`, `{"patternProperties":{"^x":{"enum":[1]}},"additionalProperties":false}`} {
		f.Add(s, `{"x":1,"y":[1,2,{"x":{}}]}`)
	}
	f.Fuzz(func(t *testing.T, text, args string) {
		var input any
		if json.Unmarshal([]byte(text), &input) != nil {
			return
		}
		s := newSchema(&mcp.Tool{Name: "t", InputSchema: input})
		problems := s.check(json.RawMessage(args))
		if s.whole == nil && json.Valid([]byte(args)) && strings.HasPrefix(strings.TrimSpace(args), "{") && len(problems) > 0 {
			t.Errorf("a schema that is left to the server finds %q", problems)
		}
	})
}
