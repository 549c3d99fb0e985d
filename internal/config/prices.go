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

// Price is what a model costs, in US dollars a million tokens.
type Price struct {
	Input      float64 `json:"input"`
	CacheRead  float64 `json:"cache_read"`
	CacheWrite float64 `json:"cache_write"`
	Output     float64 `json:"output"`
}

// Limits of a list of prices.
const (
	maxPrices = 256
	maxPrice  = 1_000_000
)

// Price is the price of a model by its name, as vendor:name: that of the name itself,
// else of the longest beginning with * behind it that fits. It is false where none
// does; one that is nothing is a price too.
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

// decodePrices reads names of models with their prices.
func decodePrices(v *map[string]Price, n *yaml.Node) error {
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		*v = nil
		return nil
	case n.Kind != yaml.MappingNode:
		return errors.New("expected names of models, each with its prices")
	case len(n.Content) > 2*maxPrices:
		return fmt.Errorf("more than %d models", maxPrices)
	}
	out := map[string]Price{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		name := key.Value
		switch {
		case key.Kind != yaml.ScalarNode || name == "" || strings.Contains(strings.TrimSuffix(name, "*"), "*"):
			return fmt.Errorf("%s is no name of a model, as anthropic:NAME; one * may end it", shown(name))
		case strings.TrimSuffix(name, "*") != "" && !strings.Contains(name, ":"):
			return fmt.Errorf("%s has no vendor: write it as anthropic:NAME or openai:NAME", shown(name))
		}
		if _, twice := out[name]; twice {
			return fmt.Errorf("%s is given twice", shown(name))
		}
		p, err := decodePrice(value)
		if err != nil {
			return fmt.Errorf("%s: %w", shown(name), err)
		}
		out[name] = p
	}
	*v = out
	return nil
}

// decodePrice reads the prices of one model. What is said of no cache costs what
// other input does.
func decodePrice(n *yaml.Node) (Price, error) {
	if n.Kind != yaml.MappingNode {
		return Price{}, errors.New("expected input, output, cache_read and cache_write")
	}
	given := map[string]float64{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if !slices.Contains([]string{"input", "output", "cache_read", "cache_write"}, key.Value) {
			return Price{}, fmt.Errorf("there is no %s; the prices are input, output, cache_read and cache_write", shown(key.Value))
		}
		if _, twice := given[key.Value]; twice {
			return Price{}, fmt.Errorf("%s is given twice", key.Value)
		}
		f, err := strconv.ParseFloat(value.Value, 64)
		if value.Kind != yaml.ScalarNode || err != nil || math.IsNaN(f) || f < 0 || f > maxPrice {
			return Price{}, fmt.Errorf("%s: %s is no price in US dollars a million tokens", key.Value, shown(value.Value))
		}
		given[key.Value] = f
	}
	input, ok := given["input"]
	output, ok2 := given["output"]
	if !ok || !ok2 {
		return Price{}, errors.New("input and output are needed")
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

// parsePrices reads prices as a variable has them, as YAML or JSON.
func parsePrices(v *map[string]Price, text string) error {
	var doc yaml.Node
	if err := yaml.Load([]byte(text), &doc); err != nil || len(doc.Content) == 0 {
		return errors.New(`expected {"anthropic:NAME": {"input": 3, "output": 15}}`)
	}
	return decodePrices(v, doc.Content[0])
}

// pricesText is the value as in a configuration file.
func pricesText(v map[string]Price) string {
	b, err := json.Marshal(v)
	if err != nil || len(v) == 0 {
		return "{}"
	}
	return string(b)
}
