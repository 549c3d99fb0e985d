package migrate

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/clientimport"
	"github.com/loadout-dev/loadout/internal/configfile"
)

// parseConfig reads the MCP servers of a JSON or YAML file, and the documents in
// the system's own format.
func (r *reader) parseConfig(p string, data []byte) {
	servers := bytes.Contains(data, []byte("mcpServers")) || isServerFile(p)
	word, add := r.ownFormat()
	own := add != nil && bytes.Contains(data, []byte(word))
	if !servers && !own {
		return
	}
	docs, err := configfile.Parse(data, configfile.FormatOf(p, data))
	if err != nil {
		if servers || own && r.mayHaveOwnFormat(p, data) {
			r.plan.addLost(File, path.Base(p), p, "invalid file: %s; no servers or documents were read", err.Message)
		}
		return
	}
	for _, doc := range docs {
		var v any
		if json.Unmarshal(doc.JSON(), &v) != nil {
			continue
		}
		if servers {
			r.addServersOf(p, v)
		}
		if add != nil {
			add(p, v)
		}
	}
}

// ownFormat returns the function that reads documents in the system's own
// format, and a word that every file with such documents contains. The function
// is nil if the system has no format of its own.
func (r *reader) ownFormat() (word string, add func(p string, doc any)) {
	switch r.plan.System {
	case Wegent:
		return "apiVersion", r.countResource
	case WeKnora:
		return "transport_type", r.addServices
	case LocalLLMProvider:
		return "command", r.addConnections
	}
	return "", nil
}

// mayHaveOwnFormat reports whether a file probably contains documents in the system's own
// format. It is for files that contain the word from ownFormat but are invalid or too
// large.
func (r *reader) mayHaveOwnFormat(p string, data []byte) bool {
	switch r.plan.System {
	case Wegent:
		return namesResource(data)
	case LocalLLMProvider: // other files contain commands, too
		return strings.Contains(p, "connections") || bytes.Contains(data, []byte("connections"))
	}
	return true
}

// isServerFile reports whether a file with this name contains only MCP servers.
func isServerFile(p string) bool {
	switch strings.ToLower(path.Base(p)) {
	case ".mcp.json", "mcp.json":
		return true
	}
	return false
}

// addServersOf adds the servers of a document, which is a map of servers, or a
// Ghost or Bot of Wegent.
func (r *reader) addServersOf(p string, doc any) {
	top, _ := doc.(map[string]any)
	inDocument := r.plan.System == Wegent && isHubDocument(top)
	if spec, ok := top["spec"].(map[string]any); ok && top["kind"] != nil {
		top = spec
	}
	servers, ok := top["mcpServers"].(map[string]any)
	if !ok && isServerFile(p) {
		servers = top
	}
	r.addServers(p, servers, inDocument)
}

// definitionKey identifies a server by its name and its configuration.
type definitionKey struct {
	name   string
	config [sha256.Size]byte // hash of the JSON text
}

// addServers adds servers by name. It skips values that are not configurations,
// and servers that another file defines in the same way.
func (r *reader) addServers(p string, servers map[string]any, inDocument bool) {
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		value, ok := servers[name].(map[string]any)
		if !ok {
			continue
		}
		text, err := json.Marshal(value)
		if err != nil {
			r.plan.addLost(Server, name, p, "cannot encode: %v", err)
			continue
		}
		key := definitionKey{name, sha256.Sum256(text)}
		same, known := r.servers[key]
		switch {
		case bytes.Contains(text, []byte("PLUGIN_ROOT}")): // only the program that installs plugins knows the directory
			r.plan.addLost(Server, name, p, "it belongs to a plugin: its configuration refers to the directory of the plugin")
		case known:
			r.plan.Servers[same].InDocument = r.plan.Servers[same].InDocument && inDocument
		case len(r.plan.Servers) == maxServers:
			r.plan.addLost(Server, name, p, "too many servers (limit %d)", maxServers)
		default:
			r.servers[key] = len(r.plan.Servers)
			r.plan.Servers = append(r.plan.Servers, ServerDefinition{clientimport.Definition{Name: name, Value: value}, p, inDocument})
		}
	}
}

// addServer adds a single server.
func (r *reader) addServer(p string, name string, value map[string]any) {
	r.addServers(p, map[string]any{name: value}, false)
}

// parseEnv reads the MCP servers in a file of environment variables, from
// variables such as CHAT_MCP_SERVERS. It ignores all other variables.
func (r *reader) parseEnv(p string, data []byte) {
	for line := range strings.Lines(string(data)) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		name = strings.TrimSpace(strings.TrimPrefix(name, "export "))
		if !ok || !strings.HasSuffix(name, "MCP_SERVERS") || strings.HasPrefix(name, "#") {
			continue
		}
		value = strings.TrimSpace(value)
		if n := len(value); n >= 2 && (value[0] == '\'' || value[0] == '"') && value[n-1] == value[0] {
			value = value[1 : n-1]
		}
		docs, err := configfile.Parse([]byte(value), configfile.JSON)
		if err != nil || len(docs) != 1 {
			r.plan.addLost(File, path.Base(p), p, "%s is not valid JSON", name)
			continue
		}
		var v any
		if json.Unmarshal(docs[0].JSON(), &v) == nil {
			r.addServersOf(p, v)
		}
	}
}
