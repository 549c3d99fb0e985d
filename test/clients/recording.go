package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// recording holds what a client shows its model about MCP servers.
type recording struct {
	Client  string `json:"client"`
	Version string `json:"version"`
	// The following fields are those of the initialize request, and the methods of
	// all requests and notifications.
	Name         string          `json:"name"`
	Protocol     string          `json:"protocol"`
	Capabilities json.RawMessage `json:"capabilities"`
	Methods      []string        `json:"methods"`
	// Instructions and Description are the numbers of characters, out of 9,600,
	// of the probe's instructions and tool description that reached the model.
	Instructions int `json:"instructions"`
	Description  int `json:"description"`
	// Result says which part of a result with text and structured content
	// reached the model: text, structured or both.
	Result string `json:"result"`
	// Unasked lists the probe's tools that the client calls with its default
	// permissions, without a user to ask: one declares that it only reads, the
	// other that it is destructive.
	Unasked []string `json:"unasked"`
	// Reads lists the directories from which the client lists skills itself, below
	// ~, the working directory (.) and its parents, of which ../.. is the root of
	// the repository; with /**, it also lists those in subdirectories.
	Reads []string `json:"reads"`
	// Shown lists the strings in requests to the model that contain Loadout's
	// list of skills.
	Shown []shownText `json:"shown"`
	// Tools lists Loadout's tools as the model sees them.
	Tools []json.RawMessage `json:"tools"`
	// Loaded is the beginning of the result of load_skill as the model sees it.
	Loaded string `json:"loaded"`
}

// shownText is a string in a request.
type shownText struct {
	Where string `json:"where"` // path of the string in the request
	Text  string `json:"text"`
}

// addMessages sets the fields that depend on the messages to a server.
func (rec *recording) addMessages(messages []byte) error {
	dec := json.NewDecoder(bytes.NewReader(messages))
	for {
		var m struct {
			Method string
			Params struct {
				ProtocolVersion string
				Capabilities    json.RawMessage
				ClientInfo      struct{ Name string }
			}
		}
		err := dec.Decode(&m)
		if errors.Is(err, io.EOF) {
			slices.Sort(rec.Methods)
			return nil
		}
		if err != nil {
			return fmt.Errorf("read messages of the client: %w", err)
		}
		if m.Method == "initialize" {
			rec.Name, rec.Protocol, rec.Capabilities = m.Params.ClientInfo.Name, m.Params.ProtocolVersion, m.Params.Capabilities
		}
		if m.Method != "" && m.Method != "notifications/cancelled" && !slices.Contains(rec.Methods, m.Method) { // it depends on the time
			rec.Methods = append(rec.Methods, m.Method)
		}
	}
}

// addProbe sets the fields that depend on the requests of the run with the
// probe.
func (rec *recording) addProbe(bodies [][]byte) error {
	parts, dirs := map[string]bool{}, map[string]bool{}
	for _, body := range bodies {
		err := eachText(body, func(_, text string) {
			rec.Instructions = max(rec.Instructions, receivedLength(probeInstructions, text))
			rec.Description = max(rec.Description, receivedLength(probeDescription, text))
			for part, marker := range map[string]string{"text": resultText, "structured": resultStructured} {
				if strings.Contains(text, marker) {
					parts[part] = true
				}
			}
			for _, dir := range skillDirs {
				for where, prefix := range map[string]string{"home": "~/", "project": "./", "parent": "../", "root": "../../", "outside": "../../../"} {
					mark := "Marks " + skillName(where, dir)
					if strings.Contains(text, mark+".") {
						dirs[prefix+dir] = true
					}
					if strings.Contains(text, mark+"-below.") {
						dirs[prefix+dir+"/**"] = true
					}
				}
			}
		})
		if err != nil {
			return err
		}
	}
	rec.Result = strings.Join(slices.Sorted(maps.Keys(parts)), " and ")
	rec.Reads = slices.Sorted(maps.Keys(dirs))
	return nil
}

// receivedLength returns the length of the longest prefix of sent, in whole
// words of the probe, that is in got.
func receivedLength(sent, got string) int {
	n := 0
	for strings.Contains(got, sent[:min(n+1, len(sent))]) && n < len(sent) {
		step := 1024
		for step > 1 && (n+step > len(sent) || !strings.Contains(got, sent[:n+step])) {
			step /= 2
		}
		n += step
	}
	return n
}

