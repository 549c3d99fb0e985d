package migrate

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
)

// resourceKinds lists the kinds of Wegent documents that a hub accepts.
var resourceKinds = map[string]bool{"Ghost": true, "Bot": true, "Team": true, "Model": true, "Skill": true, "MCPServer": true}

// isHubDocument reports whether a hub accepts documents of this kind.
func isHubDocument(doc map[string]any) bool {
	kind, _ := doc["kind"].(string)
	meta, _ := doc["metadata"].(map[string]any)
	return resourceKinds[kind] && doc["apiVersion"] != nil && meta["name"] != nil
}

// resourceLine matches the field kind of a document that a hub accepts.
var resourceLine = lazyregexp.New(`(?m)(?:^kind|"kind")\s*:\s*["']?(?:Ghost|Bot|Team|Model|Skill|MCPServer)\b`)

// namesResource reports whether a file that is invalid or too large seems to
// contain documents that a hub accepts.
func namesResource(data []byte) bool {
	if !json.Valid(data) {
		return resourceLine.Match(data)
	}
	var top struct {
		Kind string `json:"kind"`
	}
	return json.Unmarshal(data, &top) == nil && resourceKinds[top.Kind]
}

// countResource counts a document that a hub accepts.
func (r *reader) countResource(p string, doc any) {
	top, _ := doc.(map[string]any)
	if !isHubDocument(top) {
		return
	}
	kind, _ := top["kind"].(string)
	last := len(r.plan.Resources) - 1
	if last < 0 || r.plan.Resources[last].From != p {
		if len(r.plan.Resources) == maxResources {
			if r.ignored != p {
				r.plan.addLost(File, path.Base(p), p, "too many files with documents (limit %d)", maxResources)
			}
			r.ignored = p
			return
		}
		r.plan.Resources = append(r.plan.Resources, ResourceFile{From: p, kinds: map[string]int{}})
		last++
	}
	r.plan.Resources[last].kinds[kind]++
}

// ResourceFile is a file with documents that can be imported into a hub.
type ResourceFile struct {
	From  string
	kinds map[string]int // number of documents by kind
}

// String returns the number of documents by kind, such as "1 Bot, 2 Ghosts".
func (f ResourceFile) String() string {
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(f.kinds)) {
		parts = append(parts, pluralize(f.kinds[kind], kind))
	}
	return strings.Join(parts, ", ")
}

// item returns the report line for the file. On this machine, only the MCP
// servers in its documents are added.
func (f ResourceFile) item() Item {
	return Item{Kind: Resources, Name: f.From, From: f.From, Outcome: ForHub,
		Details: []string{fmt.Sprintf("%s; this machine keeps only their MCP servers", f)}}
}
