package skillname

import "strings"

// IsServed reports whether a skill with the given name and origin comes from an MCP
// server: its name then contains its origin. This holds even if the server was
// removed. Such a skill is identified by its server and path, never by its files.
func IsServed(name, origin string) bool {
	return origin != "" && strings.HasPrefix(name, origin+"/")
}
