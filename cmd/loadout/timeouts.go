package main

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/upstream"
)

const (
	// installTimeout is the start timeout of a command that may install a
	// package first. A shorter timeout would restart the installation each
	// time.
	installTimeout = 2 * time.Minute
	// connectAllTimeout bounds how long a command waits until each server was
	// tried. The start timeout of each server ends it earlier.
	connectAllTimeout = time.Hour
)

// installers are the commands that may download what they start.
var installers = []string{"npx", "npm", "pnpm", "pnpx", "yarn", "bunx", "bun", "uvx", "uv", "pipx", "deno", "go", "docker", "podman", "nerdctl"}

// mayInstall reports whether the command of a server may install a package
// first.
func mayInstall(c *upstream.Config) bool {
	base := strings.ToLower(filepath.Base(c.Command))
	return slices.Contains(installers, strings.TrimSuffix(base, filepath.Ext(base)))
}

// extendTimeouts sets a longer connect timeout for servers that may install a
// package, unless one is configured.
func extendTimeouts(all []*upstream.Config, deadline time.Duration) {
	for _, c := range all {
		if c.ConnectTimeout <= 0 && mayInstall(c) {
			c.ConnectTimeout = max(installTimeout, deadline)
		}
	}
}

// timeoutHint returns the next step for a server that timed out while possibly
// installing, else "".
func timeoutHint(c *upstream.Config, failure string) string {
	if !strings.Contains(failure, "no connection within ") || !mayInstall(c) {
		return ""
	}
	return "its package may still be installing: try again, or raise servers.deadline or its connectTimeout"
}
