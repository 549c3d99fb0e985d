package spawn

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/upstream"
)

// InstallTimeout is the connect timeout for a command that may first install a
// package. A shorter timeout would interrupt the installation at each attempt.
const InstallTimeout = 2 * time.Minute

// installers lists commands that may download the programs they run.
var installers = []string{"npx", "npm", "pnpm", "pnpx", "yarn", "bunx", "bun", "uvx", "uv", "pipx", "deno", "go", "docker", "podman", "nerdctl"}

// MayInstall reports whether a server's command may install a package before it
// starts the server.
func MayInstall(c *upstream.Config) bool {
	base := strings.ToLower(filepath.Base(c.Command))
	return slices.Contains(installers, strings.TrimSuffix(base, filepath.Ext(base)))
}

// ExtendTimeouts sets the connect timeout of servers that may install a package
// to deadline, but at least [InstallTimeout]. It does not change configured
// timeouts.
func ExtendTimeouts(all []*upstream.Config, deadline time.Duration) {
	for _, c := range all {
		if c.ConnectTimeout <= 0 && MayInstall(c) {
			c.ConnectTimeout = max(InstallTimeout, deadline)
		}
	}
}
