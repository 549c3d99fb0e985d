package skilldiff

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
	"github.com/loadout-dev/loadout/internal/skillfile"
)

// maxServers is the maximum number of servers that are compared per skill.
const maxServers = 256

// addServers adds a skill's MCP servers and the variables in their
// configurations. It uses a simple parser that is sufficient to detect changes;
// approvals use the full parser.
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
		// Parts of the configuration that are not displayed count too.
		w.add(Server, n, target+" (configuration "+skillfile.Hash([]byte(canonicalJSON(all[n])))[:12]+")")
		for _, v := range variables(all[n]) {
			w.add(Variable, v+" to the server "+n, target)
		}
	}
}

// serverTarget returns a server's command, or its URLs without passwords and
// queries.
func serverTarget(config json.RawMessage) string {
	fields, _ := decodeObject(config)
	var command, arguments, addresses []string
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		switch strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(key)) {
		case "command", "cmd":
			command = append(command, decodeStrings(fields[key])...)
		case "args", "arguments":
			arguments = append(arguments, decodeStrings(fields[key])...)
		case "url", "urls", "httpurl", "serverurl":
			for _, u := range decodeStrings(fields[key]) {
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

// cleanURL returns a URL without the parts that may contain secrets.
func cleanURL(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" {
		return "invalid address"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// variableUse matches a variable reference in a configuration.
var variableUse = lazyregexp.New(`\$\{\{\s*([A-Za-z0-9_.-]{1,128})\s*\}\}|\$\{([A-Za-z0-9_.:/-]{1,128}?)(?::-[^}]*)?\}`)

// variables returns the sorted names of the variables in a configuration.
func variables(config json.RawMessage) []string {
	var out []string
	for _, m := range variableUse.FindAllStringSubmatch(canonicalJSON(config), -1) {
		out = append(out, m[1]+m[2])
	}
	slices.Sort(out)
	return slices.Compact(out)
}
