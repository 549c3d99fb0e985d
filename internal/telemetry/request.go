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

// StartRequest starts the span of an HTTP request. Pass the request's headers only if its sender
// is trusted: the traceparent header then names the parent of the span. Call end with the
// route pattern of the mux and the response status.
func (t *Tracer) StartRequest(ctx context.Context, method string, headers http.Header) (_ context.Context, end func(route string, status int)) {
	if t == nil {
		return ctx, func(string, int) {}
	}
	if headers != nil {
		ctx = propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(headers))
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
