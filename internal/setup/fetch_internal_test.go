package setup

import (
	"net/url"
	"testing"

	"github.com/loadout-dev/loadout/internal/config"
)

// The hub's token is only for the hub in LOADOUT_HUB.
func TestHubCredential(t *testing.T) {
	for _, tt := range []struct {
		hub, site string
		want      bool
	}{
		{"https://hub.example.com", "https://hub.example.com/", true},
		{"https://hub.example.com:443", "https://HUB.example.com/x", true},
		{"https://hub.example.com/", "https://hub.example.com:443/x", true},
		{"http://localhost", "http://localhost:80/", true},
		{"https://hub.example.com:8443", "https://hub.example.com/", false},
		{"https://hub.example.com", "http://hub.example.com:443/", false},
		{"https://hub.example.com", "https://example.com/", false},
		{"https://hub.example.com", "https://evil.hub.example.com/", false},
		{"", "http://127.0.0.1:8484/", false},
		{"%", "http://127.0.0.1:8484/", false},
	} {
		s := &Setup{}
		s.Getenv = func(name string) string {
			return map[string]string{"LOADOUT_HUB": tt.hub, "LOADOUT_HUB_TOKEN": " lo_1\n"}[name]
		}
		site, err := url.Parse(tt.site)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.hubCredential(t.Context(), &config.Config{}, site)
		if err != nil || (got != nil) != tt.want || got != nil && got.Password != "lo_1" {
			t.Errorf("for the hub %q, %s gets %v, error %v", tt.hub, tt.site, got, err)
		}
	}
}
