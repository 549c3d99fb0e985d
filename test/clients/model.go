package main

import (
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
)

// fakeModel answers the requests of all clients: it calls one tool once, and then
// says that it is done. It records the bodies of the requests.
type fakeModel struct {
	*httptest.Server
	tool      string // the tool to call, as the server names it
	arguments string // in JSON

	mu     sync.Mutex
	bodies [][]byte
	called bool // whether the tool was called
}

func newFakeModel(tool, arguments string) *fakeModel {
	m := &fakeModel{tool: tool, arguments: arguments}
	m.Server = httptest.NewServer(m)
	return m
}

// recorded returns the bodies of the requests, and reports whether the model
// called the tool.
func (m *fakeModel) recorded() (bodies [][]byte, called bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.bodies, m.called
}

// ServeHTTP implements [http.Handler].
func (m *fakeModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var vendor string
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/count_tokens"):
		fmt.Fprint(w, `{"input_tokens":10}`)
		return
	case strings.HasSuffix(path, "/messages"):
		vendor = "anthropic"
	case strings.HasSuffix(path, "/responses"):
		vendor = "responses"
	case strings.HasSuffix(path, "/chat/completions"):
		vendor = "completions"
	case strings.HasSuffix(path, "GenerateContent"), strings.HasSuffix(path, ":generateContent"):
		vendor = "gemini"
	default:
		http.NotFound(w, r)
		return
	}
	m.mu.Lock()
	m.bodies = append(m.bodies, body)
	m.mu.Unlock()
	var request struct {
		Stream bool            `json:"stream"`
		Tools  json.RawMessage `json:"tools"`
	}
	if err := json.Unmarshal(body, &request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	name, namespace := findTool(request.Tools, m.tool)
	if strings.Contains(string(body), callID) || strings.Contains(string(body), `"functionResponse"`) {
		name = "" // it was called
	}
	if !request.Stream && !strings.Contains(r.URL.Path, ":stream") {
		w.Header().Set("Content-Type", "application/json")
		respond(w, vendor, "whole")
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	if name == "" {
		respond(w, vendor, "done")
		return
	}
	m.mu.Lock()
	m.called = true
	m.mu.Unlock()
	quoted, _ := json.Marshal(m.arguments) // a string
	respond(w, vendor, "call", "$NAMESPACE", namespace, "$NAME", name, "$QUOTED", string(quoted), "$ARGUMENTS", m.arguments)
}

// findTool returns the name by which a client offers the server's tool, and its
// namespace, if any. The name is "" if the tool is not offered.
func findTool(tools json.RawMessage, tool string) (name, namespace string) {
	var list []struct {
		Name, Namespace      string
		Tools                json.RawMessage
		Function             struct{ Name string }
		FunctionDeclarations json.RawMessage
	}
	if json.Unmarshal(tools, &list) != nil {
		return "", ""
	}
	for _, t := range list {
		for _, n := range []string{t.Name, t.Function.Name} {
			if strings.HasSuffix(n, tool) {
				return n, ""
			}
		}
		if n, _ := findTool(t.Tools, tool); n != "" {
			return n, t.Name
		}
		if n, _ := findTool(t.FunctionDeclarations, tool); n != "" {
			return n, ""
		}
	}
	return "", ""
}

// callID identifies the call of the fake model.
const callID = "call_fakemodel"

// responses holds the responses in each vendor's protocol: a tool call, a text
// message, and a text message for requests that do not stream.
//
//go:embed responses
var responses embed.FS

// respond writes a response in a vendor's protocol.
func respond(w io.Writer, vendor, kind string, replace ...string) {
	b, err := responses.ReadFile("responses/" + vendor + "/" + kind)
	if err != nil {
		panic(err) // the file is embedded
	}
	_, _ = strings.NewReplacer(append(replace, "$ID", callID)...).WriteString(w, string(b)) // fails if the client is gone
}
