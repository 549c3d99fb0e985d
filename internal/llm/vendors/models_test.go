package vendors_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/llm/vendors"
	"github.com/loadout-dev/loadout/llm"
)

// The models of a server are listed with the key of the vendor's protocol. A
// redirect is not followed, so that the key goes to no other server.
func TestModels(t *testing.T) {
	var got []string
	answers := map[string]string{
		"/v1/models":      `{"data": [{"id": "small"}, {"id": "large"}, {"id": ""}, {"id": "small"}], "object": "list"}`,
		"/damaged/models": `{"data": 1}`,
		"/endless/models": `{"data": [` + strings.Repeat(" ", 5<<20) + `]}`,
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, fmt.Sprint(r.Method, " ", r.URL, " ", r.Header.Get("Authorization"), r.Header.Get("x-api-key"), " ", r.Header.Get("anthropic-version")))
		if strings.HasPrefix(r.URL.Path, "/moved") {
			http.Redirect(w, r, "/v1/models", http.StatusFound)
			return
		}
		if strings.HasPrefix(r.URL.Path, "/locked") {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		body, ok := answers[r.URL.Path]
		if !ok {
			http.Error(w, "no such page", http.StatusNotFound)
			return
		}
		_, _ = w.Write([]byte(body))
	}))
	defer s.Close()
	for _, tt := range []struct {
		vendor, path, key string
		models            string
		request           string
	}{
		{"anthropic", "", "k", "[large small]", "GET /v1/models?limit=1000 k 2023-06-01"},
		{"anthropic", "/v1/", "k", "[large small]", "GET /v1/models?limit=1000 k 2023-06-01"},
		{"openai", "/v1/", "k", "[large small]", "GET /v1/models Bearer k "},
		{"openai", "/v1", "", "[large small]", "GET /v1/models  "},
		{"openai", "/none", "k", "[]", "GET /none/models Bearer k "},
		{"openai", "/locked", "k", "refused", "GET /locked/models Bearer k "},
		{"openai", "/moved", "k", "error", "GET /moved/models Bearer k "},
		{"openai", "/damaged", "k", "error", "GET /damaged/models Bearer k "},
		{"openai", "/endless", "k", "error", "GET /endless/models Bearer k "},
		{"demo", "", "", "[]", ""},
	} {
		got = nil
		v, _ := vendors.Lookup(tt.vendor)
		names, err := v.Models(t.Context(), vendors.Options{Key: tt.key, BaseURL: s.URL + tt.path})
		result := fmt.Sprint(names)
		if err != nil {
			result = "error"
		}
		if refused, ok := errors.AsType[*llm.StatusError](err); ok && refused.Code == http.StatusUnauthorized {
			result = "refused"
		}
		if result != tt.models || strings.Join(got, "; ") != tt.request {
			t.Errorf("%s%s: %s (%v) after %q, want %s after %q", tt.vendor, tt.path, result, err, got, tt.models, tt.request)
		}
	}
}
