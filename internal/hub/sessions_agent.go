package hub

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loadout-dev/loadout/internal/hub/kinds"
)

// agentName says who is spoken to in a conversation.
type agentName struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

var agentKinds = []string{kinds.GhostKind, kinds.BotKind, kinds.TeamKind}

// UnmarshalJSON reads a name as one text, as Bot/NAMESPACE/NAME or Bot/NAME, or in parts.
func (a *agentName) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) != nil {
		type parts agentName // without this method
		return json.Unmarshal(data, (*parts)(a))
	}
	if text == "" {
		return nil
	}
	parts := strings.Split(text, "/")
	switch len(parts) {
	case 2:
		*a = agentName{Kind: parts[0], Name: parts[1]}
	case 3:
		*a = agentName{parts[0], parts[1], parts[2]}
	}
	if !slices.Contains(agentKinds, a.Kind) || a.Name == "" {
		return fmt.Errorf("%.100q is no agent, as Bot/NAMESPACE/NAME", text)
	}
	return nil
}

// Schema implements [huma.SchemaProvider].
func (agentName) Schema(huma.Registry) *huma.Schema {
	bound := func(n int) *int { return &n }
	var all []any
	for _, kind := range agentKinds {
		all = append(all, kind)
	}
	text := &huma.Schema{Type: huma.TypeString, MaxLength: bound(400), Pattern: "^((" + strings.Join(agentKinds, "|") + ")/([^/]+/)?[^/]+)?$"}
	parts := &huma.Schema{Type: huma.TypeObject, AdditionalProperties: false, Required: []string{"kind", "name"}, Properties: map[string]*huma.Schema{
		"kind":      {Type: huma.TypeString, Enum: all},
		"namespace": {Type: huma.TypeString, MaxLength: bound(200)},
		"name":      {Type: huma.TypeString, MinLength: bound(1), MaxLength: bound(200)},
	}}
	for _, s := range parts.Properties {
		s.PrecomputeMessages()
	}
	text.PrecomputeMessages()
	parts.PrecomputeMessages()
	return &huma.Schema{OneOf: []*huma.Schema{text, parts}}
}
