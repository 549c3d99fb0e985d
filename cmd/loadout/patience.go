package main

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/upstream"
)

const (
	// installTime is how long a command that may install a package first has for its
	// start: to end one in the middle has the next begin anew.
	installTime = 2 * time.Minute
	// untilTried is how long a command of a person waits for servers: until each was
	// tried, which is bounded by the time that the server has for its start.
	untilTried = time.Hour
)

// installers are commands that may fetch what they start.
var installers = []string{"npx", "npm", "pnpm", "pnpx", "yarn", "bunx", "bun", "uvx", "uv", "pipx", "deno", "go", "docker", "podman", "nerdctl"}

// installs reports whether the command of a server may fetch a package first.
func installs(c *upstream.Config) bool {
	base := strings.ToLower(filepath.Base(c.Command))
	return slices.Contains(installers, strings.TrimSuffix(base, filepath.Ext(base)))
}

// patient gives servers that may install a package first the time for it, where
// their configuration says nothing else.
func patient(all []*upstream.Config, deadline time.Duration) {
	for _, c := range all {
		if c.ConnectTimeout <= 0 && installs(c) {
			c.ConnectTimeout = max(installTime, deadline)
		}
	}
}

// moreTime is what to do about a server that had not answered in time, "" for one
// that failed otherwise.
func moreTime(c *upstream.Config, failure string) string {
	if !strings.Contains(failure, "no connection within ") || !installs(c) {
		return ""
	}
	return "it may still have been installing: try again, or give it more time with servers.deadline or a connectTimeout of its own"
}
