package provider_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/provider"
	"github.com/loadout-dev/loadout/skill"
)

func TestOffers(t *testing.T) {
	own := []skill.Tool{{Name: "a"}, {Name: "b", Provider: "maker"}}
	for _, tt := range []struct {
		s    *skill.Skill
		name string
		want bool
	}{
		{&skill.Skill{Name: "s", Tools: own, Provider: &skill.Provider{}}, "s", true},
		{&skill.Skill{Name: "s", Tools: own, Provider: &skill.Provider{}}, "maker", true},
		{&skill.Skill{Name: "s", Tools: own, Provider: &skill.Provider{}}, "other", false},
		{&skill.Skill{Name: "s", Tools: own}, "s", false}, // no provider of its own
		{&skill.Skill{Name: "s", Tools: own}, "maker", false},
	} {
		if got := provider.Offers(tt.s, tt.name); got != tt.want {
			t.Errorf("%+v offers %s: %t", tt.s, tt.name, got)
		}
	}
}

func TestSettings(t *testing.T) {
	s := &skill.Skill{Name: "s", Config: json.RawMessage(`{"a":1,"b":1}`), Provider: &skill.Provider{Class: "P"}}
	got, err := provider.Settings(s, skill.Tool{Name: "t", Config: json.RawMessage(`{"b":2}`)})
	if diff := cmp.Diff(map[string]any{"a": 1.0, "b": 2.0}, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if got, err := provider.Settings(&skill.Skill{}, skill.Tool{}); err != nil || len(got) > 0 {
		t.Errorf("without configuration: %v, %v", got, err)
	}
	// The message names the skill and the tool, wherever the mistake is found.
	bad := skill.Tool{Name: "t", Config: json.RawMessage(`[1]`)}
	s.Tools = []skill.Tool{bad}
	const want = "skill s: tool t: invalid config: want an object: "
	for what, f := range map[string]func() error{
		"Settings": func() error { _, err := provider.Settings(s, bad); return err },
		"Lend":     func() error { _, err := provider.Lend(&skill.Skill{}, s, []skill.Tool{bad}); return err },
		"Plan":     func() error { _, err := provider.Plan(s, provider.Options{}); return err },
	} {
		if err := f(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
	s.Tools, s.Config = nil, json.RawMessage(`{`)
	if _, err := provider.Plan(s, provider.Options{}); err == nil || !strings.HasPrefix(err.Error(), "skill s: provider: ") {
		t.Errorf("configuration that is no JSON: %v", err)
	}
}

// Providers of different configurations do not share a process.
func TestPlanTellsVariantsApart(t *testing.T) {
	s := &skill.Skill{Name: "s", Provider: &skill.Provider{Class: "P"}}
	variant := func(o provider.Options) string {
		t.Helper()
		start, err := provider.Plan(s, o)
		if err != nil {
			t.Fatal(err)
		}
		return start.Env[provider.Variant]
	}
	one := variant(provider.Options{UserName: "ann"})
	if one == "" || one == variant(provider.Options{UserName: "bob"}) || one != variant(provider.Options{UserName: "ann"}) {
		t.Errorf("the variant of ann is %q", one)
	}
}
