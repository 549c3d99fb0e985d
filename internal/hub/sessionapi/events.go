package sessionapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"reflect"
	"strconv"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/auth"
	"github.com/loadout-dev/loadout/internal/hub/chat"
)

// Event stream limits.
const (
	maxStreamsEach = 50
	maxStreams     = 5000
	streamInterval = 15 * time.Second // proxies close idle connections
)

const eventsSummary = `The events of a conversation as server-sent events: id is the number of an event, event its type, and data the event as in the schema ChatEvent.
A client that reconnects to any node with the number of the last event, as Last-Event-ID or after, misses nothing. The event bye says that the node shuts down, and problem, as in the schema Problem, why the stream ends.`

// sessionStreams adds the streaming operations.
func (h *Handlers) sessionStreams() {
	h.Server.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[chat.Event](), true, "")
	watch := api.Operation("watch-session", "GET", "/sessions/{session}/events", "Stream the events of a conversation")
	watch.Description = eventsSummary
	watch.Responses = streamResponses("200", "text/event-stream")
	api.Add(h.Server, watch, h.watchSession)
	list := api.Operation("list-session-events", "GET", "/sessions/{session}/history", "List the events of a conversation so far, in pages of about 4 MiB")
	list.Description = "Faster than watch-session for a long conversation. A client that watches from the last listed event on misses nothing."
	api.Add(h.Server, list, h.listEvents)
	api.Add(h.Server, socketOperation(), h.openSocket)
}

// EventsInput selects events of a conversation.
type EventsInput struct {
	SessionPath
	After  string `query:"after" maxLength:"20" doc:"Number of the last known event"`
	Attend bool   `query:"attend" doc:"Whether the client executes skill:requests (events of type ask and kind action) and sends their results to POST /api/v1/skill-responses"`
}

type watchInput struct {
	EventsInput
	Last   string `header:"Last-Event-ID" maxLength:"20" doc:"Same as after, sent by browsers; takes precedence"`
	Follow bool   `query:"follow" default:"true" doc:"Whether to wait for more events"`
}

func (h *Handlers) watchSession(ctx context.Context, in *watchInput) (*huma.StreamResponse, error) {
	p := account.FromContext(ctx)
	where, text := "header.Last-Event-ID", in.Last
	if text == "" {
		where, text = "query.after", in.After
	}
	after, err := parseEventNumber(where, text)
	if err != nil {
		return nil, err
	}
	if _, err := h.Chat.Get(ctx, p, in.Session); err != nil {
		return nil, err
	}
	if err := in.checkAttend(p); err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		r, w := humago.Unwrap(ctx)
		release, err := h.Streams.Enter(p.User)
		if err != nil {
			h.Server.WriteProblem(w, r, err)
			return
		}
		defer release()
		h.stream(w, r, func(ctx context.Context) iter.Seq2[chat.Event, error] {
			switch {
			case !in.Follow:
				return h.Chat.ReadEvents(ctx, p, in.Session, after, in.Attend)
			case in.Attend:
				return h.Chat.WatchAsClient(ctx, p, in.Session, after)
			}
			return h.Chat.Watch(ctx, p, in.Session, after)
		})
	}}, nil
}

// checkAttend returns an error if Attend is set but the principal may not execute
// skill:requests.
func (in *EventsInput) checkAttend(p account.Principal) error {
	if !in.Attend {
		return nil
	}
	return account.Check(p, account.ApprovalAnswer, account.OwnedBy(p.User))
}

// eventList is a page of the events of a conversation.
type eventList struct {
	Items []encodedEvent `json:"items" nullable:"false"`
	Next  string         `json:"next,omitempty" doc:"Pass as after to get the next page; absent on the last page"`
}

// encodedEvent is a [chat.Event] in JSON. It is encoded once, for its size and the
// response.
type encodedEvent json.RawMessage

// MarshalJSON returns e.
func (e encodedEvent) MarshalJSON() ([]byte, error) { return e, nil }

// Schema returns the schema of [chat.Event].
func (encodedEvent) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[chat.Event](), true, "")
}

// maxEventList is the number of bytes of events after which a page ends.
const maxEventList = 4 << 20

func (h *Handlers) listEvents(ctx context.Context, in *EventsInput) (*api.Body[eventList], error) {
	p := account.FromContext(ctx)
	after, err := parseEventNumber("query.after", in.After)
	if err != nil {
		return nil, err
	}
	if err := in.checkAttend(p); err != nil {
		return nil, err
	}
	out := eventList{Items: []encodedEvent{}}
	size := 0
	for event, err := range h.Chat.ReadEvents(ctx, p, in.Session, after, in.Attend) {
		if err != nil {
			return nil, err
		}
		data, err := json.Marshal(event)
		if err != nil {
			return nil, err
		}
		out.Items = append(out.Items, data)
		if size += len(data); size >= maxEventList {
			out.Next = strconv.FormatInt(event.Seq, 10)
			break
		}
	}
	return api.BodyOf(out, nil)
}

// watchedEvent is an event or an error from watching a conversation.
type watchedEvent struct {
	event chat.Event
	err   error
}

// stream sends events until there are no more, the client disconnects, or the node
// shuts down.
func (h *Handlers) stream(w http.ResponseWriter, r *http.Request, watch func(context.Context) iter.Seq2[chat.Event, error]) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // disable buffering in proxies
	if r.Method == http.MethodHead {
		return
	}
	out := &deadlineWriter{w, h.Streams.Slow}
	if out.writeText(": events\n\n") != nil {
		return
	}
	ctx, stop := context.WithCancel(r.Context())
	var watching sync.WaitGroup
	defer watching.Wait()
	defer stop()
	events := make(chan watchedEvent)
	watching.Go(func() {
		defer close(events)
		for event, err := range watch(ctx) {
			select {
			case events <- watchedEvent{event, err}:
			case <-ctx.Done():
				return
			}
		}
	})
	h.forwardEvents(ctx, out, events)
}

// forwardEvents sends events. While there are none, it sends comments as
// heartbeats.
func (h *Handlers) forwardEvents(ctx context.Context, out *deadlineWriter, events <-chan watchedEvent) {
	beat := time.NewTicker(h.Streams.Beat)
	defer beat.Stop()
	ended, forget := h.Credentials.Watch(api.RequestFrom(ctx))
	defer forget()
	for {
		var err error
		select {
		case <-ended:
			err = auth.EndedError(api.RequestFrom(ctx))
		case <-h.Draining:
			err = chat.ErrClosed
		case <-beat.C:
			if err = h.Gate.CheckValid(ctx, api.RequestFrom(ctx)); err == nil {
				err = out.writeText(":\n\n")
			}
		case t, ok := <-events:
			if !ok {
				return
			}
			if err = t.err; err == nil {
				err = out.writeEvent(string(t.event.Type), t.event.Seq, t.event)
			}
		}
		if err != nil {
			h.sendEnd(ctx, out, err)
			return
		}
	}
}

// sendEnd sends a connected client the reason why the stream ends early.
func (h *Handlers) sendEnd(ctx context.Context, out *deadlineWriter, err error) {
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, chat.ErrClosed):
		out.writeEvent("bye", 0, struct{}{})
	default:
		out.writeEvent("problem", 0, h.Server.Problem(ctx, err))
	}
}

// writeEvent sends an event. It omits the id if seq is 0.
func (p *deadlineWriter) writeEvent(name string, seq int64, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	id := ""
	if seq > 0 {
		id = fmt.Sprintf("id: %d\n", seq)
	}
	return p.writeText(fmt.Sprintf("%sevent: %s\ndata: %s\n\n", id, name, data))
}
