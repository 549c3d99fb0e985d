package skilldiff

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/loadout-dev/loadout/internal/plainjson"
	"github.com/loadout-dev/loadout/skill"
)

// FieldChange is a frontmatter field that differs. A missing field is "". Lists
// are joined with commas, and maps are JSON. Values are on one line, truncated
// to [MaxValueBytes], and safe to print on a terminal.
type FieldChange struct {
	Name string `json:"name"` // as in a SKILL.md
	Old  string `json:"old"`
	New  string `json:"new"`
}

// field is a frontmatter field, normalized for comparison.
type field struct{ name, value string }

// knownFields returns the skill fields that programs interpret.
func knownFields(s *skill.Skill) []field {
	return []field{
		{"name", s.Name},
		{"description", s.Description},
		{"version", s.Version},
		{"license", s.License},
		{"compatibility", s.Compatibility},
		{"allowed-tools", strings.Join(s.AllowedTools, ", ")},
		{"displayName", s.DisplayName},
		{"author", s.Author},
		{"category", s.Category},
		{"tags", strings.Join(s.Tags, ", ")},
		{"bindShells", strings.Join(s.BindShells, ", ")},
		{"dependencies", strings.Join(s.Dependencies, ", ")},
		{"model", s.Model},
		{"argument-hint", s.ArgumentHint},
		{"when_to_use", s.WhenToUse},
		{"preload", boolText(s.Preload, false)},
		{"requirements", strings.Join(s.Requirements, ", ")},
		{"examples", strings.Join(s.Examples, ", ")},
		{"disable-model-invocation", boolText(s.DisableModelInvocation, false)},
		{"user-invocable", boolText(s.UserInvocable, true)},
		{"tools", jsonText(s.Tools)},
		{"provider", jsonText(s.Provider)},
		{"mcpServers", serversText(s)},
		{"config", jsonText(s.Config)},
	}
}

// boolText formats a boolean. It returns "" if b equals fallback, which is the
// value of a missing field.
func boolText(b, fallback bool) string {
	if b == fallback {
		return ""
	}
	return strconv.FormatBool(b)
}

func serversText(s *skill.Skill) string {
	if s.MCPServers.Configs != nil {
		return jsonText(s.MCPServers.Configs)
	}
	return strings.Join(s.MCPServers.Names, ", ")
}

// jsonText formats a value as JSON with sorted keys. It returns "" for null.
func jsonText(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	if text := canonicalJSON(data); text != "null" {
		return text
	}
	return ""
}

// canonicalJSON returns JSON without white space and with sorted keys, so that
// the order of keys does not matter.
func canonicalJSON(raw json.RawMessage) string {
	text, err := plainjson.Canonical(raw)
	if err != nil {
		return string(raw)
	}
	return string(text)
}

// compareFields returns the frontmatter fields that differ between two
// versions.
func compareFields(old, new *versionFiles) []FieldChange {
	var out []FieldChange
	add := func(name, a, b string) {
		if a != b {
			out = append(out, FieldChange{escapeText(name, MaxValueBytes), escapeText(a, MaxValueBytes), escapeText(b, MaxValueBytes)})
		}
	}
	before, after := knownFields(old.skill), knownFields(new.skill)
	known := map[string]bool{}
	for i, f := range before {
		known[f.name] = true
		add(f.name, f.value, after[i].value)
	}
	a, b := otherFields(old.skill, known), otherFields(new.skill, known)
	names := maps.Clone(a)
	maps.Copy(names, b)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		add(name, a[name], b[name])
	}
	return out
}

// otherFields returns the frontmatter fields that are not in known. Fields of
// metadata have the prefix "metadata.". For a repaired frontmatter it returns
// no fields; its lines are compared instead.
func otherFields(s *skill.Skill, known map[string]bool) map[string]string {
	top := frontmatter(s)
	meta, isMap := decodeObject(top["metadata"])
	out := map[string]string{}
	put := func(prefix, name string, raw json.RawMessage) {
		var text string
		if known[name] {
			return
		}
		if json.Unmarshal(raw, &text) != nil {
			text = jsonText(raw)
		}
		out[prefix+name] = text
	}
	for name, raw := range top {
		if name != "metadata" || !isMap {
			put("", name, raw)
		}
	}
	for name, raw := range meta {
		put("metadata.", name, raw)
	}
	return out
}

// frontmatter returns the frontmatter as a map. It returns nil if the
// frontmatter had to be repaired.
func frontmatter(s *skill.Skill) map[string]json.RawMessage {
	raw, err := s.FrontmatterJSON()
	if err != nil {
		return nil
	}
	m, _ := decodeObject(raw)
	return m
}

func decodeObject(raw json.RawMessage) (map[string]json.RawMessage, bool) {
	var m map[string]json.RawMessage
	err := json.Unmarshal(raw, &m)
	return m, err == nil && m != nil
}
