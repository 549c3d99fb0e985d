package telemetry

import (
	"math"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// The numbers of the fields are those of [trace.proto], [resource.proto] and
// [common.proto] of OTLP 1.11; released numbers do not change.
//
// [trace.proto]: https://github.com/open-telemetry/opentelemetry-proto/blob/v1.11.0/opentelemetry/proto/trace/v1/trace.proto
// [resource.proto]: https://github.com/open-telemetry/opentelemetry-proto/blob/v1.11.0/opentelemetry/proto/resource/v1/resource.proto
// [common.proto]: https://github.com/open-telemetry/opentelemetry-proto/blob/v1.11.0/opentelemetry/proto/common/v1/common.proto

// encodeRequest returns an ExportTraceServiceRequest. Spans of the same resource and
// scope that follow each other are in the same group.
func encodeRequest(spans []sdk.ReadOnlySpan) message {
	var request message
	for len(spans) > 0 {
		n := 1
		for n < len(spans) && spans[n].Resource() == spans[0].Resource() && spans[n].InstrumentationScope() == spans[0].InstrumentationScope() {
			n++
		}
		request = request.add(1, encodeGroup(spans[:n]))
		spans = spans[n:]
	}
	return request
}

// encodeGroup returns a ResourceSpans with a single ScopeSpans.
func encodeGroup(spans []sdk.ReadOnlySpan) message {
	from, scope := spans[0].Resource(), spans[0].InstrumentationScope()
	group := message(nil).add(1, encodeScope(scope))
	for _, s := range spans {
		group = group.add(2, encodeSpan(s))
	}
	group = group.addText(3, scope.SchemaURL)
	return message(nil).add(1, encodeResource(from)).add(2, group).addText(3, from.SchemaURL())
}

func encodeResource(r *resource.Resource) message {
	return message(nil).addAttributes(1, r.Attributes())
}

func encodeScope(s instrumentation.Scope) message {
	return message(nil).addText(1, s.Name).addText(2, s.Version).addAttributes(3, s.Attributes.ToSlice())
}

func encodeSpan(s sdk.ReadOnlySpan) message {
	c, parent := s.SpanContext(), s.Parent()
	traceID, spanID := c.TraceID(), c.SpanID()
	m := message(nil).addBytes(1, traceID[:]).addBytes(2, spanID[:]).addText(3, c.TraceState().String())
	if id := parent.SpanID(); id.IsValid() {
		m = m.addBytes(4, id[:])
	}
	m = m.addText(5, s.Name())
	m = m.addVarint(6, uint64(s.SpanKind())) // OTLP uses the same numbers
	m = m.addFixed64(7, unixNano(s.StartTime())).addFixed64(8, unixNano(s.EndTime()))
	m = m.addAttributes(9, s.Attributes()).addCount(10, s.DroppedAttributes())
	for _, e := range s.Events() {
		m = m.add(11, message(nil).addFixed64(1, unixNano(e.Time)).addText(2, e.Name).addAttributes(3, e.Attributes).addCount(4, e.DroppedAttributeCount))
	}
	m = m.addCount(12, s.DroppedEvents())
	for _, l := range s.Links() {
		m = m.add(13, encodeLink(l))
	}
	return m.addCount(14, s.DroppedLinks()).add(15, encodeStatus(s.Status())).addFixed32(16, flags(c, parent))
}

func encodeLink(l sdk.Link) message {
	c := l.SpanContext
	traceID, spanID := c.TraceID(), c.SpanID()
	m := message(nil).addBytes(1, traceID[:]).addBytes(2, spanID[:]).addText(3, c.TraceState().String())
	return m.addAttributes(4, l.Attributes).addCount(5, l.DroppedAttributeCount).addFixed32(6, flags(c, c))
}

func encodeStatus(s sdk.Status) message {
	var code uint64
	switch s.Code {
	case codes.Ok:
		code = 1
	case codes.Error:
		code = 2
	}
	return message(nil).addText(2, s.Description).addVarint(3, code)
}

// flags returns the trace flags of c, and whether remote comes from another process.
func flags(c, remote trace.SpanContext) uint32 {
	const knowsRemote, isRemote = 0x100, 0x200
	f := uint32(c.TraceFlags()) | knowsRemote
	if remote.IsRemote() {
		f |= isRemote
	}
	return f
}

func unixNano(t time.Time) uint64 { return uint64(max(0, t.UnixNano())) }

// addAttributes appends a KeyValue for each attribute.
func (m message) addAttributes(field int, all []attribute.KeyValue) message {
	for _, a := range all {
		m = m.add(field, message(nil).addText(1, string(a.Key)).add(2, encodeValue(a.Value)))
	}
	return m
}

// encodeValue returns an AnyValue. Its value is in a oneof, so that zero values are not
// omitted. The value of an unknown type is missing.
func encodeValue(v attribute.Value) message {
	var m message
	switch v.Type() {
	case attribute.STRING:
		if v.AsString() == "" {
			return m.add(1, nil)
		}
		return m.addText(1, v.AsString())
	case attribute.BOOL:
		n := byte(0)
		if v.AsBool() {
			n = 1
		}
		return append(m.tag(2, wireVarint), n)
	case attribute.INT64:
		if v.AsInt64() == 0 {
			return append(m.tag(3, wireVarint), 0)
		}
		return m.addVarint(3, uint64(v.AsInt64()))
	case attribute.FLOAT64:
		if bits := math.Float64bits(v.AsFloat64()); bits != 0 {
			return m.addFixed64(4, bits)
		}
		return append(m.tag(4, wireFixed64), make([]byte, 8)...)
	case attribute.BYTESLICE:
		return m.add(7, v.AsByteSlice())
	case attribute.MAP:
		return m.add(6, message(nil).addAttributes(1, v.AsMap()))
	}
	if elements, ok := elementsOf(v); ok {
		var list message
		for _, e := range elements {
			list = list.add(1, encodeValue(e))
		}
		return m.add(5, list)
	}
	return m
}

// elementsOf returns the elements of a list, and false for other values.
func elementsOf(v attribute.Value) ([]attribute.Value, bool) {
	switch v.Type() {
	case attribute.STRINGSLICE:
		return valuesOf(v.AsStringSlice(), attribute.StringValue), true
	case attribute.BOOLSLICE:
		return valuesOf(v.AsBoolSlice(), attribute.BoolValue), true
	case attribute.INT64SLICE:
		return valuesOf(v.AsInt64Slice(), attribute.Int64Value), true
	case attribute.FLOAT64SLICE:
		return valuesOf(v.AsFloat64Slice(), attribute.Float64Value), true
	case attribute.SLICE:
		return v.AsSlice(), true
	}
	return nil, false
}

func valuesOf[T any](elements []T, value func(T) attribute.Value) []attribute.Value {
	out := make([]attribute.Value, len(elements))
	for i, e := range elements {
		out[i] = value(e)
	}
	return out
}
