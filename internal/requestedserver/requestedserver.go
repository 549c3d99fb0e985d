// Package requestedserver describes an MCP server to the user who is asked to
// approve it: its command, hosts and variables. It starts and approves nothing.
// Start with [Describe].
package requestedserver

import (
	"maps"
	"slices"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/upstream"
)

// Describe returns what the user is asked to approve for a server. v provides
// the platform values and the user values that its hosts may depend on.
func Describe(c *upstream.Config, v upstream.Variables) loadout.RequestedService {
	s := loadout.RequestedService{Name: c.Name, Env: slices.Sorted(maps.Keys(c.Env))}
	if c.Command != "" {
		s.Command = append([]string{c.Command}, c.Args...)
	}
	for _, u := range c.URLs {
		if h := (&upstream.Config{URLs: []string{u}}).TargetWith(v); !slices.Contains(s.Hosts, h) {
			s.Hosts = append(s.Hosts, h)
		}
	}
	target := c.TargetWith(v)
	for _, u := range c.Variables() {
		requested := loadout.RequestedVariable{Kind: u.Kind, Name: u.Name, Location: u.Where, Target: u.Target}
		if u.Kind == upstream.FromPlatform && v.Platform != nil {
			requested.Target = target
			_, requested.HasValue = v.Platform(u.Name)
		}
		s.Variables = append(s.Variables, requested)
	}
	return s
}
