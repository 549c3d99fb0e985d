package telemetry

import (
	"context"
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Request begins the span of a request. The headers of whoever is trusted to say which
// trace it is part of are read for that; nil is nobody. End takes the route, as the mux
// has it, and the status.
func (t *Tracer) Request(ctx context.Context, method string, from http.Header) (of context.Context, end func(route string, status int)) {
	if t == nil {
		return ctx, func(string, int) {}
	}
	if from != nil {
		ctx = propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(from))
	}
	ctx, span := t.tracer.Start(ctx, method, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(attribute.String("http.request.method", method)))
	return ctx, func(route string, status int) {
		if _, path, ok := strings.Cut(route, " "); ok {
			route = path
		}
		if route != "" && route != "/" {
			span.SetName(method + " " + route)
			span.SetAttributes(attribute.String("http.route", route))
		}
		span.SetAttributes(attribute.Int("http.response.status_code", status))
		if status >= 500 {
			span.SetStatus(codes.Error, "")
		}
		span.End()
	}
}
