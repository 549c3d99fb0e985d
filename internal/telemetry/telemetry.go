// Package telemetry sends traces of a hub, by OpenTelemetry, to wherever the standard
// variables of it name: OTEL_EXPORTER_OTLP_ENDPOINT and those beside it. Without one of
// them nothing is made and nothing is sent.
//
// A span says what was done, with what and for how long: names, digests, numbers and
// outcomes. What was said is in none of them, nor arguments, results, texts of errors,
// queries and addresses of people.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Options say who sends traces.
type Options struct {
	Version string
	Node    string       // the name of this process among others
	Logger  *slog.Logger // nil discards
}

// Tracer begins spans. A nil one begins none, and all that is called of it costs nothing.
// It is safe for concurrent use.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
}

// Wanted reports whether the environment names a place for traces.
func Wanted(getenv func(string) string) bool {
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") || strings.EqualFold(getenv("OTEL_TRACES_EXPORTER"), "none") {
		return false
	}
	return getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

// Start begins to send spans as the environment says. It connects to nothing yet; what
// cannot be sent is told to the logger, and lost. Call it only where it is [Wanted], and
// Close when done.
func Start(ctx context.Context, getenv func(string) string, o Options) (*Tracer, error) {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		if p := getenv(name); p != "" && p != "http/protobuf" {
			return nil, fmt.Errorf("%s is %q, and traces are sent as http/protobuf only; set it to that, or unset it", name, p)
		}
	}
	client, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("send traces: %w", err)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	from, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "loadout"), attribute.String("service.version", o.Version),
		attribute.String("service.instance.id", o.Node)), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, errors.Join(fmt.Errorf("send traces: %w", err), client.Shutdown(ctx))
	}
	provider := sdk.NewTracerProvider(sdk.WithBatcher(&telling{SpanExporter: client, log: o.Logger}), sdk.WithResource(from))
	return &Tracer{provider, provider.Tracer("github.com/loadout-dev/loadout", trace.WithInstrumentationVersion(o.Version))}, nil
}

// Close sends what was not sent yet, until ctx ends.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	if err := t.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("send the last traces: %w", err)
	}
	return nil
}

// telling tells of failures itself, once for each row of them: else each is printed to
// standard error, by a handler of the whole process.
type telling struct {
	sdk.SpanExporter
	log     *slog.Logger
	failing atomic.Bool
}

func (t *telling) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := t.SpanExporter.ExportSpans(ctx, spans)
	switch was := t.failing.Swap(err != nil); {
	case err != nil && !was:
		t.log.Warn("traces cannot be sent, and are lost until they can", "error", err)
	case err == nil && was:
		t.log.Info("traces are sent again")
	}
	return nil
}
