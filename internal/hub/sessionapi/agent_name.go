package sessionapi

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loadout-dev/loadout/internal/hub/agents"
)

// agentName identifies the agent of a conversation.
type agentName struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`

	wrong bool // whether the name is malformed
}

var agentKinds = []string{agents.GhostKind, agents.BotKind, agents.TeamKind}

// UnmarshalJSON accepts Bot/NAMESPACE/NAME, Bot/NAME, or an object. Malformed names
// are reported by [agentName.Resolve].
func (a *agentName) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		parts := strings.Split(text, "/")
		switch {
		case text == "":
			return nil
		case len(parts) == 2:
			*a = agentName{Kind: parts[0], Name: parts[1]}
		case len(parts) == 3:
			*a = agentName{Kind: parts[0], Namespace: parts[1], Name: parts[2]}
			a.wrong = a.Namespace == ""
		default:
			a.wrong = true
		}
	} else {
		type parts agentName // without this method
		d := json.NewDecoder(bytes.NewReader(data))
		d.DisallowUnknownFields()
		a.wrong = d.Decode((*parts)(a)) != nil
	}
	const most = 200
	a.wrong = a.wrong || !slices.Contains(agentKinds, a.Kind) || a.Name == "" || len(a.Name) > most || len(a.Namespace) > most
	return nil
}

// Resolve implements [huma.ResolverWithPath].
func (a *agentName) Resolve(_ huma.Context, at *huma.PathBuffer) []error {
	if !a.wrong {
		return nil
	}
	return []error{&huma.ErrorDetail{Location: at.String(), Message: "not an agent: write Bot/NAMESPACE/NAME, with Ghost, Bot or Team, or {kind, namespace, name}"}}
}

// Schema implements [huma.SchemaProvider]. The schema is for documentation only:
// validating oneOf would not produce a useful message.
func (agentName) Schema(huma.Registry) *huma.Schema {
	bound := func(n int) *int { return &n }
	var all []any
	for _, kind := range agentKinds {
		all = append(all, kind)
	}
	text := &huma.Schema{Type: huma.TypeString, MaxLength: bound(600), Pattern: "^((" + strings.Join(agentKinds, "|") + ")/([^/]+/)?[^/]+)?$"}
	parts := &huma.Schema{Type: huma.TypeObject, AdditionalProperties: false, Required: []string{"kind", "name"}, Properties: map[string]*huma.Schema{
		"kind":      {Type: huma.TypeString, Enum: all},
		"namespace": {Type: huma.TypeString, MaxLength: bound(200)},
		"name":      {Type: huma.TypeString, MinLength: bound(1), MaxLength: bound(200)},
	}}
	return &huma.Schema{Extensions: map[string]any{"oneOf": []*huma.Schema{text, parts}}}
}
