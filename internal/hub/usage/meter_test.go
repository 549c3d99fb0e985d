package usage_test

import (
	"testing"

	"github.com/loadout-dev/loadout/internal/hub/usage"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// An answer whose vendor reports no tokens, or zero, counts as an answer of unknown usage.
func TestMeterCountsAnswersWithoutUsage(t *testing.T) {
	for name, c := range map[string]struct {
		usage *llm.Usage
		want  store.MeterEntry
	}{
		"none":   {nil, store.MeterEntry{Model: "m", Unreported: 1}},
		"zero":   {&llm.Usage{}, store.MeterEntry{Model: "m", Unreported: 1}},
		"tokens": {&llm.Usage{Input: 3, Output: 2}, store.MeterEntry{Model: "m", Input: 3, Output: 2}},
	} {
		m := usage.NewMeter("", "", "", "m", nil)
		got := m.Count([]*session.Event{{Message: &session.Message{Role: llm.Assistant, Model: "m", Usage: c.usage}}})
		if len(got) != 1 || got[0] != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}
