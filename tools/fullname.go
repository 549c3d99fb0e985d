package tools

import "slices"

// FullNames returns the full names of the known tools that a model may mean by
// name: the tool with exactly this full name, or else the tools for which
// clients or rules use this name, or else the tools with this name on their
// servers. It does not connect.
func (s *Set) FullNames(name string) []string {
	var exact, prefixed, bare []string
	for _, sv := range s.allServers() {
		for _, t := range s.knownTools(sv) {
			switch {
			case t.Name == name:
				exact = append(exact, t.Name)
			case slices.Contains(clientNames(t.Server, t.Definition.Name, t.Name), name):
				prefixed = append(prefixed, t.Name)
			case t.Definition.Name == name:
				bare = append(bare, t.Name)
			}
		}
	}
	for _, found := range [][]string{exact, prefixed, bare} {
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

// clientNames returns other spellings of a tool's name that clients and rules
// use. Some have the name of this program as a server prefix. joined is the
// full name of the tool.
func clientNames(server, tool, joined string) []string {
	out := []string{server + "." + tool, "mcp." + server + "." + tool, server + "/" + tool, server + ":" + tool, server + "_" + tool}
	for _, sep := range []string{"__", "_", ".", "/", ":"} {
		out = append(out, "mcp"+sep+joined, "loadout"+sep+joined, "mcp"+sep+"loadout"+sep+joined)
	}
	return out
}
