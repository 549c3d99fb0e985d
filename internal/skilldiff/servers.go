package skilldiff

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
	"github.com/loadout-dev/loadout/skill"
)

// maxServers is the maximum number of servers of one skill to compare.
const maxServers = 256

// serversText adds the MCP serversText of a skill and the variables in their
// configurations. Approvals use the full parser. This one is sufficient to
// detect changes.
func (c *comparison) addServers(s *versionFiles, w *requests, name string) {
	if s.skill.MCPServers.Configs == nil {
		for _, n := range s.skill.MCPServers.Names {
			w.add(Server, n, "of the host")
		}
		return
	}
	all, _ := decodeObject(s.skill.MCPServers.Configs)
	names := slices.Sorted(maps.Keys(all))
	if len(names) > maxServers {
		c.addProblem("%s: %d MCP servers, only %d are compared", name, len(names), maxServers)
		names = names[:maxServers]
	}
	for _, n := range names {
		target := serverTarget(all[n])
		// Hidden parts of the configuration count too.
		w.add(Server, n, target+" (configuration "+skill.Hash([]byte(canonicalJSON(all[n])))[:12]+")")
		for _, v := range variables(all[n]) {
			w.add(Variable, v+" to the server "+n, target)
		}
	}
}

// serverTarget returns the command of a server, or its addresses without passwords
// and queries.
func serverTarget(config json.RawMessage) string {
	fields, _ := decodeObject(config)
	var command, arguments, addresses []string
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		switch strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(key)) {
		case "command", "cmd":
			command = append(command, textsOf(fields[key])...)
		case "args", "arguments":
			arguments = append(arguments, textsOf(fields[key])...)
		case "url", "urls", "httpurl", "serverurl":
			for _, u := range textsOf(fields[key]) {
				addresses = append(addresses, cleanURL(u))
			}
		}
	}
	switch {
	case len(command) > 0:
		return quoteCommand(append(command, arguments...))
	case len(addresses) > 0:
		return strings.Join(addresses, ", ")
	}
	return "unknown target"
}

// cleanURL returns a URL without parts that may be secret.
func cleanURL(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" {
		return "invalid address"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// variableUse matches the use of a value that is not in the configuration.
var variableUse = lazyregexp.New(`\$\{\{\s*([A-Za-z0-9_.-]{1,128})\s*\}\}|\$\{([A-Za-z0-9_.:/-]{1,128}?)(?::-[^}]*)?\}`)

// variables returns the names of the variables in a configuration, sorted and
// without duplicates.
func variables(config json.RawMessage) []string {
	var out []string
	for _, m := range variableUse().FindAllStringSubmatch(canonicalJSON(config), -1) {
		out = append(out, m[1]+m[2])
	}
	slices.Sort(out)
	return slices.Compact(out)
}
