package spawn_test

import (
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/spawn"
	"github.com/loadout-dev/loadout/internal/upstream"
)

// A command that may install a package gets more time, unless its timeout is
// configured.
func TestExtendTimeouts(t *testing.T) {
	for _, tt := range []struct {
		c        upstream.Config
		deadline time.Duration
		want     time.Duration
	}{
		{upstream.Config{Command: "npx"}, 20 * time.Second, spawn.InstallTimeout},
		{upstream.Config{Command: "/usr/bin/uvx"}, 20 * time.Second, spawn.InstallTimeout},
		{upstream.Config{Command: "NPX.cmd"}, 20 * time.Second, spawn.InstallTimeout},
		{upstream.Config{Command: "npx"}, 5 * time.Minute, 5 * time.Minute},
		{upstream.Config{Command: "npx", ConnectTimeout: time.Second}, 20 * time.Second, time.Second},
		{upstream.Config{Command: "python3"}, 20 * time.Second, 0},
		{upstream.Config{URLs: []string{"https://mcp.example.com"}}, 20 * time.Second, 0},
	} {
		c := tt.c
		spawn.ExtendTimeouts([]*upstream.Config{&c}, tt.deadline)
		if c.ConnectTimeout != tt.want {
			t.Errorf("%q has %v, want %v", tt.c.Command, c.ConnectTimeout, tt.want)
		}
	}
}
