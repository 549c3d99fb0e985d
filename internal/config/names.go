package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// NamedModel is a model with a short name defined by the user.
type NamedModel struct {
	Model string `json:"model"` // vendor:name
	// BaseURL is the URL of the model server. Key is the name of the secret or
	// variable that holds the API key. If empty, they default to the vendor's.
	BaseURL string `json:"base_url,omitempty"`
	Key     string `json:"key,omitempty"`
}

// decodeNames decodes a map of short names to models. A model is a string, or a
// map with a server and a key.
func decodeNames(v *map[string]NamedModel, n *yaml.Node) error {
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		*v = nil
		return nil
	case n.Kind != yaml.MappingNode:
		return errors.New("expected a map of names to models")
	case len(n.Content) > 2*maxPrices:
		return fmt.Errorf("too many names (limit %d)", maxPrices)
	}
	out := map[string]NamedModel{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		name := key.Value
		if key.Kind != yaml.ScalarNode || name == "" || strings.ContainsAny(name, ": \t") {
			return fmt.Errorf("invalid short name %s: colons and spaces are not allowed", quoteValue(name))
		}
		if _, twice := out[name]; twice {
			return fmt.Errorf("duplicate name %s", quoteValue(name))
		}
		m, err := decodeNamed(value)
		if err != nil {
			return fmt.Errorf("%s: %w", quoteValue(name), err)
		}
		out[name] = m
	}
	*v = out
	return nil
}

func decodeNamed(n *yaml.Node) (NamedModel, error) {
	m := NamedModel{Model: n.Value}
	if n.Kind == yaml.MappingNode {
		m = NamedModel{}
		fields := map[string]*string{"model": &m.Model, "base_url": &m.BaseURL, "key": &m.Key}
		var seen []string
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			field := fields[key.Value]
			switch {
			case field == nil:
				return NamedModel{}, fmt.Errorf("unknown key %s; expected model, base_url and key", quoteValue(key.Value))
			case slices.Contains(seen, key.Value):
				return NamedModel{}, fmt.Errorf("duplicate key %s", key.Value)
			case value.Kind != yaml.ScalarNode:
				return NamedModel{}, fmt.Errorf("%s: expected a string", key.Value)
			}
			seen, *field = append(seen, key.Value), value.Value
		}
	} else if n.Kind != yaml.ScalarNode {
		return NamedModel{}, errors.New("expected a model such as anthropic:NAME, or a map with model, base_url and key")
	}
	if vendor, name, _ := strings.Cut(m.Model, ":"); vendor == "" || name == "" {
		return NamedModel{}, fmt.Errorf("invalid model %s: expected anthropic:NAME or openai:NAME", quoteValue(m.Model))
	}
	if err := checkWebAddress(&m.BaseURL); err != nil {
		return NamedModel{}, fmt.Errorf("base_url: %w", err)
	}
	return m, nil
}

// parseNames parses the value of an environment variable as YAML or JSON.
func parseNames(v *map[string]NamedModel, text string) error {
	var doc yaml.Node
	if err := yaml.Load([]byte(text), &doc); err != nil || len(doc.Content) == 0 {
		return errors.New(`expected {"small": "anthropic:NAME"}`)
	}
	return decodeNames(v, doc.Content[0])
}

// formatNames formats short names for a configuration file.
func formatNames(v map[string]NamedModel) string {
	b, err := json.Marshal(v)
	if err != nil || len(v) == 0 {
		return "{}"
	}
	return string(b)
}
