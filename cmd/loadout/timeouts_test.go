package main

import (
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/upstream"
)

// What may be installed before it speaks gets the time for that, unless its
// configuration says how long.
func TestTimeToInstall(t *testing.T) {
	for _, tt := range []struct {
		c        upstream.Config
		deadline time.Duration
		want     time.Duration
	}{
		{upstream.Config{Command: "npx"}, 20 * time.Second, installTimeout},
		{upstream.Config{Command: "/usr/bin/uvx"}, 20 * time.Second, installTimeout},
		{upstream.Config{Command: "NPX.cmd"}, 20 * time.Second, installTimeout},
		{upstream.Config{Command: "npx"}, 5 * time.Minute, 5 * time.Minute},
		{upstream.Config{Command: "npx", ConnectTimeout: time.Second}, 20 * time.Second, time.Second},
		{upstream.Config{Command: "python3"}, 20 * time.Second, 0},
		{upstream.Config{URLs: []string{"https://mcp.example.com"}}, 20 * time.Second, 0},
	} {
		c := tt.c
		extendTimeouts([]*upstream.Config{&c}, tt.deadline)
		if c.ConnectTimeout != tt.want {
			t.Errorf("%q has %v, want %v", tt.c.Command, c.ConnectTimeout, tt.want)
		}
	}
}
