//lint:file-ignore SA1019 legacy clients and servers still use deprecated features

package upstream

import (
	"encoding/json"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// inputCapabilities lists the client capabilities that let a server request
// input, with their options. No other capability is forwarded.
var inputCapabilities = map[string][]string{
	"elicitation": {"form", "url"},
	"sampling":    {"context", "tools"},
	"roots":       {"listChanged"},
}

// ForwardedMeta returns the entries of a client's _meta that a server may get:
// the progress token, the trace context (W3C traceparent and tracestate), and
// the capabilities named in inputs, which must be keys of [inputCapabilities].
// It omits all other entries, because clients put data about the user into
// them, such as Git remotes, paths and IDs. The result is never nil.
func ForwardedMeta(meta map[string]any, inputs ...string) mcp.Meta {
	m := mcp.Meta{}
	switch token := meta["progressToken"].(type) {
	case string, json.Number, float64, int, int64:
		m["progressToken"] = token
	}
	if parent, _ := meta["traceparent"].(string); isTraceParent(parent) {
		m["traceparent"] = parent
		if state, _ := meta["tracestate"].(string); isTraceState(state) {
			m["tracestate"] = state
		}
	}
	if declared, ok := asObject(meta[mcp.MetaKeyClientCapabilities]); ok {
		caps := map[string]any{}
		for _, name := range inputs {
			if given, ok := declared[name].(map[string]any); ok {
				caps[name] = forwardedOptions(given, inputCapabilities[name])
			}
		}
		m[mcp.MetaKeyClientCapabilities] = caps
	}
	return m
}

// forwardedOptions returns the named options of a capability, each as a boolean
// or an empty object.
func forwardedOptions(given map[string]any, names []string) map[string]any {
	out := map[string]any{}
	for _, name := range names {
		switch value := given[name].(type) {
		case bool:
			out[name] = value
		case map[string]any:
			out[name] = map[string]any{}
		}
	}
	return out
}

// asObject returns a value as a decoded JSON object.
func asObject(v any) (map[string]any, bool) {
	if v == nil {
		return nil, false
	}
	if object, ok := v.(map[string]any); ok {
		return object, true
	}
	data, err := json.Marshal(v)
	if err != nil {
		return nil, false
	}
	var object map[string]any
	return object, json.Unmarshal(data, &object) == nil && object != nil
}

// isTraceParent reports whether s is a traceparent as defined by W3C Trace
// Context: VERSION-TRACE-PARENT-FLAGS in lower-case hexadecimal digits.
func isTraceParent(s string) bool {
	fields := strings.Split(s, "-")
	if len(fields) != 4 {
		return false
	}
	for i, length := range []int{2, 32, 16, 2} {
		if len(fields[i]) != length || strings.Trim(fields[i], "0123456789abcdef") != "" {
			return false
		}
	}
	return true
}

// maxTraceState is the length of a tracestate that W3C Trace Context requires
// programs to forward.
const maxTraceState = 512

// isTraceState reports whether s is a list of KEY=VALUE pairs in printable
// ASCII.
func isTraceState(s string) bool {
	if len(s) > maxTraceState || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
		return false
	}
	for pair := range strings.SplitSeq(s, ",") {
		if key, value, ok := strings.Cut(strings.TrimSpace(pair), "="); !ok || key == "" || value == "" {
			return false
		}
	}
	return true
}

// ForwardedResponse returns a copy of a client's response to an input request,
// without _meta; see [ForwardedMeta].
func ForwardedResponse[R mcp.InputResponse](response R) R {
	switch r := any(response).(type) {
	case *mcp.ElicitResult:
		if r != nil {
			c := *r
			c.Meta = nil
			return any(&c).(R)
		}
	case *mcp.CreateMessageResult:
		if r != nil {
			c := *r
			c.Meta = nil
			return any(&c).(R)
		}
	case *mcp.CreateMessageWithToolsResult:
		if r != nil {
			c := *r
			c.Meta = nil
			return any(&c).(R)
		}
	case *mcp.ListRootsResult:
		if r != nil {
			return any(forwardedRoots(r)).(R)
		}
	}
	return response
}

func forwardedRoots(r *mcp.ListRootsResult) *mcp.ListRootsResult {
	c := &mcp.ListRootsResult{Roots: make([]*mcp.Root, 0, len(r.Roots))}
	for _, root := range r.Roots {
		if root != nil {
			c.Roots = append(c.Roots, &mcp.Root{Name: root.Name, URI: root.URI})
		}
	}
	return c
}

// ForwardedResponses returns a copy of a client's responses without _meta.
func ForwardedResponses(responses mcp.InputResponseMap) mcp.InputResponseMap {
	if responses == nil {
		return nil
	}
	out := make(mcp.InputResponseMap, len(responses))
	for id, r := range responses {
		out[id] = ForwardedResponse(r)
	}
	return out
}
