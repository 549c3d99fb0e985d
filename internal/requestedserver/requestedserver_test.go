package requestedserver_test

import (
	"reflect"
	"testing"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/requestedserver"
	"github.com/loadout-dev/loadout/internal/upstream"
)

func TestDescribe(t *testing.T) {
	for _, tt := range []struct {
		name string
		c    upstream.Config
		want loadout.RequestedService
	}{
		{"command", upstream.Config{Name: "weather", Type: upstream.Stdio, Command: "npx", Args: []string{"-y", "weather"}, Env: map[string]string{"B": "1", "A": "2"}},
			loadout.RequestedService{Name: "weather", Command: []string{"npx", "-y", "weather"}, Env: []string{"A", "B"}}},
		{"hosts", upstream.Config{Name: "remote", URLs: []string{"https://a.example/mcp", "https://a.example/sse", "https://b.example:8443/mcp"}},
			loadout.RequestedService{Name: "remote", Hosts: []string{"a.example", "b.example:8443"}}},
	} {
		if got := requestedserver.Describe(&tt.c, upstream.Variables{}); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
	secret := upstream.Config{Name: "remote", URLs: []string{"https://a.example/mcp"}, Headers: map[string]string{"Authorization": "Bearer ${{secrets.KEY}}"}}
	got := requestedserver.Describe(&secret, upstream.Variables{})
	if len(got.Variables) != 1 || got.Variables[0].Kind != "secret" || got.Variables[0].Name != "KEY" || got.Variables[0].Location == "" {
		t.Errorf("variables %+v", got.Variables)
	}
}
