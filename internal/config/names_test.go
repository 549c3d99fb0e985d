package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/config"
)

// A short name stands for a model, optionally with a server and a key. The printed form
// can be read back from a file and a variable.
func TestModelNames(t *testing.T) {
	m := newMachine(t)
	m.write(userFile, "models:\n  names:\n    haiku: anthropic:small\n    here: {model: openai:qwen3, base_url: 'http://127.0.0.1:1/v1', key: LOCAL}\n")
	want := map[string]config.NamedModel{"haiku": {Model: "anthropic:small"}, "here": {Model: "openai:qwen3", BaseURL: "http://127.0.0.1:1/v1", Key: "LOCAL"}}
	if diff := cmp.Diff(want, m.load().Models.Names); diff != "" {
		t.Fatalf("(-want +got)\n%s", diff)
	}
	text := ""
	for _, v := range m.load().Values() {
		if v.Key == "models.names" {
			text = v.Text()
		}
	}
	again := newMachine(t)
	again.write(userFile, "models:\n  names: "+text+"\n")
	if diff := cmp.Diff(want, again.load().Models.Names); diff != "" {
		t.Errorf("from a file: (-want +got)\n%s", diff)
	}
	again = newMachine(t)
	again.env["LOADOUT_MODELS_NAMES"] = text
	if diff := cmp.Diff(want, again.load().Models.Names); diff != "" {
		t.Errorf("from a variable: (-want +got)\n%s", diff)
	}
}

func TestBadModelNames(t *testing.T) {
	for text, want := range map[string]string{
		"[a]":                                "expected a map of names to models",
		"{a: b}":                             `invalid model "b"`,
		"{'a:b': 'c:d'}":                     "invalid short name",
		"{a: ['x']}":                         "expected a model",
		"{a: {model: 'x:y', url: z}}":        `unknown key "url"`,
		"{a: {model: 'x:y', key: [z]}}":      "key: expected a string",
		"{a: {model: 'x:y', base_url: 'z'}}": "base_url",
	} {
		m := newMachine(t)
		m.write(userFile, "models:\n  names: "+text+"\n")
		if _, err := config.Load(m.in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}
