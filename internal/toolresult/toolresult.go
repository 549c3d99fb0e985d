// Package toolresult encodes the results of MCP tool calls only once. In
// contrast, the SDK encodes the text of each content block, compacts it for the
// result and compacts it again for the message.
package toolresult

import (
	"bytes"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Result is a complete result of a tool call. It encodes each string once, with
// the same values as the SDK. Create it with [New].
type Result struct {
	mcp.Result `json:"-"` // same value as of; an interface, because it has no encoding methods to promote
	of         *mcp.CallToolResult

	Meta              mcp.Meta `json:"_meta,omitempty"`
	Content           []any    `json:"content"`
	StructuredContent any      `json:"structuredContent,omitempty"`
	IsError           bool     `json:"isError,omitempty"`
	RequestState      string   `json:"requestState,omitempty"`
	ResultType        string   `json:"resultType,omitempty"`
}

// text is an [mcp.TextContent] without a MarshalJSON method.
type text struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// New returns r as a Result. r must be complete and must not change afterwards.
func New(r *mcp.CallToolResult) *Result {
	out := &Result{Result: r, of: r, Meta: r.Meta, Content: make([]any, len(r.Content)), StructuredContent: r.StructuredContent,
		IsError: r.IsError, RequestState: r.RequestState, ResultType: resultType(r)}
	for i, c := range r.Content {
		if t, ok := c.(*mcp.TextContent); ok && t.Meta == nil && t.Annotations == nil {
			out.Content[i] = text{"text", t.Text}
		} else {
			out.Content[i] = c
		}
	}
	return out
}

// SetMeta implements [mcp.Result].
func (r *Result) SetMeta(m map[string]any) {
	r.Result.SetMeta(m)
	r.Meta = m
}

// resultType returns the type of a result, which only the SDK can read.
func resultType(r *mcp.CallToolResult) string {
	small := *r
	small.Meta, small.Content, small.StructuredContent = nil, nil, nil
	js, err := json.Marshal(&small)
	if err != nil || !bytes.Contains(js, []byte(`"resultType"`)) {
		return ""
	}
	var out struct{ ResultType string }
	_ = json.Unmarshal(js, &out) // the SDK encoded it
	return out.ResultType
}

// Of returns the result of a tool call in res, or nil if res is a different
// kind of result.
func Of(res mcp.Result) *mcp.CallToolResult {
	switch r := res.(type) {
	case *mcp.CallToolResult:
		return r
	case *Result:
		return r.of
	}
	return nil
}
