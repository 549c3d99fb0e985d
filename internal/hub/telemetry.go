package hub

import (
	"context"
	"iter"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/telemetry"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// traceOf returns the trace headers of a request from a trusted proxy. Other
// clients could otherwise add to traces or force their collection.
func (h *Hub) traceOf(r *http.Request) http.Header {
	if at, err := netip.ParseAddrPort(r.RemoteAddr); err == nil && h.gate.proxies.Trusts(at.Addr()) {
		return r.Header
	}
	return nil
}

// followTurn counts and traces the events of a turn.
func (h *Hub) followTurn(ctx context.Context, c chat.Conversation, kind chat.InputKind) (context.Context, chat.Trace) {
	ctx, span := h.opts.Tracer.Turn(ctx, c.ID, c.Agent)
	return ctx, &turnObserver{metrics: h.metrics, span: span, kind: kind, began: time.Now()}
}

// turnObserver observes a running turn.
type turnObserver struct {
	metrics *metrics
	span    *telemetry.Turn
	kind    chat.InputKind
	began   time.Time
}

// Step implements [chat.Trace].
func (f *turnObserver) Step(e *session.Event) {
	f.span.Step(e)
	switch {
	case e.Loaded != nil:
		f.metrics.loads.WithLabelValues().Inc()
	case e.Result != nil:
		f.metrics.calls.WithLabelValues(outcome(e.Result)).Inc()
	}
}

func outcome(r *session.CallResult) string {
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
	f.metrics.turns.WithLabelValues(string(f.kind), string(reason)).Inc()
	f.metrics.turnSeconds.Observe(time.Since(f.began).Seconds())
}

// model returns a model of [Options.Model] with metrics and traces.
func (h *Hub) model(choice *agents.ModelChoice, key string) (llm.Model, error) {
	m, err := h.opts.Model(choice, key)
	if err != nil {
		return nil, err
	}
	return h.opts.Tracer.Model(countedModel{m, h.metrics}), nil
}

// countedModel counts the requests to a model by vendor.
type countedModel struct {
	llm.Model
	metrics *metrics
}

// Stream implements [llm.Model].
func (c countedModel) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		vendor, _, _ := strings.Cut(c.Name(), ":")
		outcome := "stopped" // by the caller
		defer func() { c.metrics.answers.WithLabelValues(vendor, outcome).Inc() }()
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

// countTokens counts the tokens of a request.
func (m *metrics) countTokens(vendor string, u llm.Usage) {
	for kind, n := range map[string]int{"input": u.Input, "cache_read": u.CacheRead, "cache_write": u.CacheWrite, "output": u.Output} {
		m.tokens.WithLabelValues(vendor, kind).Add(float64(max(n, 0)))
	}
}
