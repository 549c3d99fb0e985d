package clientimport

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/clientconfig"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/skill"
)

// parseClientServer parses one server in a client's file. The diagnostics
// concern only this server.
func parseClientServer(client, name string, value, inputs any) (*upstream.Config, []upstream.Input, []skill.Diagnostic) {
	doc := map[string]any{"mcpServers": map[string]any{name: value}}
	if inputs != nil {
		doc["inputs"] = inputs
	}
	data, err := json.Marshal(doc)
	if err != nil {
		return nil, nil, []skill.Diagnostic{{Severity: skill.Error, Message: "value is not a string, number or list"}}
	}
	file := map[string]string{"gemini": ".gemini/settings.json", "claude-code": ".claude.json", "claude-desktop": "claude_desktop_config.json"}[client]
	if file == "" {
		file = "mcp.json"
	}
	f, findings := upstream.Parse(data, upstream.ParseOptions{Name: file})
	if len(f.Servers) != 1 || f.Servers[0].Name != name {
		return nil, nil, findings
	}
	c := *f.Servers[0]
	c.File, c.Line = "", 0
	return &c, f.Inputs, findings
}

// mayNeedLogin reports whether the user may have to sign in to a remote server:
// it has an OAuth client or no configured credentials. The client's own sign-in
// is not imported.
func mayNeedLogin(c *upstream.Config) bool {
	return len(c.URLs) > 0 && !slices.ContainsFunc(slices.Collect(maps.Keys(c.Headers)), secretKey.MatchString) &&
		(c.OAuth != nil || !slices.ContainsFunc(c.URLs, func(u string) bool {
			return strings.Contains(u, "@") || strings.Contains(u, "${") || strings.HasPrefix(u, "http://127.") || strings.HasPrefix(u, "http://localhost")
		}))
}

// isOwnEntry reports whether an entry runs Loadout itself, judging by its name
// or by the command "loadout mcp", possibly run by a wrapper. If it were
// imported, Loadout would start itself.
func isOwnEntry(name string, value any) bool {
	m, _ := value.(map[string]any)
	var words []string
	for _, key := range []string{"command", "args"} {
		switch v := m[key].(type) {
		case string:
			words = append(words, v)
			words = append(words, strings.Fields(v)...)
		case []any:
			for _, w := range v {
				if s, ok := w.(string); ok {
					words = append(words, s)
					words = append(words, strings.Fields(s)...)
				}
			}
		}
	}
	i := slices.IndexFunc(words, func(w string) bool {
		base := w[strings.LastIndexAny(w, `/\`)+1:]
		return strings.TrimSuffix(strings.ToLower(base), ".exe") == "loadout"
	})
	return name == clientconfig.DefaultName || i >= 0 && slices.Contains(words[i+1:], "mcp")
}
