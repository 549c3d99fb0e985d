package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/plainjson"
	"github.com/loadout-dev/loadout/internal/rpcmessage"
)

// statelessHandler serves ordinary stateless requests by calling the SDK's method
// handlers directly. The SDK would open a session for each of these requests: a
// connection with its goroutines and queues, several copies of the messages, and
// a schema that it encodes again. statelessHandler leaves all other requests to
// the SDK, which also writes the errors for malformed requests.
type statelessHandler struct {
	s      *Server
	legacy bool // whether requests of earlier protocol versions are stateless
	next   http.Handler
}

const (
	maxStatelessBody = 4 << 20 // as in the SDK
	legacyVersion    = "2025-03-26"
)

// ServeHTTP implements [http.Handler].
func (h *statelessHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !h.isOrdinary(r) {
		h.next.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxStatelessBody))
	if err != nil {
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			http.Error(w, "request body exceeds 4194304 bytes", http.StatusRequestEntityTooLarge)
			return
		}
		http.Error(w, "failed to read body", http.StatusBadRequest)
		return
	}
	if h.s.stateless.begin() && h.serve(w, r, body) {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	h.next.ServeHTTP(w, r)
}

// serve handles a call. It returns false if the SDK must handle it. The caller must
// have called begin.
func (h *statelessHandler) serve(w http.ResponseWriter, r *http.Request, body []byte) bool {
	defer h.s.stateless.calls.Done()
	defs := h.s.definitions()
	call, req, ok := h.request(defs, r, body)
	if !ok {
		return false
	}
	res, err := h.s.handle(r.Context(), call.Method, req)
	h.answer(w, r, call.ID, res, err)
	return true
}

