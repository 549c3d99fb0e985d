// Package message reads and writes JSON-RPC messages as the SDK does, where they
// are of the plain kind that most are, and leaves the others to it. The SDK takes a
// buffer of 32 KiB for each thing that it decodes, two for a message, and goes over
// what is encoded once more: that was most of what a call through us cost.
package message

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Plain reads a request or a result whose id is a whole number or a simple text.
// It is nil for another message, and for what is none: the SDK's decoder knows.
func Plain(text []byte) jsonrpc.Message {
	var parts map[string]json.RawMessage // unlike a struct it tells cases of names apart
	if json.Unmarshal(text, &parts) != nil || string(parts["jsonrpc"]) != `"2.0"` {
		return nil
	}
	id, ok := plainID(parts["id"])
	if !ok {
		return nil
	}
	if name, ok := parts["method"]; ok {
		method, ok := plainText(name)
		if params, given := parts["params"]; !ok || given && isNull(params) {
			return nil
		}
		return &jsonrpc.Request{ID: id, Method: method, Params: parts["params"]}
	}
	result, ok := parts["result"]
	if _, failed := parts["error"]; !ok || failed || isNull(result) || !id.IsValid() {
		return nil
	}
	return &jsonrpc.Response{ID: id, Result: result}
}

func isNull(raw json.RawMessage) bool { return string(raw) == "null" }

// plainID is the id that raw says, none where there is none.
func plainID(raw json.RawMessage) (jsonrpc.ID, bool) {
	var value any
	switch {
	case len(raw) == 0:
	case raw[0] == '"':
		s, ok := plainText(raw)
		if !ok {
			return jsonrpc.ID{}, false
		}
		value = s
	default:
		const exact = 1 << 53 // of what the SDK keeps of a number
		n, err := strconv.ParseInt(string(raw), 10, 64)
		if err != nil || n >= exact || n <= -exact {
			return jsonrpc.ID{}, false
		}
		value = float64(n)
	}
	id, err := jsonrpc.MakeID(value)
	return id, err == nil
}

// plainText is a JSON string of printable ASCII without an escape.
func plainText(raw json.RawMessage) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	s := raw[1 : len(raw)-1]
	for _, c := range s {
		if c < ' ' || c > '~' || c == '\\' {
			return "", false
		}
	}
	return string(s), true
}

// Line is a message as a line, with its end. What a message carries is JSON, as
// the SDK has encoded it.
func Line(msg jsonrpc.Message) ([]byte, error) {
	line := plainLine(msg)
	if line == nil {
		text, err := jsonrpc.EncodeMessage(msg)
		if err != nil {
			return nil, err
		}
		line = text
	}
	return append(line, '\n'), nil
}

// plainLine is nil where the SDK's encoder is needed.
func plainLine(msg jsonrpc.Message) []byte {
	switch m := msg.(type) {
	case *jsonrpc.Request:
		if method, ok := plainText(strconv.AppendQuote(nil, m.Method)); !ok || method == "" {
			return nil
		}
		line, ok := beginning(m.ID, len(m.Method)+len(m.Params))
		if !ok || bytes.IndexByte(m.Params, '\n') >= 0 {
			return nil
		}
		line = append(append(append(line, `,"method":"`...), m.Method...), '"')
		if len(m.Params) > 0 {
			line = append(append(line, `,"params":`...), m.Params...)
		}
		return append(line, '}')
	case *jsonrpc.Response:
		line, ok := beginning(m.ID, len(m.Result))
		if !ok || m.Error != nil || len(m.Result) == 0 || bytes.IndexByte(m.Result, '\n') >= 0 {
			return nil
		}
		return append(append(append(line, `,"result":`...), m.Result...), '}')
	}
	return nil
}

// beginning is a message up to its id, with room for what follows.
func beginning(id jsonrpc.ID, size int) ([]byte, bool) {
	line := append(make([]byte, 0, size+64), `{"jsonrpc":"2.0"`...)
	switch v := id.Raw().(type) {
	case nil:
		return line, true
	case int64:
		return strconv.AppendInt(append(line, `,"id":`...), v, 10), true
	case string:
		text := strconv.AppendQuote(nil, v)
		if _, ok := plainText(text); !ok {
			return nil, false
		}
		return append(append(line, `,"id":`...), text...), true
	}
	return nil, false
}
