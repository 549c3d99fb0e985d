package spawn

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/upstream"
)

// InstallTimeout is the start timeout of a command that may install a package
// first. A shorter timeout would restart the installation each time.
const InstallTimeout = 2 * time.Minute

// installers are the commands that may download what they start.
var installers = []string{"npx", "npm", "pnpm", "pnpx", "yarn", "bunx", "bun", "uvx", "uv", "pipx", "deno", "go", "docker", "podman", "nerdctl"}

// MayInstall reports whether the command of a server may install a package
// first.
func MayInstall(c *upstream.Config) bool {
	base := strings.ToLower(filepath.Base(c.Command))
	return slices.Contains(installers, strings.TrimSuffix(base, filepath.Ext(base)))
}

// ExtendTimeouts sets a longer connect timeout for servers that may install a
// package, unless one is configured.
func ExtendTimeouts(all []*upstream.Config, deadline time.Duration) {
	for _, c := range all {
		if c.ConnectTimeout <= 0 && MayInstall(c) {
			c.ConnectTimeout = max(InstallTimeout, deadline)
		}
	}
}
