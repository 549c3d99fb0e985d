package skillname

import "strings"

// ServedPrefix precedes the label of an MCP server in the origin of its skills, so
// that this origin differs from that of every other source.
const ServedPrefix = "mcp."

// IsServed reports whether a skill with the given name and origin comes from an MCP
// server: its name then contains its origin. This holds even if the server was
// removed. Such a skill is identified by its server and path, never by its files.
func IsServed(name, origin string) bool {
	return origin != "" && strings.HasPrefix(name, origin+"/")
}

// ServerLabel returns the label of the MCP server that a reference to a skill
// names, or "" if it does not begin with an origin of such skills.
func ServerLabel(ref string) string {
	rest, ok := strings.CutPrefix(ref, ServedPrefix)
	label, _, below := strings.Cut(rest, "/")
	if !ok || !below {
		return ""
	}
	return label
}
