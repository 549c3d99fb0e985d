package tools

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A problem names the given and the expected value once, with the remaining constraints
// of the schema.
func TestProblemsWithArguments(t *testing.T) {
	schema := json.RawMessage(`{"type": "object", "required": ["title"], "additionalProperties": false, "properties": {
		"title": {"type": "string"},
		"text": {"type": "string", "description": "what to keep"},
		"short": {"type": "string", "maxLength": 1},
		"both": {"type": ["string", "null"], "description": "may be left out"},
		"list": {"type": "array", "items": {"type": "string"}}}}`)
	for _, tt := range []struct{ given, want string }{
		{`{"title": 3}`, `title: 3 has type "integer", want "string"`},
		{`{"title": "", "text": 3}`, `text: 3 has type "integer", want "string" (what to keep)`},
		{`{"title": "", "short": "ab"}`, `short: maxLength: "ab" contains 2 Unicode code points, more than 1 (string)`},
		{`{"title": "", "both": 1}`, `both: 1 has type "integer", want one of "string, null" (may be left out)`},
		{`{"title": "", "list": [1]}`, `list: 1 has type "integer", want "string" (array)`},
		{`{}`, `title is missing (string)`},
		{`{"title": "", "titel": 1}`, `unknown argument titel; known arguments: both, list, short, text, title`},
	} {
		got := newSchema(&mcp.Tool{InputSchema: schema}).check(json.RawMessage(tt.given))
		if diff := cmp.Diff([]string{tt.want}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.given, diff)
		}
	}
}
