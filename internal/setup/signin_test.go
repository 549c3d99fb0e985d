package setup

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/upstream"
)

func TestLoginIsPerServer(t *testing.T) {
	s := &Setup{Console: console.Console{Getenv: func(name string) string {
		if name == "LOADOUT_STATE" {
			return filepath.Join(t.TempDir(), "state")
		}
		return ""
	}}}
	const at = "https://mcp.example.com/mcp"
	for _, tt := range []struct {
		name string
		c    *upstream.Config
		next string // "" is no handler
	}{
		{"theirs", &upstream.Config{Name: "a", URLs: []string{at}}, "sign in with: loadout servers login a --mcp-config f.json"},
		{"of a skill", &upstream.Config{Name: "a", URLs: []string{at}, Owner: "user/s@sha256:0"}, "its configuration comes from user/s"},
		{"with a header", &upstream.Config{Name: "a", URLs: []string{at}, Headers: map[string]string{"AUTHORIZATION": "Bearer x"}}, ""},
		{"with a user", &upstream.Config{Name: "a", URLs: []string{"https://me:pass@mcp.example.com/mcp"}}, ""},
	} {
		h := s.NewOAuthHandler([]string{"f.json"})(tt.c, at)
		if h == nil {
			if tt.next != "" {
				t.Errorf("%s: no handler", tt.name)
			}
			continue
		}
		if next := h.(upstream.NextStepper).Next(); tt.next == "" || !strings.HasPrefix(next, tt.next) {
			t.Errorf("%s: %q, want %q", tt.name, next, tt.next)
		}
		if source, err := h.TokenSource(t.Context()); source != nil || err != nil {
			t.Errorf("%s: %v, %v; want no token", tt.name, source, err)
		}
	}
}
