package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Price is the price of a model in US dollars per million tokens.
type Price struct {
	Input      float64 `json:"input"`
	CacheRead  float64 `json:"cache_read"`
	CacheWrite float64 `json:"cache_write"`
	Output     float64 `json:"output"`
}

// Limits of the price list: entries, and dollars per million tokens.
const (
	maxPrices = 256
	maxPrice  = 1_000_000
)

// Price returns the price of a model by its full name, such as vendor:name. An
// exact entry takes precedence over entries that end in *, of which the longest
// match wins. Price returns false if no entry matches. A price may be zero.
func (m *Models) Price(name string) (Price, bool) {
	best, known := m.Prices[name]
	if known {
		return best, true
	}
	longest := -1
	for pattern, p := range m.Prices {
		start, open := strings.CutSuffix(pattern, "*")
		if open && len(start) > longest && strings.HasPrefix(name, start) {
			best, longest = p, len(start)
		}
	}
	return best, longest >= 0
}

// decodePrices decodes a map of model names to prices.
func decodePrices(v *map[string]Price, n *yaml.Node) error {
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		*v = nil
		return nil
	case n.Kind != yaml.MappingNode:
		return errors.New("expected a map of model names to prices")
	case len(n.Content) > 2*maxPrices:
		return fmt.Errorf("too many models (limit %d)", maxPrices)
	}
	out := map[string]Price{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		name := key.Value
		switch {
		case key.Kind != yaml.ScalarNode || name == "" || strings.Contains(strings.TrimSuffix(name, "*"), "*"):
			return fmt.Errorf("invalid model name %s: expected a name such as anthropic:NAME; a final * matches a prefix", quoteValue(name))
		case strings.TrimSuffix(name, "*") != "" && !strings.Contains(name, ":"):
			return fmt.Errorf("model name %s has no vendor: want anthropic:NAME or openai:NAME", quoteValue(name))
		}
		if _, twice := out[name]; twice {
			return fmt.Errorf("duplicate model %s", quoteValue(name))
		}
		p, err := decodePrice(value)
		if err != nil {
			return fmt.Errorf("%s: %w", quoteValue(name), err)
		}
		out[name] = p
	}
	*v = out
	return nil
}

// decodePrice decodes the prices of one model. A missing cache price defaults
// to the input price.
func decodePrice(n *yaml.Node) (Price, error) {
	if n.Kind != yaml.MappingNode {
		return Price{}, errors.New("invalid price; expected input, output, cache_read and cache_write")
	}
	given := map[string]float64{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if !slices.Contains([]string{"input", "output", "cache_read", "cache_write"}, key.Value) {
			return Price{}, fmt.Errorf("unknown price %s; expected input, output, cache_read and cache_write", quoteValue(key.Value))
		}
		if _, twice := given[key.Value]; twice {
			return Price{}, fmt.Errorf("duplicate price %s", key.Value)
		}
		f, err := strconv.ParseFloat(value.Value, 64)
		if value.Kind != yaml.ScalarNode || err != nil || math.IsNaN(f) || f < 0 || f > maxPrice {
			return Price{}, fmt.Errorf("%s: invalid price %s: expected US dollars per million tokens", key.Value, quoteValue(value.Value))
		}
		given[key.Value] = f
	}
	input, ok := given["input"]
	output, ok2 := given["output"]
	if !ok || !ok2 {
		return Price{}, errors.New("missing input or output price")
	}
	p := Price{Input: input, CacheRead: input, CacheWrite: input, Output: output}
	if f, ok := given["cache_read"]; ok {
		p.CacheRead = f
	}
	if f, ok := given["cache_write"]; ok {
		p.CacheWrite = f
	}
	return p, nil
}

// parsePrices parses the value of an environment variable as YAML or JSON.
func parsePrices(v *map[string]Price, text string) error {
	var doc yaml.Node
	if err := yaml.Load([]byte(text), &doc); err != nil || len(doc.Content) == 0 {
		return errors.New(`expected {"anthropic:NAME": {"input": 3, "output": 15}}`)
	}
	return decodePrices(v, doc.Content[0])
}

// formatPrices formats prices for a configuration file.
func formatPrices(v map[string]Price) string {
	b, err := json.Marshal(v)
	if err != nil || len(v) == 0 {
		return "{}"
	}
	return string(b)
}
