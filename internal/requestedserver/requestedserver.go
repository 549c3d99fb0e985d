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

// Describe returns what the user is asked to approve for a server.
func Describe(c *upstream.Config) loadout.RequestedService {
	s := loadout.RequestedService{Name: c.Name, Env: slices.Sorted(maps.Keys(c.Env))}
	if c.Command != "" {
		s.Command = append([]string{c.Command}, c.Args...)
	}
	for _, u := range c.URLs {
		if h := (&upstream.Config{URLs: []string{u}}).Target(); !slices.Contains(s.Hosts, h) {
			s.Hosts = append(s.Hosts, h)
		}
	}
	for _, u := range c.Variables() {
		s.Variables = append(s.Variables, loadout.RequestedVariable{Kind: u.Kind, Name: u.Name, Location: u.Where, Target: u.Target})
	}
	return s
}
