// Package toolresult encodes results of MCP tool calls once. The SDK encodes a text
// with its content, compacts it for the result and compacts it again for the message.
package toolresult

import (
	"bytes"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Result is a complete result of a tool call that encodes each text once.
type Result struct{ *mcp.CallToolResult }

// Of returns the result of a tool call in res, or nil if res is another result.
func Of(res mcp.Result) *mcp.CallToolResult {
	switch r := res.(type) {
	case *mcp.CallToolResult:
		return r
	case Result:
		return r.CallToolResult
	}
	return nil
}

// MarshalJSON implements [json.Marshaler]. It encodes the same values as the SDK.
func (r Result) MarshalJSON() ([]byte, error) {
	rest, err := encodeRest(r.CallToolResult)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.Grow(sizeHint(r.CallToolResult) + len(rest))
	b.WriteByte('{')
	if len(r.Meta) > 0 {
		b.WriteString(`"_meta":`)
		if err := writeJSON(&b, r.Meta); err != nil {
			return nil, err
		}
		b.WriteByte(',')
	}
	b.WriteString(`"content":[`)
	for i, c := range r.Content {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := writeContent(&b, c); err != nil {
			return nil, err
		}
	}
	b.WriteByte(']')
	if r.StructuredContent != nil {
		b.WriteString(`,"structuredContent":`)
		if raw, ok := r.StructuredContent.(json.RawMessage); ok {
			b.Write(raw)
		} else if err := writeJSON(&b, r.StructuredContent); err != nil {
			return nil, err
		}
	}
	b.Write(rest)
	return b.Bytes(), nil
}

// encodeRest encodes the small fields of a result, some of which only the SDK can
// read: what follows the content, and the end of the object.
func encodeRest(r *mcp.CallToolResult) ([]byte, error) {
	small := *r
	small.Meta, small.Content, small.StructuredContent = nil, []mcp.Content{}, nil
	js, err := json.Marshal(&small)
	return bytes.TrimPrefix(js, []byte(`{"content":[]`)), err
}

// sizeHint returns about the size of the encoded content.
func sizeHint(r *mcp.CallToolResult) int {
	n := 256
	for _, c := range r.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			n += len(t.Text) + len(t.Text)/16 + 64
		}
	}
	if raw, ok := r.StructuredContent.(json.RawMessage); ok {
		n += len(raw)
	}
	return n
}

func writeContent(b *bytes.Buffer, c mcp.Content) error {
	if t, ok := c.(*mcp.TextContent); ok && t.Meta == nil && t.Annotations == nil {
		b.WriteString(`{"type":"text","text":`)
		if err := writeJSON(b, t.Text); err != nil {
			return err
		}
		b.WriteByte('}')
		return nil
	}
	js, err := c.MarshalJSON()
	b.Write(js)
	return err
}

// writeJSON encodes a value without escaping HTML.
func writeJSON(b *bytes.Buffer, v any) error {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	b.Truncate(b.Len() - 1) // the newline
	return nil
}