// isOrdinary reports whether the headers are those of a stateless call.
func (h *statelessHandler) isOrdinary(r *http.Request) bool {
	version := r.Header.Get("MCP-Protocol-Version")
	if r.Method != http.MethodPost || version != rpcmessage.ModernVersion && (!h.legacy || version >= rpcmessage.ModernVersion) || r.Header.Get("Mcp-Session-Id") != "" || r.Header.Get("Last-Event-ID") != "" {
		return false
	}
	if version != "" && statelessParams[version] == nil {
		return false
	}
	for name := range r.Header {
		if strings.HasPrefix(name, "Mcp-Param-") {
			return false
		}
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	accept := strings.Join(r.Header.Values("Accept"), ",")
	return err == nil && kind == "application/json" && strings.Contains(accept, "application/json") && strings.Contains(accept, "text/event-stream")
}

// request decodes a call. ok is false if the SDK must handle it.
func (h *statelessHandler) request(defs *definitions, r *http.Request, body []byte) (call *jsonrpc.Request, req mcp.Request, ok bool) {
	call, isCall := rpcmessage.DecodePlain(body).(*jsonrpc.Request)
	if !isCall || !call.IsCall() || len(call.Params) == 0 && r.Header.Get("MCP-Protocol-Version") == rpcmessage.ModernVersion {
		return nil, nil, false
	}
	version := r.Header.Get("MCP-Protocol-Version")
	if version == "" {
		version = legacyVersion
	}
	ss, err := defs.session(version)
	if err != nil {
		return nil, nil, false
	}
	extra := &mcp.RequestExtra{TokenInfo: auth.TokenInfoFromContext(r.Context()), Header: r.Header}
	var name string
	switch call.Method {
	case "tools/call":
		p := &mcp.CallToolParamsRaw{}
		req, name, ok = &mcp.CallToolRequest{Session: ss, Params: p, Extra: extra}, "", decodeParams(call.Params, p)
		// Other tools may take arguments from headers.
		name, ok = p.Name, ok && h.s.isOurTool(p.Name) && p.GetProgressToken() == nil
	case "prompts/get":
		p := &mcp.GetPromptParams{}
		req, ok = &mcp.GetPromptRequest{Session: ss, Params: p, Extra: extra}, decodeParams(call.Params, p)
		name, ok = p.Name, ok && p.GetProgressToken() == nil
	case "resources/read":
		p := &mcp.ReadResourceParams{}
		req, ok = &mcp.ReadResourceRequest{Session: ss, Params: p, Extra: extra}, decodeParams(call.Params, p)
		name, ok = p.URI, ok && p.GetProgressToken() == nil
	case "tools/list":
		p := &mcp.ListToolsParams{}
		req, ok = &mcp.ListToolsRequest{Session: ss, Params: p, Extra: extra}, decodeParams(call.Params, p)
	case "prompts/list":
		p := &mcp.ListPromptsParams{}
		req, ok = &mcp.ListPromptsRequest{Session: ss, Params: p, Extra: extra}, decodeParams(call.Params, p)
	case "resources/list":
		p := &mcp.ListResourcesParams{}
		req, ok = &mcp.ListResourcesRequest{Session: ss, Params: p, Extra: extra}, decodeParams(call.Params, p)
	}
	return call, req, ok && (version < rpcmessage.ModernVersion || matchesHeaders(r.Header, call.Method, name, req.GetParams().GetMeta())) &&
		(version >= rpcmessage.ModernVersion || req.GetParams().GetMeta()[mcp.MetaKeyProtocolVersion] == nil)
}

// paramNames lists the parameter names that [decodeParams] accepts.
var paramNames = []string{"_meta", "name", "arguments", "uri", "cursor", "inputResponses", "requestState"}

// decodeParams decodes params, which may be missing, into p. It returns false
// if params has an unknown or a repeated member. It compares names exactly,
// like the SDK and gateways that inspect messages; package json alone would
// ignore case.
func decodeParams(params json.RawMessage, p any) bool {
	if len(params) == 0 {
		return true
	}
	var seen []string
	end := rpcmessage.Members(params, 0, func(name string, at int) int {
		if slices.Contains(seen, name) || !slices.Contains(paramNames, name) {
			return -1
		}
		seen = append(seen, name)
		return rpcmessage.Skip(params, at)
	})
	return end >= 0 && json.Unmarshal(params, p) == nil
}

// matchesHeaders reports whether the headers of a modern request match the
// protocol version, method and name in its body, and whether meta is complete.
func matchesHeaders(h http.Header, method, name string, meta map[string]any) bool {
	if _, isObject := meta[mcp.MetaKeyClientCapabilities].(map[string]any); !isObject {
		return false
	}
	if info, given := meta[mcp.MetaKeyClientInfo]; given {
		if _, isObject := info.(map[string]any); !isObject {
			return false
		}
	}
	//lint:ignore SA1019 clients may still ask for logs, which the SDK then sends
	if meta[mcp.MetaKeyLogLevel] != nil || meta[mcp.MetaKeyProtocolVersion] != rpcmessage.ModernVersion || h.Get("Mcp-Method") != method {
		return false
	}
	return name == "" || h.Get("Mcp-Name") == name
}

// answer writes the result of a call as the SDK does: in the modern protocol,
// some errors as JSON with an HTTP status, and everything else as a server-sent
// event.
func (h *statelessHandler) answer(w http.ResponseWriter, r *http.Request, id jsonrpc.ID, res mcp.Result, err error) {
	modern := r.Header.Get("MCP-Protocol-Version") == rpcmessage.ModernVersion
	w.Header().Set("Cache-Control", "no-cache, no-transform")
	var data []byte
	if err == nil {
		if modern {
			complete(res, h.s.impl)
		}
		var encoded []byte
		if encoded, err = plainjson.Line(res); err == nil {
			idJSON, _ := json.Marshal(id.Raw()) // a string or a number
			data = make([]byte, 0, len(encoded)+len(idJSON)+64)
			data = append(data, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":"...)
			data = append(append(append(data, idJSON...), ",\"result\":"...), encoded...)
			data = append(data, "}\n\n"...)
		}
	}
	if err != nil {
		encoded, encodeErr := jsonrpc.EncodeMessage(&jsonrpc.Response{ID: id, Error: err})
		if encodeErr != nil {
			http.Error(w, "couldn't encode the response", http.StatusInternalServerError)
			return
		}
		if status := errorStatus(err); modern && status != 0 {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			w.Write(encoded) // fails only if the client has disconnected
			return
		}
		data = append(append([]byte("event: message\ndata: "), encoded...), "\n\n"...)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Connection", "keep-alive")
	w.Write(data)
}

// errorStatus returns the HTTP status of an error in the modern protocol, or 0 for
// 200.
func errorStatus(err error) int {
	wire, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok {
		return 0
	}
	switch wire.Code {
	case jsonrpc.CodeMethodNotFound:
		return http.StatusNotFound
	case jsonrpc.CodeInvalidParams, mcp.CodeUnsupportedProtocolVersion, mcp.CodeMissingRequiredClientCapabilities:
		return http.StatusBadRequest
	}
	return 0
}

// complete adds the fields that the modern protocol requires in each result.
func complete(res mcp.Result, impl *mcp.Implementation) {
	switch r := res.(type) {
	case *mcp.ListToolsResult:
		r.ResultType = "complete"
	case *mcp.ListPromptsResult:
		r.ResultType = "complete"
	case *mcp.ListResourcesResult:
		r.ResultType = "complete"
	}
	meta := res.GetMeta()
	if meta == nil {
		meta = map[string]any{}
	}
	if meta[mcp.MetaKeyServerInfo] == nil {
		meta[mcp.MetaKeyServerInfo] = impl
		res.SetMeta(meta)
	}
}

// statelessCalls counts the running calls of a server.
type statelessCalls struct {
	calls sync.WaitGroup

	mu     sync.Mutex // guards the field below
	closed bool
}

// begin registers a call. The caller must call c.calls.Done when the call ends,
// unless begin returns false because close was called.
func (c *statelessCalls) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.calls.Add(1)
	}
	return !c.closed
}

// close waits for running calls. Later calls of begin return false.
func (c *statelessCalls) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.calls.Wait()
}

// statelessParams holds the initialize parameters of the sessions that
// represent stateless requests. isStatelessSession recognizes a session by
// them.
var statelessParams = func() map[string]*mcp.InitializeParams {
	out := map[string]*mcp.InitializeParams{}
	for _, v := range mcp.SupportedProtocolVersions() {
		out[v] = &mcp.InitializeParams{ProtocolVersion: v}
	}
	return out
}()

// isStatelessSession reports whether a session represents the clients of
// stateless requests.
func isStatelessSession(ss *mcp.ServerSession) bool {
	p := ss.InitializeParams()
	return p != nil && statelessParams[p.ProtocolVersion] == p
}

// idleTransport is a transport on which no message arrives.
type idleTransport struct{}

// Connect implements [mcp.Transport].
func (idleTransport) Connect(context.Context) (mcp.Connection, error) {
	return &idleConnection{closed: make(chan struct{})}, nil
}

type idleConnection struct {
	once   sync.Once
	closed chan struct{}
}

// Read implements [mcp.Connection]. It blocks until the connection is closed.
func (c *idleConnection) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case <-c.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write implements [mcp.Connection]. It discards the message, because nobody
// waits for it.
func (c *idleConnection) Write(context.Context, jsonrpc.Message) error { return nil }

// Close implements [mcp.Connection].
func (c *idleConnection) Close() error {
	c.once.Do(func() { close(c.closed) })
	return nil
}

// SessionID implements [mcp.Connection].
func (c *idleConnection) SessionID() string { return "" }
