package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/config"
)

const prices = `models:
  prices:
    "anthropic:*": {input: 9, output: 9}
    "anthropic:claude-*": {input: 3, output: 15, cache_read: 0.3, cache_write: 3.75}
    "anthropic:claude-small": {input: 1, output: 5, cache_read: 0.1}
    "openai:free": {input: 0, output: 0}
`

// The name itself counts, else the longest beginning of it.
func TestModelPrice(t *testing.T) {
	m := newMachine(t)
	m.write(userFile, prices)
	c := m.load()
	for name, want := range map[string]*config.Price{
		"anthropic:claude-small":   {Input: 1, CacheRead: 0.1, CacheWrite: 1, Output: 5}, // no price of writing: as input
		"anthropic:claude-small-2": {Input: 3, CacheRead: 0.3, CacheWrite: 3.75, Output: 15},
		"anthropic:claude-large":   {Input: 3, CacheRead: 0.3, CacheWrite: 3.75, Output: 15},
		"anthropic:other":          {Input: 9, CacheRead: 9, CacheWrite: 9, Output: 9},
		"openai:free":              {},
		"openai:anthropic:claude":  nil,
		"claude-small":             nil,
		"":                         nil,
	} {
		got, known := c.Models.Price(name)
		if known != (want != nil) || known && got != *want {
			t.Errorf("%q: got %+v, known %t; want %+v", name, got, known, want)
		}
	}
}

// Files and variables accept the same values, and printed values can be read back.
func TestPricesRoundTrip(t *testing.T) {
	m := newMachine(t)
	m.write(userFile, prices)
	want := m.load().Models.Prices
	text := ""
	for _, v := range m.load().Values() {
		if v.Key == "models.prices" {
			text = v.Text()
		}
	}
	again := newMachine(t)
	again.write(userFile, "models:\n  prices: "+text+"\n")
	if diff := cmp.Diff(want, again.load().Models.Prices); diff != "" {
		t.Errorf("from a file: (-want +got)\n%s", diff)
	}
	again = newMachine(t)
	again.env["LOADOUT_MODELS_PRICES"] = text
	if diff := cmp.Diff(want, again.load().Models.Prices); diff != "" {
		t.Errorf("from a variable: (-want +got)\n%s", diff)
	}
}

func TestBadPrices(t *testing.T) {
	for text, want := range map[string]string{
		"[a]":                                     "expected a map of model names",
		"{claude: {input: 1, output: 1}}":         `model name "claude" has no vendor`,
		"{'a:*b': {input: 1, output: 1}}":         "invalid model name",
		"{'a:b**': {input: 1, output: 1}}":        "invalid model name",
		"{'a:b': 3}":                              "expected input, output",
		"{'a:b': {input: 1}}":                     "missing input or output price",
		"{'a:b': {input: 1, output: -1}}":         `output: invalid price "-1"`,
		"{'a:b': {input: .nan, output: 1}}":       "invalid price",
		"{'a:b': {input: nan, output: 1}}":        "invalid price",
		"{'a:b': {input: 1e99, output: 1}}":       "invalid price",
		"{'a:b': {input: 1, output: 1, cash: 1}}": `unknown price "cash"`,
		"{'a:b': {input: [1], output: 1}}":        "invalid price",
	} {
		m := newMachine(t)
		m.write(userFile, "models:\n  prices: "+text+"\n")
		_, err := config.Load(m.in)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

// A project's file sets neither prices nor whether anything is counted, trusted or not.
func TestProjectSetsNoPricesOrUsage(t *testing.T) {
	for _, trusted := range []bool{false, true} {
		m := newMachine(t)
		m.in.Trusted = func(string, []byte) bool { return trusted }
		m.write(projectFile, prices+"usage:\n  enabled: false\n")
		c := m.load()
		if len(c.Models.Prices) > 0 || !c.Usage.Enabled || len(c.Notes) != 2 {
			t.Errorf("trusted %t: prices %v, counting %t, notes %v", trusted, c.Models.Prices, c.Usage.Enabled, c.Notes)
		}
	}
}

// Either variable switches counting off.
func TestUsageCanBeDisabled(t *testing.T) {
	for variable, value := range map[string]string{"LOADOUT_USAGE": "off", "LOADOUT_USAGE_ENABLED": "false"} {
		m := newMachine(t)
		m.env[variable] = value
		if m.load().Usage.Enabled {
			t.Errorf("%s=%s does not switch it off", variable, value)
		}
	}
}
