package skilldiff

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/pattern"
	"github.com/loadout-dev/loadout/skill"
)

// maxServers bounds the servers of one skill that are looked at.
const maxServers = 256

// servers adds the MCP servers of a skill, and the variables in what it says of
// them. An approval reads them by the parser by which they are started; this is
// enough to see that they are others.
func (c *comparison) servers(s *side, w *wishes, name string) {
	if s.skill.MCPServers.Configs == nil {
		for _, n := range s.skill.MCPServers.Names {
			w.add(Server, n, "of the host")
		}
		return
	}
	all, _ := object(s.skill.MCPServers.Configs)
	names := slices.Sorted(maps.Keys(all))
	if len(names) > maxServers {
		c.problem("%s: it has %d MCP servers, of which %d are looked at", name, len(names), maxServers)
		names = names[:maxServers]
	}
	for _, n := range names {
		target := target(all[n])
		// What is not shown of a server counts nevertheless.
		w.add(Server, n, target+" (configuration "+skill.Hash([]byte(canonical(all[n])))[:12]+")")
		for _, v := range variables(all[n]) {
			w.add(Variable, v+" to the server "+n, target)
		}
	}
}

// target is what a server starts, or where it is: the command, or the addresses
// without passwords and queries.
func target(config json.RawMessage) string {
	fields, _ := object(config)
	var command, arguments, addresses []string
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		switch strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(key)) {
		case "command", "cmd":
			command = append(command, textsOf(fields[key])...)
		case "args", "arguments":
			arguments = append(arguments, textsOf(fields[key])...)
		case "url", "urls", "httpurl", "serverurl":
			for _, u := range textsOf(fields[key]) {
				addresses = append(addresses, address(u))
			}
		}
	}
	switch {
	case len(command) > 0:
		return quoted(append(command, arguments...))
	case len(addresses) > 0:
		return strings.Join(addresses, ", ")
	}
	return "what cannot be told"
}

// address is a URL without what may be secret.
func address(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" {
		return "an address that cannot be read"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// variable is a use of a value that is not in the configuration.
var variable = pattern.New(`\$\{\{\s*([A-Za-z0-9_.-]{1,128})\s*\}\}|\$\{([A-Za-z0-9_.:/-]{1,128}?)(?::-[^}]*)?\}`)

// variables are the names of those in a configuration, each once, sorted.
func variables(config json.RawMessage) []string {
	var out []string
	for _, m := range variable().FindAllStringSubmatch(canonical(config), -1) {
		out = append(out, m[1]+m[2])
	}
	slices.Sort(out)
	return slices.Compact(out)
}
