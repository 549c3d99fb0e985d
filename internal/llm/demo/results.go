package demo

import (
	"encoding/json"
	"strings"

	"github.com/loadout-dev/loadout/internal/plainjson"
	"github.com/loadout-dev/loadout/llm"
)

// A tool result is either text or structured content in JSON.

// hit is a skill in a search result.
type hit struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Weak        bool   `json:"weak"` // whether the skill probably does not fit
}

// skill describes a skill, as parsed from a load result.
type skill struct {
	name           string
	instructions   string
	scripts, files []string
	tools          []tool
}

type tool struct {
	name   string
	schema json.RawMessage
}

func newStep(c llm.Call) *step {
	s := &step{id: c.ID, name: c.Name}
	if json.Unmarshal([]byte(c.Arguments), &s.args) != nil {
		s.args = nil
	}
	return s
}

// asJSON encodes a value as a model would write it. The value must be decoded
// JSON or a string.
func asJSON(v any) string {
	data, err := plainjson.Line(v)
	if err != nil {
		panic(err) // cannot fail for a value from JSON or from text
	}
	return string(data)
}

// text returns the argument with the given name if it is a string, and ""
// otherwise.
func (s *step) text(name string) string {
	v, _ := s.args[name].(string)
	return v
}

func readHits(result string) []hit {
	var out struct{ Hits []hit }
	if json.Unmarshal([]byte(result), &out) == nil {
		return withName(out.Hits)
	}
	for line := range strings.Lines(result) {
		if item, ok := strings.CutPrefix(line, "- "); ok {
			name, description, _ := strings.Cut(strings.TrimSpace(item), ": ")
			description, weak := strings.CutPrefix(description, "[weak match] ")
			out.Hits = append(out.Hits, hit{name, description, weak})
		}
	}
	return withName(out.Hits)
}

func withName(hits []hit) []hit {
	var out []hit
	for _, h := range hits {
		if h.Name != "" {
			out = append(out, h)
		}
	}
	return out
}

type listedTool struct {
	Name        string          `json:"name"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

func convertTools(all []listedTool) []tool {
	var out []tool
	for _, t := range all {
		if t.Name != "" {
			out = append(out, tool{t.Name, t.InputSchema})
		}
	}
	return out
}

func readTools(result string) []tool {
	var out struct{ Tools []listedTool }
	if json.Unmarshal([]byte(result), &out) == nil {
		return convertTools(out.Tools)
	}
	var all []tool
	for line := range strings.Lines(result) {
		line = strings.TrimRight(line, "\r\n")
		if item, ok := strings.CutPrefix(line, "- "); ok {
			name, _, _ := strings.Cut(item, ": ")
			if name != "" && !strings.ContainsAny(name, " \t") {
				all = append(all, tool{name: name})
			}
		} else if schema, ok := strings.CutPrefix(line, "  arguments: "); ok && len(all) > 0 && json.Valid([]byte(schema)) {
			all[len(all)-1].schema = json.RawMessage(schema)
		}
	}
	return all
}

// readLoad returns the skills in a load result: the skills that the loaded
// skill depends on, and then the loaded skill.
func readLoad(result, name string) []*skill {
	var told struct {
		Name         string
		Instructions string
		Files        []struct {
			Path   string
			Script bool
		}
		Tools []listedTool
	}
	if json.Unmarshal([]byte(result), &told) != nil {
		return readLoadText(result, name)
	}
	if told.Name == "" {
		told.Name = name
	}
	k := &skill{name: told.Name, instructions: told.Instructions, tools: convertTools(told.Tools)}
	for _, f := range told.Files {
		if f.Script {
			k.scripts = append(k.scripts, f.Path)
		} else {
			k.files = append(k.files, f.Path)
		}
	}
	if k.name == "" {
		return nil
	}
	return []*skill{k}
}

func readLoadText(result, name string) []*skill {
	if name == "" {
		return nil
	}
	k := &skill{name: name}
	all := []*skill{k}
	tools := -1 // start of the list of tools, which lists the tools of all skills
	for line := range strings.Lines(result) {
		line = strings.TrimRight(line, "\r\n")
		if which, ok := loadedName(line); ok {
			if k = findOrAdd(all, which); k == nil {
				k = &skill{name: which}
				all = append([]*skill{k}, all...)
			}
		} else if list, ok := parseList(line, "Scripts of this skill"); ok {
			k.scripts = append(k.scripts, list...)
		} else if list, ok := parseList(line, "Files of this skill"); ok {
			k.files = append(k.files, list...)
		} else if strings.HasPrefix(line, "Tools of this skill") && strings.HasSuffix(line, ":") {
			tools = strings.Index(result, line)
		} else if isAlreadyLoaded(line, name) {
			continue // an earlier result contains the instructions
		} else if tools < 0 && line != "" && len(k.instructions) < maxInstructions {
			k.instructions += line + "\n"
		}
	}
	if tools >= 0 {
		all[len(all)-1].tools = readTools(result[tools:])
	}
	return all
}

// loadedName returns the name in a line such as "Skill NAME (from ORIGIN) is
// loaded …", and whether the line has this form.
func loadedName(line string) (string, bool) {
	rest, ok := strings.CutPrefix(line, "Skill ")
	if !ok {
		return "", false
	}
	name, rest, ok := strings.Cut(rest, " (from ")
	return name, ok && name != "" && strings.Contains(rest, ") is loaded")
}

// isAlreadyLoaded reports whether a line says that the named skill was already
// loaded.
func isAlreadyLoaded(line, name string) bool {
	rest, ok := strings.CutPrefix(line, "Skill "+name+" is ")
	return ok && (strings.HasPrefix(rest, "already loaded and unchanged;") || strings.HasPrefix(rest, "loaded again and unchanged;"))
}

// readInstructions returns the available skills, which the instructions list
// one per line before the MCP servers, and the loaded skills.
func readInstructions(text string) (available []hit, loaded []*skill) {
	skills, _, _ := strings.Cut(text, "\nMCP servers (")
	for _, h := range readHits(skills) {
		if !strings.ContainsAny(h.Name, " \t") && h.Description != "" {
			available = append(available, h)
		}
	}
	return available, parseLoadedSkills(text)
}

// parseLoadedSkills returns the skills that text describes as loaded.
func parseLoadedSkills(text string) []*skill {
	const before = "\n" // not a valid skill name: stands for the text before the first skill
	var out []*skill
	for _, k := range readLoadText(text, before) {
		if k.name != before {
			out = append(out, k)
		}
	}
	return out
}

func findOrAdd(all []*skill, name string) *skill {
	for _, k := range all {
		if k.name == name {
			return k
		}
	}
	return nil
}

// parseList returns the items in a line such as "WHAT (in PLACE): a, b", and
// whether the line has this form.
func parseList(line, what string) ([]string, bool) {
	rest, ok := strings.CutPrefix(line, what)
	if !ok {
		return nil, false
	}
	_, list, ok := strings.Cut(rest, ": ")
	if !ok {
		return nil, false
	}
	return strings.Split(list, ", "), true
}

// outputText returns the part of a result that the user should see.
func outputText(result string) string {
	var ran struct{ Stdout, Stderr *string }
	if json.Unmarshal([]byte(result), &ran) == nil && ran.Stdout != nil {
		result = *ran.Stdout
		if ran.Stderr != nil {
			result += *ran.Stderr
		}
	}
	return strings.TrimSpace(result)
}
