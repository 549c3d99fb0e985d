package main

import (
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/trust"
)

// newProjectServers reads the project around the working directory. It must be
// called before the configuration is read.
func (a *app) newProjectServers() *trust.Servers {
	return trust.NewServers(a.configInput().WorkDir, a.trustStore(), func(dir string) string {
		return "trust it with `loadout trust " + console.ShellQuote(dir) + "`"
	})
}
