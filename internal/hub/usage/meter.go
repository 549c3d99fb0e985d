package usage

import (
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// Meter counts the tokens and calls in a conversation's transcript. The counts
// are stored in the same transaction as the steps, so that each step is counted
// exactly once. A Meter is not safe for concurrent use.
type Meter struct {
	template store.MeterEntry  // owner, agent and model of the entries
	calls    map[string]string // tool names in the last message, by call ID
}

// NewMeter returns a meter for a user's conversations with an agent and its
// model. calls holds the tool calls in the model's most recent message.
func NewMeter(owner string, agent string, in store.Namespace, model string, calls []llm.Call) *Meter {
	return &Meter{template: store.MeterEntry{Owner: owner, Agent: agent, Namespace: in, Model: truncateModelName(model)}, calls: toolNames(calls)}
}

// truncateModelName truncates a model name for use in a [store.MeterEntry].
func truncateModelName(name string) string {
	const most = 512
	return strings.ToValidUTF8(name[:min(len(name), most)], "")
}

// Count returns the counts for new steps. Turns, loads and calls are attributed
// to the conversation's model, and tokens to the model that used them.
func (m *Meter) Count(events []*session.Event) []store.MeterEntry {
	if m == nil {
		return nil
	}
	counts := map[string]*store.MeterEntry{}
	at := func(model string, e *session.Event) *store.MeterEntry {
		if counts[model] == nil {
			s := m.template
			s.Model, s.Date = model, e.Time
			counts[model] = &s
		}
		return counts[model]
	}
	calls := m.calls
	for _, e := range events {
		switch own := m.template.Model; {
		case e.Message != nil && e.Message.Role == llm.User:
			at(own, e).Turns++
		case e.Message != nil:
			calls = toolNames(e.Message.Calls)
			addUsage(at, e.Message.Model, e.Message.Usage, e)
		case e.Compacted != nil && e.Compacted.Model != "":
			addUsage(at, e.Compacted.Model, e.Compacted.Usage, e)
		case e.Loaded != nil:
			at(own, e).Loads++
		case e.Result != nil && calls[e.Result.Call] != toolname.LoadSkill && calls[e.Result.Call] != toolname.UnloadSkill:
			at(own, e).Calls++
			if e.Result.Error {
				at(own, e).Errors++
			}
		}
	}
	var out []store.MeterEntry
	for _, s := range counts {
		out = append(out, *s)
	}
	return out
}

// IsReported reports whether the provider reported the usage of a response.
func IsReported(u *llm.Usage) bool { return u != nil && *u != (llm.Usage{}) }

// addUsage adds the usage of a response to the entry of its model.
func addUsage(at func(string, *session.Event) *store.MeterEntry, model string, u *llm.Usage, e *session.Event) {
	if !IsReported(u) {
		at(truncateModelName(model), e).Unreported++
		return
	}
	at(truncateModelName(model), e).Add(store.MeterEntry{Input: int64(u.Input), Output: int64(u.Output), CacheRead: int64(u.CacheRead), CacheWrite: int64(u.CacheWrite)})
}

// Apply updates the meter's state with stored steps.
func (m *Meter) Apply(events []*session.Event) {
	if m == nil {
		return
	}
	for _, e := range events {
		if e.Message != nil && e.Message.Role == llm.Assistant {
			m.calls = toolNames(e.Message.Calls)
		}
	}
}

func toolNames(calls []llm.Call) map[string]string {
	out := make(map[string]string, len(calls))
	for _, c := range calls {
		out[c.ID] = c.Name
	}
	return out
}

// CountResponse returns entry with the tokens of a response that is in no transcript.
func CountResponse(entry store.MeterEntry, model string, u llm.Usage, at time.Time) store.MeterEntry {
	entry.Model, entry.Date = truncateModelName(model), at
	if !IsReported(&u) {
		entry.Unreported++
		return entry
	}
	entry.Add(store.MeterEntry{Input: int64(u.Input), Output: int64(u.Output), CacheRead: int64(u.CacheRead), CacheWrite: int64(u.CacheWrite)})
	return entry
}
