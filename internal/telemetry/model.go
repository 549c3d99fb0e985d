package telemetry

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/loadout-dev/loadout/llm"
)

// TraceModel wraps m so that each request is recorded as a span.
func (t *Tracer) TraceModel(m llm.Model) llm.Model {
	if t == nil {
		return m
	}
	return tracedModel{m, t.tracer}
}

// tracedModel records a span for each request to a model.
type tracedModel struct {
	llm.Model
	tracer trace.Tracer
}

// Stream implements [llm.Model].
func (m tracedModel) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		vendor, name, _ := strings.Cut(m.Name(), ":")
		ctx, span := m.tracer.Start(ctx, strings.TrimSpace("chat "+name), trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
			attribute.String("gen_ai.operation.name", "chat"), attribute.String("gen_ai.provider.name", vendor), attribute.String("gen_ai.request.model", name)))
		defer span.End()
		for e, err := range m.Model.Stream(ctx, r) {
			if err != nil {
				markFailed(span, errorType(err))
			}
			if done, ok := e.(llm.Done); ok {
				span.SetAttributes(answerAttributes(&done.Answer)...)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// answerAttributes returns the span attributes for a model's response.
func answerAttributes(a *llm.Answer) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.StringSlice("gen_ai.response.finish_reasons", []string{string(a.Stop)}),
		attribute.Int("gen_ai.usage.input_tokens", a.Usage.Prompt()),
		attribute.Int("gen_ai.usage.output_tokens", a.Usage.Output),
		attribute.Int("gen_ai.usage.cache_read.input_tokens", a.Usage.CacheRead),
		attribute.Int("gen_ai.usage.cache_creation.input_tokens", a.Usage.CacheWrite),
	}
}

// errorType classifies a model error in one word. The error text is not recorded, because
// it may quote a message.
func errorType(err error) string {
	if s, ok := errors.AsType[*llm.StatusError](err); ok {
		return strconv.Itoa(s.Code)
	}
	if _, ok := errors.AsType[*llm.CutError](err); ok {
		return "cut"
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return "cancelled"
	}
	return "unreachable"
}
