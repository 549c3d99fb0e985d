package telemetry

import (
	"math"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	respb "go.opentelemetry.io/proto/otlp/resource/v1"
	pb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"
)

// decode decodes a request with the types that are generated from the protocol.
func decode(t *testing.T, spans []sdk.ReadOnlySpan) *pb.TracesData {
	t.Helper()
	var m pb.TracesData // the wire form of ExportTraceServiceRequest
	if err := (proto.UnmarshalOptions{DiscardUnknown: false}).Unmarshal(encodeRequest(spans), &m); err != nil {
		t.Fatal(err)
	}
	return &m
}

func wantMessage(t *testing.T, got, want proto.Message) {
	t.Helper()
	if !proto.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", prototext.Format(got), prototext.Format(want))
	}
}

func text(s string) *common.AnyValue {
	return &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: s}}
}

func list(values ...*common.AnyValue) *common.AnyValue {
	return &common.AnyValue{Value: &common.AnyValue_ArrayValue{ArrayValue: &common.ArrayValue{Values: values}}}
}

func integer(n int64) *common.AnyValue {
	return &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: n}}
}

func number(f float64) *common.AnyValue {
	return &common.AnyValue{Value: &common.AnyValue_DoubleValue{DoubleValue: f}}
}

func boolean(b bool) *common.AnyValue {
	return &common.AnyValue{Value: &common.AnyValue_BoolValue{BoolValue: b}}
}

func TestEncodeSpan(t *testing.T) {
	state, err := trace.ParseTraceState("vendor=1")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1_800_000_000, 123)
	own := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1, 15: 2}, SpanID: trace.SpanID{3, 7: 4}, TraceFlags: trace.FlagsSampled, TraceState: state})
	parent := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1, 15: 2}, SpanID: trace.SpanID{5}, Remote: true})
	from := resource.NewWithAttributes("https://schema/resource", attribute.String("service.name", "loadout"))
	scope := instrumentation.Scope{Name: "scope", Version: "1.2", SchemaURL: "https://schema/scope", Attributes: attribute.NewSet(attribute.Bool("b", true))}
	full := tracetest.SpanStub{
		Name: "chat one", SpanContext: own, Parent: parent, SpanKind: trace.SpanKindClient, StartTime: at, EndTime: at.Add(time.Second),
		Attributes: []attribute.KeyValue{attribute.Int("n", 7)}, DroppedAttributes: 1, DroppedEvents: 2, DroppedLinks: math.MaxInt,
		Events:   []sdk.Event{{Name: "event", Time: at, Attributes: []attribute.KeyValue{attribute.Int("e", 1)}, DroppedAttributeCount: 3}},
		Links:    []sdk.Link{{SpanContext: parent, Attributes: []attribute.KeyValue{attribute.Int("l", 1)}, DroppedAttributeCount: 4}},
		Status:   sdk.Status{Code: codes.Error, Description: "cut \xff"},
		Resource: from, InstrumentationScope: scope,
	}
	small := tracetest.SpanStub{Name: "small", SpanContext: own, Status: sdk.Status{Code: codes.Ok}, Resource: from, InstrumentationScope: scope,
		StartTime: time.Unix(-1, 0), EndTime: at}
	other := tracetest.SpanStub{Name: "other", SpanContext: own, SpanKind: trace.SpanKindServer, StartTime: at, EndTime: at}
	ids := func(s *pb.Span) *pb.Span {
		s.TraceId, s.SpanId = []byte{1, 15: 2}, []byte{3, 7: 4}
		s.TraceState = "vendor=1"
		if s.Status == nil {
			s.Status = &pb.Status{}
		}
		return s
	}
	attribute := func(key string, v *common.AnyValue) []*common.KeyValue {
		return []*common.KeyValue{{Key: key, Value: v}}
	}
	nano := uint64(at.UnixNano())
	want := &pb.TracesData{ResourceSpans: []*pb.ResourceSpans{{
		Resource: &respb.Resource{Attributes: attribute("service.name", text("loadout"))}, SchemaUrl: "https://schema/resource",
		ScopeSpans: []*pb.ScopeSpans{{
			Scope: &common.InstrumentationScope{Name: "scope", Version: "1.2", Attributes: attribute("b", boolean(true))}, SchemaUrl: "https://schema/scope",
			Spans: []*pb.Span{ids(&pb.Span{
				ParentSpanId: []byte{5, 7: 0}, Name: "chat one", Kind: pb.Span_SPAN_KIND_CLIENT, StartTimeUnixNano: nano, EndTimeUnixNano: nano + 1e9,
				Attributes: attribute("n", integer(7)), DroppedAttributesCount: 1, DroppedEventsCount: 2, DroppedLinksCount: math.MaxUint32,
				Events: []*pb.Span_Event{{Name: "event", TimeUnixNano: nano, Attributes: attribute("e", integer(1)), DroppedAttributesCount: 3}},
				Links: []*pb.Span_Link{{TraceId: []byte{1, 15: 2}, SpanId: []byte{5, 7: 0}, Attributes: attribute("l", integer(1)), DroppedAttributesCount: 4,
					Flags: uint32(pb.SpanFlags_SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK | pb.SpanFlags_SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK)}},
				Status: &pb.Status{Code: pb.Status_STATUS_CODE_ERROR, Message: "cut \uFFFD"},
				Flags:  1 | uint32(pb.SpanFlags_SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK|pb.SpanFlags_SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK),
			}), ids(&pb.Span{
				Name: "small", Status: &pb.Status{Code: pb.Status_STATUS_CODE_OK}, EndTimeUnixNano: nano,
				Flags: 1 | uint32(pb.SpanFlags_SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK),
			})},
		}},
	}, {
		Resource: &respb.Resource{}, ScopeSpans: []*pb.ScopeSpans{{Scope: &common.InstrumentationScope{}, Spans: []*pb.Span{ids(&pb.Span{
			Name: "other", Kind: pb.Span_SPAN_KIND_SERVER, StartTimeUnixNano: nano, EndTimeUnixNano: nano,
			Flags: 1 | uint32(pb.SpanFlags_SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK),
		})}}},
	}}}
	wantMessage(t, decode(t, tracetest.SpanStubs{full, small, other}.Snapshots()), want)
}

