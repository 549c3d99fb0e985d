package toolresult_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/toolresult"
)

// A large result that is forwarded has the same JSON value as one that is decoded, and
// its content refers to the text. What the SDK refuses is refused.
func TestLargeResultsAreForwarded(t *testing.T) {
	big := strings.Repeat(`line \"é\"\n`, 10_000)
	for text, forwarded := range map[string]bool{
		`{"content":[{"type":"text","text":"` + big + `"}]}`: true,
		` {"_meta": {"a": [1]}, "isError": true, "content": [ {"text":"` + big + `","type":"text","annotations":{"priority":1}}, {"type":"image","mimeType":"image/png","data":"AAAA"} ], "structuredContent": {"x": 1}, "resultType":"complete"} `: true,
		`{"content":[],"structuredContent":"` + big + `"}`:                                          true,
		`{"content":[{"type":"text","text":"` + big + `"}],"content":[{"type":"text","text":"b"}]}`: false,
		`{"structuredContent":"` + big + `"}`:                                                       false,
		`{"content":[{"type":"text","text":"` + big + `"}],"inputRequests":{},"resultType":"x"}`:    false,
		`{"content":[{"type":"unknown","text":"` + big + `"}]}`:                                     false,
		`{"content":[{"type":"text","text":"` + big + `"}`:                                          false,
		`{"content":[{"type":"text","text":"` + big + `"}],"isError":"yes"}`:                        false,
		`{"content":[{"type":"text","text":"small"}]}`:                                              false,
	} {
		want := &mcp.CallToolResult{}
		wantErr := want.UnmarshalJSON([]byte(text))
		got, err := toolresult.Decode(toolresult.WithForwarding(t.Context(), nil), json.RawMessage(text))
		if (err != nil) != (wantErr != nil) {
			t.Errorf("%.80s: %v, by the SDK %v", text, err, wantErr)
			continue
		}
		if err != nil {
			continue
		}
		_, kept := got.StructuredContent.(json.RawMessage)
		if len(got.Content) > 0 {
			_, decoded := got.Content[0].(*mcp.TextContent)
			kept = !decoded
		}
		if kept != forwarded {
			t.Errorf("%.80s: forwarded %v, want %v", text, kept, forwarded)
		}
		gotText, err := json.Marshal(toolresult.New(got))
		if err != nil {
			t.Fatal(err)
		}
		wantText, err := json.Marshal(toolresult.New(want))
		if err != nil {
			t.Fatal(err)
		}
		if !equalJSON(gotText, wantText) || got.IsError != want.IsError {
			t.Errorf("%.80s: encoded as %.200s\nwant %.200s", text, gotText, wantText)
		}
	}
}

// Without forwarding, the content is decoded.
func TestLargeResultsAreDecoded(t *testing.T) {
	text := `{"content":[{"type":"text","text":"` + strings.Repeat("a", 100_000) + `"}]}`
	res, err := toolresult.Decode(t.Context(), json.RawMessage(text))
	if err != nil {
		t.Fatal(err)
	}
	if c, ok := res.Content[0].(*mcp.TextContent); !ok || len(c.Text) != 100_000 {
		t.Errorf("content %T", res.Content[0])
	}
}
