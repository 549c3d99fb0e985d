package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/session"
)

// Turn is the span of a conversation turn. Tool calls and loaded skills are its child spans.
// It is not safe for concurrent use. All methods of a nil Turn do nothing.
type Turn struct {
	tracer trace.Tracer
	ctx    context.Context
	span   trace.Span
	names  map[string]string   // tool names by call ID
	open   map[string]openCall // running calls by call ID
}

// openCall is the span of a tool call that has not returned.
type openCall struct {
	span  trace.Span
	start time.Time
}

// StartTurn starts the span of a turn in the conversation with the given ID. agent is ""
// for the default agent. Use the returned context for all work in the turn.
func (t *Tracer) StartTurn(ctx context.Context, conversation, agent string) (context.Context, *Turn) {
	if t == nil {
		return ctx, nil
	}
	name := "invoke_agent"
	about := []attribute.KeyValue{attribute.String("gen_ai.operation.name", name), attribute.String("gen_ai.conversation.id", conversation)}
	if agent != "" {
		name += " " + agent
		about = append(about, attribute.String("gen_ai.agent.name", agent))
	}
	ctx, span := t.tracer.Start(ctx, name, trace.WithAttributes(about...))
	return ctx, &Turn{tracer: t.tracer, ctx: ctx, span: span, names: map[string]string{}, open: map[string]openCall{}}
}

// Step records the next event of the conversation.
func (t *Turn) Step(e *session.Event) {
	if t == nil {
		return
	}
	at := e.Time
	if at.IsZero() {
		at = time.Now()
	}
	switch {
	case e.Message != nil:
		for _, c := range e.Message.Calls {
			t.names[c.ID] = c.Name
		}
	case e.CallStarted != nil:
		t.startCall(e.CallStarted.Call, at)
	case e.Result != nil:
		t.endCall(e.Result, at)
	case e.Loaded != nil:
		t.recordLoad(e.Loaded, at)
	}
}

func (t *Turn) startCall(id string, at time.Time) {
	name := t.names[id]
	_, span := t.tracer.Start(t.ctx, "execute_tool "+name, trace.WithTimestamp(at), trace.WithAttributes(
		attribute.String("gen_ai.operation.name", "execute_tool"), attribute.String("gen_ai.tool.name", name), attribute.String("gen_ai.tool.call.id", id)))
	t.open[id] = openCall{span, at}
}

func (t *Turn) endCall(r *session.CallResult, at time.Time) {
	c, ok := t.open[r.Call]
	if !ok { // denied before it started
		return
	}
	delete(t.open, r.Call)
	if r.Error {
		markFailed(c.span, "tool")
	}
	c.span.End(trace.WithTimestamp(at))
}

// recordLoad adds the span of a loaded skill. The span starts when the model called
// load_skill, or at the event if the user loaded the skill.
func (t *Turn) recordLoad(l *session.SkillLoad, at time.Time) {
	parent, began := t.ctx, at
	for id, c := range t.open {
		if t.names[id] == toolname.LoadSkill && c.start.Before(began) {
			parent, began = trace.ContextWithSpan(t.ctx, c.span), c.start
		}
	}
	about := []attribute.KeyValue{attribute.String("gen_ai.operation.name", toolname.LoadSkill), attribute.String("gen_ai.skill.name", l.Skill.Name),
		attribute.String("gen_ai.skill.digest", l.Digest), attribute.String("gen_ai.skill.origin", l.Skill.Origin)}
	if l.Version != "" {
		about = append(about, attribute.String("gen_ai.skill.version", l.Version))
	}
	_, span := t.tracer.Start(parent, "load_skill "+l.Skill.Name, trace.WithTimestamp(began), trace.WithAttributes(about...))
	span.End(trace.WithTimestamp(at))
}

// End ends the span of the turn and records why the turn ended. Calls that have not
// returned are marked as failed.
func (t *Turn) End(reason string, failed bool) {
	if t == nil {
		return
	}
	for _, c := range t.open {
		markFailed(c.span, "broken_off")
		c.span.End()
	}
	t.span.SetAttributes(attribute.String("loadout.turn.reason", reason))
	if failed {
		markFailed(t.span, reason)
	}
	t.span.End()
}

// markFailed sets a span's status to error, and its error.type to errorType.
func markFailed(span trace.Span, errorType string) {
	span.SetStatus(codes.Error, "")
	span.SetAttributes(attribute.String("error.type", errorType))
}
