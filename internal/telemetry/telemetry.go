// Package telemetry sends a hub's traces with OpenTelemetry. The standard environment
// variables OTEL_EXPORTER_OTLP_* configure the endpoint. Without an endpoint, the package
// creates no spans and sends nothing.
//
// A span contains names, digests, numbers and outcomes. It never contains messages,
// arguments, results, error texts, queries or user addresses.
//
// Start reading at [Start]; [Tracer.StartRequest], [Tracer.StartTurn] and
// [Tracer.TraceModel] create spans.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Options identifies the process that sends traces.
type Options struct {
	Version string
	Node    string       // host name, which distinguishes the nodes of a hub
	Logger  *slog.Logger // nil discards messages
}

// Tracer starts spans. All methods of a nil Tracer do nothing. It is safe for concurrent
// use.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
}

// Enabled reports whether the environment configures an endpoint for traces.
func Enabled(getenv func(string) string) bool {
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") || strings.EqualFold(getenv("OTEL_TRACES_EXPORTER"), "none") {
		return false
	}
	return getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

// Start returns a Tracer that sends spans to the endpoint in the environment. It does not
// connect yet. If spans cannot be sent, the Tracer logs the failure and drops them. Call
// Start only if [Enabled] returns true, and call [Tracer.Close] when done.
func Start(ctx context.Context, getenv func(string) string, o Options) (*Tracer, error) {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		if p := getenv(name); p != "" && p != "http/protobuf" {
			return nil, fmt.Errorf("unsupported %s %q: only http/protobuf is supported", name, p)
		}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := environment{getenv, o.Logger}.readSettings()
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("send traces: %w", err)
	}
	from, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "loadout"), attribute.String("service.version", o.Version),
		attribute.String("service.instance.id", o.Node)), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("send traces: %w", err)
	}
	exporter := newUploader(s, o.Version)
	provider := sdk.NewTracerProvider(sdk.WithBatcher(&loggingExporter{SpanExporter: exporter, log: o.Logger}), sdk.WithResource(from))
	return &Tracer{provider, provider.Tracer("github.com/loadout-dev/loadout", trace.WithInstrumentationVersion(o.Version))}, nil
}

// Close sends the remaining spans until ctx is done, and then stops the Tracer.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	if err := t.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("send remaining traces: %w", err)
	}
	return nil
}

// loggingExporter logs failures instead of returning them. It logs only the first of
// several failures in a row, and the recovery. OpenTelemetry's process-wide handler
// would print a returned error to standard error.
type loggingExporter struct {
	sdk.SpanExporter
	log     *slog.Logger
	failing atomic.Bool
}

// ExportSpans implements [sdk.SpanExporter]. It always returns nil.
func (e *loggingExporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	switch failedBefore := e.failing.Swap(err != nil); {
	case err != nil && !failedBefore:
		e.log.Warn("couldn't send traces; dropping them until the endpoint recovers", "error", err)
	case err == nil && failedBefore:
		e.log.Info("sending traces again")
	}
	return nil
}
