package skilldiff

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/loadout-dev/loadout/skill"
)

// FieldChange is something that a skill says of itself, in two versions: "" where
// one does not say it. Lists are joined with commas, maps are JSON. Values are on
// one line, cut at [MaxValueBytes], and safe for a terminal.
type FieldChange struct {
	Name string `json:"name"` // as in a SKILL.md
	Old  string `json:"old"`
	New  string `json:"new"`
}

// field is one field of a skill, as it is compared and shown.
type field struct{ name, value string }

// stated are the fields of a skill that programs act on.
func stated(s *skill.Skill) []field {
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
		{"preload", truth(s.Preload, false)},
		{"disable-model-invocation", truth(s.DisableModelInvocation, false)},
		{"user-invocable", truth(s.UserInvocable, true)},
		{"tools", jsonText(s.Tools)},
		{"provider", jsonText(s.Provider)},
		{"mcpServers", servers(s)},
		{"config", jsonText(s.Config)},
	}
}

// truth is "" for what a skill that says nothing has.
func truth(b, otherwise bool) string {
	if b == otherwise {
		return ""
	}
	return strconv.FormatBool(b)
}

func servers(s *skill.Skill) string {
	if s.MCPServers.Configs != nil {
		return jsonText(s.MCPServers.Configs)
	}
	return strings.Join(s.MCPServers.Names, ", ")
}

// jsonText is a value as JSON with sorted keys, "" for nothing.
func jsonText(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	if text := canonical(data); text != "null" {
		return text
	}
	return ""
}

// canonical is JSON without blanks and with sorted keys, so that the order in
// which they were written does not count.
func canonical(raw json.RawMessage) string {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber() // 1.10 is not 1.1
	var v any
	if d.Decode(&v) != nil {
		return string(raw)
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return string(raw)
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// fields are those in which two versions differ.
func fields(old, new *side) []FieldChange {
	var out []FieldChange
	add := func(name, a, b string) {
		if a != b {
			out = append(out, FieldChange{visible(name, MaxValueBytes), visible(a, MaxValueBytes), visible(b, MaxValueBytes)})
		}
	}
	before, after := stated(old.skill), stated(new.skill)
	known := map[string]bool{}
	for i, f := range before {
		known[f.name] = true
		add(f.name, f.value, after[i].value)
	}
	a, b := others(old.skill, known), others(new.skill, known)
	names := maps.Clone(a)
	maps.Copy(names, b)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		add(name, a[name], b[name])
	}
	return out
}

// others are the fields of the frontmatter that are not known, and of metadata
// those that are not, with a dot between. A frontmatter that was repaired has
// none that can be told apart; its lines are compared nevertheless.
func others(s *skill.Skill, known map[string]bool) map[string]string {
	top := frontmatter(s)
	meta, isMap := object(top["metadata"])
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

// frontmatter is the frontmatter as a map, nil where it has no verbatim form.
func frontmatter(s *skill.Skill) map[string]json.RawMessage {
	raw, err := s.FrontmatterJSON()
	if err != nil {
		return nil
	}
	m, _ := object(raw)
	return m
}

func object(raw json.RawMessage) (map[string]json.RawMessage, bool) {
	var m map[string]json.RawMessage
	err := json.Unmarshal(raw, &m)
	return m, err == nil && m != nil
}
