package migrate

import (
	"cmp"
	"maps"
	"strings"
)

// addServices adds the MCP services in a response of WeKnora's API: one, or a
// list of them.
func (r *reader) addServices(p string, doc any) {
	top, _ := doc.(map[string]any)
	if data := top["data"]; data != nil {
		doc = data
	}
	for _, one := range listOf(doc) {
		service, _ := one.(map[string]any)
		name, _ := service["name"].(string)
		if kind, _ := service["transport_type"].(string); name == "" || kind == "" {
			continue
		}
		if header := unnamedHeader(service); header != "" {
			r.plan.addLost(Server, name, p, "WeKnora does not export the value of its header %s; add the server yourself", header)
			continue
		}
		r.addServer(p, name, serviceConfig(service))
	}
}

// listOf returns v if it is a list, and otherwise a list that contains only v.
func listOf(v any) []any {
	if list, ok := v.([]any); ok {
		return list
	}
	return []any{v}
}

// unnamedHeader returns the name of the header that contains a service's API
// key, unless the name shows that the header's value is secret. In that case, it
// returns "".
func unnamedHeader(service map[string]any) string {
	auth, _ := service["auth_config"].(map[string]any)
	if kind, _ := auth["auth_type"].(string); kind != "" && kind != "api_key" {
		return "" // the header is not used
	}
	header, _ := auth["api_key_header"].(string)
	if strings.EqualFold(header, "Authorization") || strings.EqualFold(header, defaultKeyHeader) {
		return ""
	}
	return header
}

const defaultKeyHeader = "X-API-Key"

// serviceConfig converts a service to the configuration of a server. Keys that
// WeKnora does not export are replaced with a placeholder, which becomes a
// reference to a secret.
func serviceConfig(service map[string]any) map[string]any {
	out := map[string]any{"type": service["transport_type"], "url": service["url"], "env": service["env_vars"]}
	if out["type"] == "http-streamable" {
		out["type"] = "http"
	}
	if stdio, ok := service["stdio_config"].(map[string]any); ok {
		out["command"], out["args"] = stdio["command"], stdio["args"]
	}
	if on, ok := service["enabled"].(bool); ok && !on {
		out["disabled"] = true
	}
	headers := map[string]any{}
	auth, _ := service["auth_config"].(map[string]any)
	for _, from := range []any{service["headers"], auth["custom_headers"]} {
		more, _ := from.(map[string]any)
		maps.Copy(headers, more)
	}
	configured, _ := service["credentials"].(map[string]any)
	value := func(key string) string {
		if v, _ := auth[key].(string); v != "" {
			return v
		}
		if c, _ := configured[key].(map[string]any); c["configured"] == true {
			return "placeholder"
		}
		return ""
	}
	kind, _ := auth["auth_type"].(string)
	if v := value("api_key"); v != "" && (kind == "" || kind == "api_key") {
		header, _ := auth["api_key_header"].(string)
		headers[cmp.Or(header, defaultKeyHeader)] = v
	}
	if v := value("token"); v != "" && (kind == "" || kind == "bearer") {
		headers["Authorization"] = "Bearer " + v
	}
	if len(headers) > 0 {
		out["headers"] = headers
	}
	maps.DeleteFunc(out, func(_ string, v any) bool { return v == nil })
	return out
}

// connectionKeys lists the keys of an MCP connection in local-llm-provider.
var connectionKeys = map[string]bool{"name": true, "command": true, "args": true, "env": true, "workdir": true, "safety": true, "tools": true}

// addConnections adds the MCP connections in a file of local-llm-provider: a
// list, a map with a list under the key connections, or one connection. It skips
// entries that are not connections.
func (r *reader) addConnections(p string, doc any) {
	if top, ok := doc.(map[string]any); ok && top["connections"] != nil {
		doc = top["connections"]
	}
	for _, one := range listOf(doc) {
		c, _ := one.(map[string]any)
		name, _ := c["name"].(string)
		command, _ := c["command"].(string)
		known := true
		for key := range c {
			known = known && connectionKeys[key]
		}
		if name == "" || command == "" || !known {
			continue
		}
		c = maps.Clone(c)
		delete(c, "name")
		r.addServer(p, name, c)
	}
}
