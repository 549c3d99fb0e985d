package vendors_test

import (
	"testing"

	"github.com/loadout-dev/loadout/internal/llm/vendors"
)

func TestLookup(t *testing.T) {
	for name, want := range map[string]string{"anthropic": "anthropic", "Claude": "anthropic", "OPENAI": "openai", "demo": "demo", "": "", "other": ""} {
		v, ok := vendors.Lookup(name)
		if v.Name != want || ok != (want != "") {
			t.Errorf("%q: %q, %v", name, v.Name, ok)
		}
	}
}

func TestParse(t *testing.T) {
	for name, want := range map[string]struct {
		vendor, model string
		ok            bool
	}{
		"anthropic:claude-opus-5": {"anthropic", "claude-opus-5", true},
		"openai:org/name:tag":     {"openai", "org/name:tag", true},
		"demo":                    {"demo", "", true},
		"openai:":                 {"openai", "", false},
		"claude:x":                {"anthropic", "x", false}, // an alias of documents only
		"other:x":                 {"", "x", false},
		"":                        {},
	} {
		v, model, ok := vendors.Parse(name)
		if v.Name != want.vendor || model != want.model || ok != want.ok {
			t.Errorf("%q: %q %q %v", name, v.Name, model, ok)
		}
	}
}

func TestNew(t *testing.T) {
	for _, name := range []string{"anthropic:a", "openai:a", "demo"} {
		v, model, _ := vendors.Parse(name)
		m, err := v.New(model, vendors.Options{Key: "k"})
		if err != nil || m.Name() != name && name != vendors.Demo {
			t.Errorf("%s: %v, %v", name, m, err)
		}
		if (v.KeyVariable == "") != (name == "demo") || (v.Host == "") != (name == "demo") {
			t.Errorf("%+v", v)
		}
	}
	if _, err := (vendors.Vendor{}).New("x", vendors.Options{}); err == nil {
		t.Error("no error without a vendor")
	}
}
