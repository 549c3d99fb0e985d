package agents

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/plainjson"
	"github.com/loadout-dev/loadout/internal/store"
)

// FieldChange describes a changed field of a document. Old and New are truncated
// JSON; "" means that the field is absent.
type FieldChange struct {
	Path string `json:"path" doc:"For example spec.skills[0]"`
	Old  string `json:"old,omitempty" doc:"JSON, truncated if long; absent for none"`
	New  string `json:"new,omitempty"`
}

// Limits of a diff.
const (
	MaxFieldChanges = 200
	maxFieldText    = 200 // bytes per value
)

// storedDocument is the stored form of a document.
type storedDocument struct {
	Description string          `json:"description,omitempty"`
	By          string          `json:"by"`         // user who made the last change
	ServersBy   string          `json:"servers_by"` // user who last changed the document's servers
	Spec        json.RawMessage `json:"spec"`
}

// serversJSON returns the part of the document that defines servers.
func (r storedDocument) serversJSON(kind string) json.RawMessage {
	if kind == ServerKind {
		return r.Spec
	}
	var spec struct {
		MCPServers json.RawMessage `json:"mcpServers"`
	}
	if json.Unmarshal(r.Spec, &spec) != nil {
		return nil
	}
	return spec.MCPServers
}

func decodeRecord(k store.Kind) (storedDocument, error) {
	var r storedDocument
	if err := json.Unmarshal(k.Spec, &r); err != nil {
		return r, fmt.Errorf("decode %s %q: %w: %w", k.Kind, k.Name, store.ErrCorrupt, err)
	}
	return r, nil
}

// flatFields returns the field values of the document, keyed by path.
func (r storedDocument) flatFields() map[string]string {
	out := map[string]string{}
	if r.Description != "" {
		flatten(out, "description", r.Description)
	}
	d := json.NewDecoder(bytes.NewReader(r.Spec))
	d.UseNumber()
	var spec any
	if d.Decode(&spec) == nil {
		flatten(out, "spec", spec)
	}
	return out
}

// flatten adds all scalars in v to out, keyed by path. Package configfile limits
// the depth of v.
func flatten(out map[string]string, path string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			flatten(out, path+"."+shorten(key), value) // limit the path length
		}
		if len(v) == 0 {
			out[path] = "{}"
		}
	case []any:
		for i, value := range v {
			flatten(out, path+"["+strconv.Itoa(i)+"]", value)
		}
		if len(v) == 0 {
			out[path] = "[]"
		}
	default:
		text, err := plainjson.Line(v)
		if err == nil {
			out[path] = string(text)
		}
	}
}

// diffFields returns up to MaxFieldChanges changed fields, sorted by path.
func diffFields(before, after map[string]string) []FieldChange {
	var out []FieldChange
	for path, old := range before {
		if now, there := after[path]; !there || now != old {
			out = append(out, FieldChange{path, cutText(old), cutText(now)})
		}
	}
	for path, now := range after {
		if _, there := before[path]; !there {
			out = append(out, FieldChange{path, "", cutText(now)})
		}
	}
	slices.SortFunc(out, func(a, b FieldChange) int { return strings.Compare(a.Path, b.Path) })
	return out[:min(len(out), MaxFieldChanges)]
}

func cutText(s string) string {
	if len(s) <= maxFieldText {
		return s
	}
	n := maxFieldText
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// fieldPaths returns the changed paths for the audit log.
func fieldPaths(fields []FieldChange) []string {
	var out []string
	for _, f := range fields {
		out = append(out, cutText(f.Path))
	}
	return out
}