// catalogLine matches a line of the list of skills, which clients may indent.
var catalogLine = regexp.MustCompile(`(?m)^ *- ` + catalogPrefix + `.*$`)

// addLoadout sets the fields that depend on the requests of the run with
// loadout.
func (rec *recording) addLoadout(bodies [][]byte) error {
	seen := map[string]bool{}
	for _, body := range bodies {
		err := eachText(body, func(where, text string) {
			switch {
			case catalogLine.MatchString(text):
				start := max(strings.Index(text, "Skills are instructions and files"), strings.Index(text, "Load the instructions of a skill."), 0)
				list := text[start:]
				lines := catalogLine.FindAllStringIndex(list, -1)
				list = list[:lines[len(lines)-1][1]]
				if !seen[list] {
					seen[list] = true
					rec.Shown = append(rec.Shown, shownText{where, list})
				}
			case strings.Contains(text, "Skill "+catalogName(7)) && rec.Loaded == "" && !strings.HasPrefix(where, "tools"):
				at := strings.Index(text, "Skill "+catalogName(7))
				rec.Loaded = text[at:min(len(text), at+200)]
			}
		})
		if err != nil {
			return err
		}
	}
	if len(bodies) > 0 {
		rec.Tools = ownTools(bodies)
	}
	slices.SortFunc(rec.Shown, func(a, b shownText) int { return strings.Compare(a.Where, b.Where) })
	if len(rec.Shown) == 0 {
		return errors.New("model received no list of skills")
	}
	return nil
}

// ownTools returns the declarations of Loadout's tools in the first request
// that contains any.
func ownTools(bodies [][]byte) []json.RawMessage {
	for _, body := range bodies {
		var request struct{ Tools json.RawMessage }
		if json.Unmarshal(body, &request) != nil {
			continue
		}
		if tools := findTools(request.Tools); len(tools) > 0 {
			return tools
		}
	}
	return nil
}

var ownNames = []string{"search_skills", "load_skill", "read_skill_file", "run_skill_script", "find_tools", "call_tool", "read_tool"}

func findTools(tools json.RawMessage) []json.RawMessage {
	var list []json.RawMessage
	if json.Unmarshal(tools, &list) != nil {
		return nil
	}
	var own []json.RawMessage
	for _, raw := range list {
		var t struct {
			Name                 string
			Function             struct{ Name string }
			Tools                json.RawMessage
			FunctionDeclarations json.RawMessage
		}
		if json.Unmarshal(raw, &t) != nil {
			continue
		}
		if slices.ContainsFunc(ownNames, func(n string) bool {
			return strings.HasSuffix(t.Name, n) || strings.HasSuffix(t.Function.Name, n)
		}) {
			own = append(own, raw)
			continue
		}
		own = append(own, findTools(t.Tools)...)
		own = append(own, findTools(t.FunctionDeclarations)...)
	}
	return own
}

// eachText calls fn for each string in a JSON document. where is the path to the
// string, as member names separated by dots.
func eachText(body []byte, fn func(where, text string)) error {
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return err
	}
	var walk func(where string, v any)
	walk = func(where string, v any) {
		switch v := v.(type) {
		case string:
			fn(where, v)
		case []any:
			for _, e := range v {
				walk(where, e)
			}
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				walk(strings.TrimPrefix(where+"."+name, "."), v[name])
			}
		}
	}
	walk("", v)
	return nil
}

const (
	catalogSize   = 50
	catalogPrefix = "review-contracts-"
)

func catalogName(i int) string { return fmt.Sprintf("%s%02d", catalogPrefix, i) }

// writeCatalog writes 50 skills with descriptions of 240 characters.
func writeCatalog(dir string) error {
	for i := range catalogSize {
		use := fmt.Sprintf(" Use when the contract is of kind %02d.", i)
		text := strings.Repeat("Reviews contracts between services against the conventions of a team. ", 4)[:240-len(use)-1] + "." + use
		if err := writeFile(filepath.Join(dir, catalogName(i), "SKILL.md"), "---\nname: "+catalogName(i)+"\ndescription: "+text+"\n---\n# Review\n\nRead the contract first.\n"); err != nil {
			return err
		}
	}
	return nil
}
