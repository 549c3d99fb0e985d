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

// Describe returns the part of an approval request that describes a server. v
// provides the platform and user values on which the server's hosts may depend.
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
