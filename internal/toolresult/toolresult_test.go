package toolresult_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/toolresult"
)

// A result has the same JSON value as the SDK's encoding, including the result type,
// which only the SDK can read and set.
func TestResultMatchesTheSDK(t *testing.T) {
	var modern mcp.CallToolResult
	if err := json.Unmarshal([]byte(`{"content":[{"type":"text","text":"a"}],"resultType":"complete"}`), &modern); err != nil {
		t.Fatal(err)
	}
	size := int64(3)
	for name, r := range map[string]*mcp.CallToolResult{
		"empty":   {},
		"modern":  &modern,
		"no text": {Content: []mcp.Content{}, IsError: true},
		"all": {Meta: mcp.Meta{"content": "<a>"}, IsError: true, StructuredContent: map[string]any{"x": "<b>&\u2028"}, Content: []mcp.Content{
			&mcp.TextContent{Text: "<tag> & \"quotes\"\n\x00\u2028 \xff"},
			&mcp.TextContent{Text: "b", Meta: mcp.Meta{"k": 1}, Annotations: &mcp.Annotations{Priority: 1}},
			&mcp.ImageContent{Data: []byte{1}, MIMEType: "image/png"},
			&mcp.ResourceLink{URI: "skill://a/b", Name: "b", Size: &size},
		}},
		"raw": {StructuredContent: json.RawMessage(` {"a": [1, 2]} `)},
	} {
		want, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(toolresult.New(r))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if r.Content == nil { // the SDK's server sends an empty array
			want = []byte(strings.Replace(string(want), `"content":null`, `"content":[]`, 1))
		}
		if !equalJSON(got, want) {
			t.Errorf("%s: encoded as %s\nby the SDK %s", name, got, want)
		}
	}
}

// The SDK sets metadata of a result after it is complete.
func TestMetadataIsSetLater(t *testing.T) {
	r := toolresult.New(&mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "a"}}})
	var res mcp.Result = r
	res.SetMeta(map[string]any{"k": 1})
	got, err := json.Marshal(res)
	if want := `{"_meta":{"k":1},"content":[{"type":"text","text":"a"}]}`; err != nil || string(got) != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
	if _, scanned := res.(json.Marshaler); scanned {
		t.Error("package json calls a method for the result and scans its output")
	}
}

func equalJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}
