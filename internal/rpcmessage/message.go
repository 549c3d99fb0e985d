// Package rpcmessage encodes and decodes simple JSON-RPC messages faster than
// the SDK, and passes other messages to the SDK. The SDK allocates two buffers
// of 32 KiB to decode a message and scans encoded messages twice. That used to
// account for most of the cost of a proxied call.
package rpcmessage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// ModernVersion is the first version of the modern MCP protocol, which has no sessions.
// Older versions are legacy.
const ModernVersion = "2026-07-28"

// InvalidParams returns the error for a request with invalid parameters.
func InvalidParams(format string, args ...any) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf(format, args...)}
}

// DecodePlain decodes a request or a result whose ID is an integer or a simple
// string. It returns nil for other messages and for invalid messages, which the
// SDK must decode. The parameters or the result of a large message share memory
// with text, so text must not be modified.
func DecodePlain(text []byte) jsonrpc.Message {
	var parts map[string]json.RawMessage // unlike a struct, a map distinguishes the case of names
	if len(text) >= largeText {
		parts = splitObject(text)
	} else if json.Unmarshal(text, &parts) != nil {
		return nil
	}
	if string(parts["jsonrpc"]) != `"2.0"` {
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

// plainID decodes an ID. A missing ID is the zero ID. It returns false if the
// SDK must decode the ID.
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
		const exact = 1 << 53 // the SDK decodes integers as float64, which is exact up to this value
		n, err := strconv.ParseInt(string(raw), 10, 64)
		if err != nil || n >= exact || n <= -exact {
			return jsonrpc.ID{}, false
		}
		value = float64(n)
	}
	id, err := jsonrpc.MakeID(value)
	return id, err == nil
}

// plainText decodes a JSON string of printable ASCII without escapes. It
// returns false for other strings.
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

// EncodeLine encodes a message as a single line, including the newline. The
// parameters and the result of the message must be JSON that the SDK encoded.
func EncodeLine(msg jsonrpc.Message) ([]byte, error) {
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

// plainLine encodes a simple message. It returns nil if the SDK must encode the
// message.
func plainLine(msg jsonrpc.Message) []byte {
	switch m := msg.(type) {
	case *jsonrpc.Request:
		if method, ok := plainText(strconv.AppendQuote(nil, m.Method)); !ok || method == "" {
			return nil
		}
		line, ok := beginMessage(m.ID, len(m.Method)+len(m.Params))
		if !ok || bytes.IndexByte(m.Params, '\n') >= 0 {
			return nil
		}
		line = append(append(append(line, `,"method":"`...), m.Method...), '"')
		if len(m.Params) > 0 {
			line = append(append(line, `,"params":`...), m.Params...)
		}
		return append(line, '}')
	case *jsonrpc.Response:
		line, ok := beginMessage(m.ID, len(m.Result))
		if !ok || m.Error != nil || len(m.Result) == 0 || bytes.IndexByte(m.Result, '\n') >= 0 {
			return nil
		}
		return append(append(append(line, `,"result":`...), m.Result...), '}')
	}
	return nil
}

// beginMessage encodes a message up to its ID and reserves size more bytes. It
// returns false if the SDK must encode the ID.
func beginMessage(id jsonrpc.ID, size int) ([]byte, bool) {
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
