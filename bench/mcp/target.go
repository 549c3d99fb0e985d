//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/loadout-dev/loadout/bench/internal/measure"
)

// target is a server whose calls can be measured.
type target interface {
	// Measure makes one call and returns its cost and result.
	Measure(method string, params any) (measure.Cost, json.RawMessage, error)
}

var _ target = (*measure.Process)(nil)

// handler calls an HTTP handler directly, without a network. The cost includes only the
// handler's work.
type handler struct{ http.Handler }

const protocolVersion = "2026-07-28"

// meta is the metadata sent with every request: protocol version and client.
var meta = map[string]any{
	"io.modelcontextprotocol/protocolVersion":    protocolVersion,
	"io.modelcontextprotocol/clientCapabilities": struct{}{},
	"io.modelcontextprotocol/clientInfo":         map[string]string{"name": "bench", "version": "1"},
}

// Measure implements [target].
func (h handler) Measure(method string, params any) (measure.Cost, json.RawMessage, error) {
	req, err := newRequest(method, params)
	if err != nil {
		return measure.Cost{}, nil, err
	}
	w := httptest.NewRecorder()
	took, _ := measure.Run(func() error { h.ServeHTTP(w, req); return nil })
	answer := w.Body.Bytes()
	if _, data, ok := bytes.Cut(answer, []byte("data: ")); ok && w.Header().Get("Content-Type") == "text/event-stream" {
		answer = data
	}
	if w.Code != http.StatusOK {
		return took, nil, fmt.Errorf("%s: status %d: %s", method, w.Code, answer)
	}
	res, err := measure.Result(answer)
	if err != nil {
		return took, nil, fmt.Errorf("%s: %w", method, err)
	}
	return took, res, nil
}

// newRequest encodes a call as an HTTP request.
func newRequest(method string, params any) (*http.Request, error) {
	fields, err := toMap(params)
	if err != nil {
		return nil, err
	}
	fields["_meta"] = meta
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": fields})
	if err != nil {
		return nil, err
	}
	req := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/mcp", bytes.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("MCP-Protocol-Version", protocolVersion)
	req.Header.Set("Mcp-Method", method)
	for _, key := range []string{"name", "uri"} {
		if name, ok := fields[key].(string); ok && (method == "tools/call" || method == "resources/read") {
			req.Header.Set("Mcp-Name", name)
		}
	}
	return req, nil
}

func toMap(params any) (map[string]any, error) {
	data, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	fields := map[string]any{}
	return fields, json.Unmarshal(data, &fields)
}
