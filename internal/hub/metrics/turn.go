package metrics

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/telemetry"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// ObserveTurn returns a trace that counts the events of a turn and adds them to
// span.
func (m *Metrics) ObserveTurn(span *telemetry.Turn, kind chat.InputKind) chat.Trace {
	return &turnObserver{metrics: m, span: span, kind: kind, began: time.Now()}
}

// turnObserver counts the events of a running turn.
type turnObserver struct {
	metrics *Metrics
	span    *telemetry.Turn
	kind    chat.InputKind
	began   time.Time
}

// Step implements [chat.Trace].
func (f *turnObserver) Step(e *session.Event) {
	f.span.Step(e)
	switch {
	case e.Loaded != nil:
		f.metrics.loads.add(1)
	case e.Result != nil:
		f.metrics.calls.add(1, callOutcome(e.Result))
	}
}

func callOutcome(r *session.CallResult) string {
	switch {
	case r.Denied:
		return "denied"
	case r.Error:
		return "error"
	}
	return "ok"
}

// End implements [chat.Trace].
func (f *turnObserver) End(reason chat.Reason, err error) {
	if err != nil {
		reason = "handed_over"
	}
	f.span.End(string(reason), err != nil || reason == chat.Failed)
	f.metrics.turns.add(1, string(f.kind), string(reason))
	f.metrics.turnSeconds.observe(time.Since(f.began).Seconds())
}

// CountModel wraps a model so that its requests are counted.
func (m *Metrics) CountModel(model llm.Model) llm.Model { return countedModel{model, m} }

// countedModel counts requests to a model by vendor.
type countedModel struct {
	llm.Model
	metrics *Metrics
}

// Stream implements [llm.Model].
func (c countedModel) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		vendor, _, _ := strings.Cut(c.Name(), ":")
		outcome := "stopped" // the caller stops reading
		defer func() { c.metrics.answers.add(1, outcome, vendor) }()
		for e, err := range c.Model.Stream(ctx, r) {
			if err != nil {
				outcome = "error"
			}
			if done, ok := e.(llm.Done); ok {
				outcome = "ok"
				c.metrics.countTokens(vendor, done.Usage)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// countTokens counts the tokens used by a model request.
func (m *Metrics) countTokens(vendor string, u llm.Usage) {
	for kind, n := range map[string]int{"input": u.Input, "cache_read": u.CacheRead, "cache_write": u.CacheWrite, "output": u.Output} {
		m.tokens.add(float64(max(n, 0)), kind, vendor)
	}
}
