package chat

import (
	"strings"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/session"
)

// meter counts what a conversation takes, from its transcript: what is counted is added
// with the steps that say so, and so once. It is guarded by the journal.
type meter struct {
	whose store.Spent       // whose it is, with which agent and model
	calls map[string]string // names of the tools of the last message, by ID
}

func newMeter(owner string, agent string, in store.Namespace, model string) *meter {
	return &meter{whose: store.Spent{Owner: owner, Agent: agent, Namespace: in, Model: modelName(model)}, calls: map[string]string{}}
}

// modelName is the name of a model as it is counted.
func modelName(name string) string {
	const most = 512
	return strings.ToValidUTF8(name[:min(len(name), most)], "")
}

// of is what some steps to come count for. Turns, loads and calls count for the model of
// the conversation, and tokens for that which took them.
func (m *meter) of(events []*session.Event) []store.Spent {
	if m == nil {
		return nil
	}
	counts := map[string]*store.Spent{}
	at := func(model string, e *session.Event) *store.Spent {
		if counts[model] == nil {
			s := m.whose
			s.Model, s.Date = model, e.Time
			counts[model] = &s
		}
		return counts[model]
	}
	calls := m.calls
	for _, e := range events {
		switch own := m.whose.Model; {
		case e.Message != nil && e.Message.Role == session.RoleUser:
			at(own, e).Turns++
		case e.Message != nil:
			calls = named(e.Message.Calls)
			takes(at, e.Message.Model, e.Message.Usage, e)
		case e.Compacted != nil && e.Compacted.Model != "":
			takes(at, e.Compacted.Model, e.Compacted.Usage, e)
		case e.Loaded != nil:
			at(own, e).Loads++
		case e.Result != nil && calls[e.Result.Call] != "load_skill" && calls[e.Result.Call] != "unload_skill":
			at(own, e).Calls++
			if e.Result.Error {
				at(own, e).Errors++
			}
		}
	}
	var out []store.Spent
	for _, s := range counts {
		out = append(out, *s)
	}
	return out
}

// told reports whether a vendor told what an answer took: none takes nothing.
func told(u *session.Usage) bool { return u != nil && *u != (session.Usage{}) }

// takes adds what an answer of a model took.
func takes(at func(string, *session.Event) *store.Spent, model string, u *session.Usage, e *session.Event) {
	if !told(u) {
		at(modelName(model), e).Untold++
		return
	}
	at(modelName(model), e).Add(store.Spent{Input: int64(u.Input), Output: int64(u.Output), CacheRead: int64(u.CacheRead), CacheWrite: int64(u.CacheWrite)})
}

// apply brings what is known forward by steps that are in the transcript.
func (m *meter) apply(events []*session.Event) {
	if m == nil {
		return
	}
	for _, e := range events {
		if e.Message != nil && e.Message.Role == session.RoleAssistant {
			m.calls = named(e.Message.Calls)
		}
	}
}

func named(calls []session.Call) map[string]string {
	out := make(map[string]string, len(calls))
	for _, c := range calls {
		out[c.ID] = c.Name
	}
	return out
}