func TestEncodeAttributes(t *testing.T) {
	for _, tt := range []struct {
		name string
		v    attribute.Value
		want *common.AnyValue
	}{
		{"text", attribute.StringValue("é"), text("é")},
		{"empty text", attribute.StringValue(""), text("")},
		{"invalid text", attribute.StringValue("a\xff"), text("a\uFFFD")},
		{"true", attribute.BoolValue(true), boolean(true)},
		{"false", attribute.BoolValue(false), boolean(false)},
		{"zero", attribute.IntValue(0), integer(0)},
		{"negative", attribute.Int64Value(math.MinInt64), integer(math.MinInt64)},
		{"float", attribute.Float64Value(1.5), number(1.5)},
		{"float zero", attribute.Float64Value(0), number(0)},
		{"negative zero", attribute.Float64Value(math.Copysign(0, -1)), number(math.Copysign(0, -1))},
		{"bytes", attribute.ByteSliceValue([]byte{0xff}), &common.AnyValue{Value: &common.AnyValue_BytesValue{BytesValue: []byte{0xff}}}},
		{"texts", attribute.StringSliceValue([]string{"a", ""}), list(text("a"), text(""))},
		{"no texts", attribute.StringSliceValue(nil), list()},
		{"booleans", attribute.BoolSliceValue([]bool{false, true}), list(boolean(false), boolean(true))},
		{"integers", attribute.Int64SliceValue([]int64{0, -1}), list(integer(0), integer(-1))},
		{"floats", attribute.Float64SliceValue([]float64{0, 2}), list(number(0), number(2))},
		{"mixed", attribute.SliceValue(attribute.IntValue(1), attribute.StringValue("a")), list(integer(1), text("a"))},
		{"map", attribute.MapValue(attribute.Int("k", 1)), &common.AnyValue{Value: &common.AnyValue_KvlistValue{KvlistValue: &common.KeyValueList{Values: []*common.KeyValue{{Key: "k", Value: integer(1)}}}}}},
		{"unknown", attribute.Value{}, &common.AnyValue{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := decode(t, tracetest.SpanStubs{{Attributes: []attribute.KeyValue{{Key: "k", Value: tt.v}}}}.Snapshots())
			got := m.ResourceSpans[0].ScopeSpans[0].Spans[0].Attributes
			if len(got) != 1 || got[0].Key != "k" {
				t.Fatalf("attributes are %v", got)
			}
			wantMessage(t, got[0].Value, tt.want)
		})
	}
}

// The protobuf library accepts each message that forEachField accepts, and the
// values are the same.
func TestForEachField(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.SliceOf(rapid.Byte()).Draw(t, "data")
		if rapid.Bool().Draw(t, "valid") {
			data = message(nil).addVarint(rapid.IntRange(1, 9).Draw(t, "field"), rapid.Uint64().Draw(t, "v")).addBytes(2, data).addFixed32(3, 1).addFixed64(4, 1)
		}
		var got []any
		err := message(data).forEachField(func(field, v uint64, b []byte) error {
			got = append(got, field, v, string(b))
			return nil
		})
		if err != nil {
			return
		}
		want, err := fields(data)
		if err != nil {
			t.Fatalf("%x is accepted, but %v", data, err)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

// fields lists a message as the protobuf library reads it.
func fields(data []byte) ([]any, error) {
	var all []any
	for len(data) > 0 {
		field, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		data = data[n:]
		var v uint64
		var b []byte
		switch n = protowire.ConsumeFieldValue(field, kind, data); kind {
		case protowire.VarintType:
			v, n = protowire.ConsumeVarint(data)
		case protowire.BytesType:
			b, n = protowire.ConsumeBytes(data)
		}
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		all = append(all, uint64(field), v, string(b))
		data = data[n:]
	}
	return all, nil
}
