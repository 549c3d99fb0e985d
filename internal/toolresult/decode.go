package toolresult

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/rpcmessage"
)

// Size thresholds for results from other servers. The only limit on the size of
// a result is that of a message, and decoding and encoding a large result would
// take several times as long as forwarding it.
const (
	large     = 64 << 10 // minimum size in bytes of results whose content stays encoded
	veryLarge = 1 << 20  // minimum size in bytes of results whose memory is released after they are sent
)

type forwardKey struct{}

// WithForwarding returns a context for calls whose results are forwarded to a
// client. [Decode] leaves the content of their large results encoded, and m releases
// their memory. m may be nil.
func WithForwarding(ctx context.Context, m *Memory) context.Context {
	return context.WithValue(ctx, forwardKey{}, m)
}

// Forwarding returns the m that was passed to [WithForwarding]. It returns
// false if ctx was not created by WithForwarding.
func Forwarding(ctx context.Context) (m *Memory, ok bool) {
	m, ok = ctx.Value(forwardKey{}).(*Memory)
	return m, ok
}

// encoded is content that is kept in its encoded form.
type encoded struct {
	mcp.Content // nil; the SDK does not decode into it
	text        json.RawMessage
}

func (c *encoded) MarshalJSON() ([]byte, error) { return c.text, nil }

// Decode decodes the result of a tool call. If the result is large and ctx is from
// [WithForwarding], its content and structured content share memory with text and can only be
// encoded again; its other fields are decoded.
func Decode(ctx context.Context, text json.RawMessage) (*mcp.CallToolResult, error) {
	if m, ok := Forwarding(ctx); ok && len(text) >= large {
		if len(text) >= veryLarge {
			m.scheduleRelease()
		}
		if res := decodeOutline(text); res != nil {
			return res, nil
		}
	}
	res := &mcp.CallToolResult{}
	return res, res.UnmarshalJSON(text)
}

// decodeOutline decodes a result except for its content. It returns nil if the SDK
// must decode the result.
func decodeOutline(text []byte) *mcp.CallToolResult {
	var content []mcp.Content
	var structured json.RawMessage
	seen := map[string]bool{}
	rest := []byte(`{"content":[]`)
	ok := true
	end := rpcmessage.Members(text, 0, func(name string, at int) (end int) {
		ok = ok && !seen[name]
		seen[name] = true
		if name == "content" {
			return rpcmessage.Elements(text, at, func(at int) int {
				end := contentEnd(text, at)
				if end >= 0 {
					content = append(content, &encoded{text: text[at:end:end]})
				}
				return end
			})
		}
		if end = rpcmessage.Skip(text, at); end < 0 {
			return -1
		}
		switch value := text[at:end:end]; {
		case name == "structuredContent":
			structured = value
		case name == "inputRequests" || end-at >= large:
			ok = false
		default:
			rest = append(append(rest, `,"`+name+`":`...), value...)
		}
		return end
	})
	if end < 0 || !ok || !seen["content"] || len(bytes.TrimSpace(text[end:])) > 0 {
		return nil
	}
	res := &mcp.CallToolResult{}
	if res.UnmarshalJSON(append(rest, '}')) != nil || res.NeedsInput() {
		return nil
	}
	res.Content = content
	if structured != nil && string(structured) != "null" {
		res.StructuredContent = structured
	}
	return res
}

// contentEnd returns the end of the content at text[at:]. It returns -1 if the
// type of the content is unknown, or if the type is text and the member text is
// not a string.
func contentEnd(text []byte, at int) int {
	var kind string
	hasText := false
	end := rpcmessage.Members(text, at, func(name string, at int) int {
		end := rpcmessage.Skip(text, at)
		if end < 0 {
			return -1
		}
		switch name {
		case "type":
			kind = string(text[at:end])
		case "text":
			hasText = text[at] == '"'
		}
		return end
	})
	switch kind {
	case `"text"`:
		if hasText {
			return end
		}
	case `"image"`, `"audio"`, `"resource"`, `"resource_link"`:
		return end
	}
	return -1
}
