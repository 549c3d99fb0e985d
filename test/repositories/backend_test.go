//go:build linux

package repositories_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// services lists the tools of the fake MCP servers, by the part of their address
// that Wegent's skills write.
var services = map[string][]string{
	"chrome-devtools":           {"navigate_page", "take_snapshot"},
	"dingtalk-ai-table":         {"query_records"},
	"dingtalk-docs":             {"list_nodes", "get_document_content"},
	"image":                     {"generate_image"},
	"interactive-form-question": {"interactive_form_question"},
	"knowledge":                 {"wegent_kb_list_knowledge_bases", "wegent_kb_search_knowledge_base"},
	"prompt-optimization":       {"get_team_prompt", "submit_prompt_changes"},
	"subscription":              {"preview_subscription", "create_subscription"},
	"video":                     {"generate_video"},
}

// startBackend starts the fake services until the end of the test, and returns
// their address. Except for DingTalk, they require the token of the task. Each
// tool returns its name and arguments.
func startBackend(t *testing.T) string {
	mux := http.NewServeMux()
	for name, tools := range services {
		s := mcp.NewServer(&mcp.Implementation{Name: name, Version: "1"}, nil)
		for _, tool := range tools {
			s.AddTool(&mcp.Tool{Name: tool, Description: "A fake of " + tool + ".", InputSchema: map[string]any{"type": "object"}},
				func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: tool + " got " + string(req.Params.Arguments)}}}, nil
				})
		}
		var h http.Handler = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
		if name != "dingtalk-ai-table" && name != "dingtalk-docs" { // their address has the credentials
			h = requireToken(h)
		}
		mux.Handle("/mcp/"+name+"/sse", h)
	}
	var mu sync.Mutex
	pages := map[string]string{}
	mux.Handle("POST /api/internal/wiki/generations/contents", requireToken(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Sections []struct{ Path, Content string }
		}
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&body); err != nil || len(body.Sections) != 1 {
			http.Error(w, `{"detail": "no section"}`, http.StatusBadRequest)
			return
		}
		mu.Lock()
		pages[body.Sections[0].Path] = body.Sections[0].Content
		mu.Unlock()
		w.WriteHeader(http.StatusNoContent)
	})))
	mux.Handle("GET /api/internal/wiki/generations/7/pages", requireToken(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		content := pages[r.FormValue("path")]
		mu.Unlock()
		json.NewEncoder(w).Encode(map[string]string{"content": content})
	})))
	s := httptest.NewServer(mux)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

func requireToken(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			http.Error(w, `{"detail": "invalid token"}`, http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	})
}
