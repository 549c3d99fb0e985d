package hub

import (
	"bytes"
	"encoding/json"
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

	wrong bool // it was written as no agent is
}

var agentKinds = []string{kinds.GhostKind, kinds.BotKind, kinds.TeamKind}

// UnmarshalJSON reads a name as one text, as Bot/NAMESPACE/NAME or Bot/NAME, or in parts.
// What is none of them is told by [agentName.Resolve].
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
	return []error{&huma.ErrorDetail{Location: at.String(), Message: "it is no agent: write it as Bot/NAMESPACE/NAME, with Ghost, Bot or Team, or as {kind, namespace, name}"}}
}

// Schema implements [huma.SchemaProvider]. It is told and not checked: what does not fit
// one of two schemas is refused without a word about either.
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
