package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/loadout-dev/loadout/session"
)

// Turn is the span of a turn of a conversation, with those of what was called and loaded
// in it. Its methods are called one at a time; of a nil one they do nothing.
type Turn struct {
	tracer trace.Tracer
	ctx    context.Context
	span   trace.Span
	names  map[string]string // of calls that the model wants, by their ID
	open   map[string]call
}

// call is one that is under way.
type call struct {
	span  trace.Span
	began time.Time
}

// Turn begins the span of a turn, in the conversation of an ID with an agent, "" for
// nobody in particular. The context is for all that the turn does.
func (t *Tracer) Turn(ctx context.Context, conversation, agent string) (context.Context, *Turn) {
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
	return ctx, &Turn{tracer: t.tracer, ctx: ctx, span: span, names: map[string]string{}, open: map[string]call{}}
}

// Step takes the next event of the conversation.
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
	case e.Started != nil:
		t.begin(e.Started.Call, at)
	case e.Result != nil:
		t.end(e.Result, at)
	case e.Loaded != nil:
		t.loaded(e.Loaded, at)
	}
}

func (t *Turn) begin(id string, at time.Time) {
	name := t.names[id]
	_, span := t.tracer.Start(t.ctx, "execute_tool "+name, trace.WithTimestamp(at), trace.WithAttributes(
		attribute.String("gen_ai.operation.name", "execute_tool"), attribute.String("gen_ai.tool.name", name), attribute.String("gen_ai.tool.call.id", id)))
	t.open[id] = call{span, at}
}

func (t *Turn) end(r *session.Returned, at time.Time) {
	c, ok := t.open[r.Call]
	if !ok { // it was denied before it began
		return
	}
	delete(t.open, r.Call)
	if r.Error {
		fail(c.span, "tool")
	}
	c.span.End(trace.WithTimestamp(at))
}

// loaded is a span from the beginning of the call that wanted the skill, as far as there
// is one.
func (t *Turn) loaded(l *session.Loaded, at time.Time) {
	parent, began := t.ctx, at
	for id, c := range t.open {
		if t.names[id] == "load_skill" && c.began.Before(began) {
			parent, began = trace.ContextWithSpan(t.ctx, c.span), c.began
		}
	}
	about := []attribute.KeyValue{attribute.String("gen_ai.operation.name", "load_skill"), attribute.String("gen_ai.skill.name", l.Skill.Name),
		attribute.String("gen_ai.skill.digest", l.Digest), attribute.String("gen_ai.skill.origin", l.Skill.Origin)}
	if l.Version != "" {
		about = append(about, attribute.String("gen_ai.skill.version", l.Version))
	}
	_, span := t.tracer.Start(parent, "load_skill "+l.Skill.Name, trace.WithTimestamp(began), trace.WithAttributes(about...))
	span.End(trace.WithTimestamp(at))
}

// End ends the turn, with why it is over. What is still under way then is broken off.
func (t *Turn) End(reason string, failed bool) {
	if t == nil {
		return
	}
	for _, c := range t.open {
		fail(c.span, "broken_off")
		c.span.End()
	}
	t.span.SetAttributes(attribute.String("loadout.turn.reason", reason))
	if failed {
		fail(t.span, reason)
	}
	t.span.End()
}

// fail marks a span by a word for what went wrong. The text of an error may repeat what
// was said.
func fail(span trace.Span, what string) {
	span.SetStatus(codes.Error, "")
	span.SetAttributes(attribute.String("error.type", what))
}
