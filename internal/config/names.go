package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Named is a model that has a short name.
type Named struct {
	Model string `json:"model"` // as vendor:name
	// BaseURL is the address of its server and Key the name of the secret or variable
	// with the key for that; "" is those of the vendor.
	BaseURL string `json:"base_url,omitempty"`
	Key     string `json:"key,omitempty"`
}

// decodeNames reads short names, each with a model: as text, or with a server and its
// key.
func decodeNames(v *map[string]Named, n *yaml.Node) error {
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		*v = nil
		return nil
	case n.Kind != yaml.MappingNode:
		return errors.New("expected names, each with its model")
	case len(n.Content) > 2*maxPrices:
		return fmt.Errorf("more than %d names", maxPrices)
	}
	out := map[string]Named{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		name := key.Value
		if key.Kind != yaml.ScalarNode || name == "" || strings.ContainsAny(name, ": \t") {
			return fmt.Errorf("%s is no short name: it has no colon and no blanks", shown(name))
		}
		if _, twice := out[name]; twice {
			return fmt.Errorf("%s is given twice", shown(name))
		}
		m, err := decodeNamed(value)
		if err != nil {
			return fmt.Errorf("%s: %w", shown(name), err)
		}
		out[name] = m
	}
	*v = out
	return nil
}

func decodeNamed(n *yaml.Node) (Named, error) {
	m := Named{Model: n.Value}
	if n.Kind == yaml.MappingNode {
		m = Named{}
		fields := map[string]*string{"model": &m.Model, "base_url": &m.BaseURL, "key": &m.Key}
		var seen []string
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			field := fields[key.Value]
			switch {
			case field == nil:
				return Named{}, fmt.Errorf("there is no %s; there are model, base_url and key", shown(key.Value))
			case slices.Contains(seen, key.Value):
				return Named{}, fmt.Errorf("%s is given twice", key.Value)
			case value.Kind != yaml.ScalarNode:
				return Named{}, fmt.Errorf("%s: expected text", key.Value)
			}
			seen, *field = append(seen, key.Value), value.Value
		}
	} else if n.Kind != yaml.ScalarNode {
		return Named{}, errors.New("expected a model, as anthropic:NAME, or model, base_url and key")
	}
	if vendor, name, _ := strings.Cut(m.Model, ":"); vendor == "" || name == "" {
		return Named{}, fmt.Errorf("%s is no model, as anthropic:NAME or openai:NAME", shown(m.Model))
	}
	if err := webAddress(&m.BaseURL); err != nil {
		return Named{}, fmt.Errorf("base_url: %w", err)
	}
	return m, nil
}

// parseNames reads names as a variable has them, as YAML or JSON.
func parseNames(v *map[string]Named, text string) error {
	var doc yaml.Node
	if err := yaml.Load([]byte(text), &doc); err != nil || len(doc.Content) == 0 {
		return errors.New(`expected {"small": "anthropic:NAME"}`)
	}
	return decodeNames(v, doc.Content[0])
}

// namesText is the value as in a configuration file.
func namesText(v map[string]Named) string {
	b, err := json.Marshal(v)
	if err != nil || len(v) == 0 {
		return "{}"
	}
	return string(b)
}
