package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"reflect"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/hub/chat"
)

// Bounds of streams of events.
const (
	streamsEach = 50
	streamsAll  = 5000
	streamBeat  = 15 * time.Second // proxies close what is silent for longer
)

const eventsSummary = `What is told of a conversation, as server-sent events: id is the number of an event, event its type, and data the event as in the schema ChatEvent.
A client that comes back with the number of the last one, as Last-Event-ID or after, on any node, misses nothing. The event bye says that the node ends, and problem, as in the schema Problem, why the stream does.`

// sessionStreams adds the operations that go on.
func (h *Hub) sessionStreams(api huma.API) {
	h.streams = newCrowd("streams of events", streamsEach, streamsAll, streamBeat, slowTime)
	h.sockets = newCrowd("WebSockets", socketsEach, socketsAll, socketBeat, slowTime)
	api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[chat.Event](), true, "")
	watch := operation("watch-session", "GET", "/sessions/{session}/events", "What is told of a conversation, as it happens")
	watch.Description = eventsSummary
	watch.Responses = streamed("200", "text/event-stream")
	add(h, api, watch, h.watchSession)
	add(h, api, socketOperation(), h.openSocket)
}

type watchInput struct {
	SessionPath
	After  string `query:"after" maxLength:"20" doc:"The number of the last event that is known"`
	Last   string `header:"Last-Event-ID" maxLength:"20" doc:"Likewise, as browsers send it; it counts more"`
	Follow bool   `query:"follow" default:"true" doc:"Whether to go on; else it ends where nothing more was told as yet"`
	Attend bool   `query:"attend" doc:"Whether the client carries out skill:requests, which are events of the type ask and the kind action, and says what came of them: POST /api/v1/skill-responses"`
}

func (h *Hub) watchSession(ctx context.Context, in *watchInput) (*huma.StreamResponse, error) {
	p := account.FromContext(ctx)
	where, text := "header.Last-Event-ID", in.Last
	if text == "" {
		where, text = "query.after", in.After
	}
	after, err := number(where, text)
	if err != nil {
		return nil, err
	}
	if _, err := h.chat.Get(ctx, p, in.Session); err != nil {
		return nil, err
	}
	if in.Attend {
		if err := account.Check(p, account.AskAnswer, account.Of(p.User)); err != nil {
			return nil, err
		}
	}
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		r, w := humago.Unwrap(ctx)
		leave, err := h.streams.enter(p.User)
		if err != nil {
			h.refuse(w, r, err)
			return
		}
		defer leave()
		h.stream(w, r, func(ctx context.Context) iter.Seq2[chat.Event, error] {
			switch {
			case !in.Follow:
				return h.chat.Told(ctx, p, in.Session, after)
			case in.Attend:
				return h.chat.Attend(ctx, p, in.Session, after)
			}
			return h.chat.Watch(ctx, p, in.Session, after)
		})
	}}, nil
}

// told is what a watch yields.
type told struct {
	event chat.Event
	err   error
}

// stream sends events until there are no more, the client is gone, or the node ends.
func (h *Hub) stream(w http.ResponseWriter, r *http.Request, watch func(context.Context) iter.Seq2[chat.Event, error]) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // proxies are to pass on what there is
	if r.Method == http.MethodHead {
		return
	}
	out := &patient{w, h.streams.slow}
	if out.say(": events\n\n") != nil {
		return
	}
	ctx, stop := context.WithCancel(r.Context())
	var watching sync.WaitGroup
	defer watching.Wait()
	defer stop()
	events := make(chan told)
	watching.Go(func() {
		defer close(events)
		for event, err := range watch(ctx) {
			select {
			case events <- told{event, err}:
			case <-ctx.Done():
				return
			}
		}
	})
	h.pass(ctx, out, events)
}

// pass sends what comes, and a sign of life where nothing does.
func (h *Hub) pass(ctx context.Context, out *patient, events <-chan told) {
	beat := time.NewTicker(h.streams.beat)
	defer beat.Stop()
	ended, forget := h.inUse.hold(account.FromContext(ctx))
	defer forget()
	for {
		var err error
		select {
		case <-ended:
			err = errTokenEnded
		case <-h.Draining():
			err = chat.ErrClosed
		case <-beat.C:
			if err = h.still(ctx, visitOf(ctx)); err == nil {
				err = out.say(":\n\n")
			}
		case t, ok := <-events:
			if !ok {
				return
			}
			if err = t.err; err == nil {
				err = out.event(string(t.event.Type), t.event.Seq, t.event)
			}
		}
		if err != nil {
			h.sayWhy(ctx, out, err)
			return
		}
	}
}

// sayWhy says why a stream ends before its time, where anybody is there to hear it.
func (h *Hub) sayWhy(ctx context.Context, out *patient, err error) {
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, chat.ErrClosed):
		out.event("bye", 0, struct{}{})
	default:
		out.event("problem", 0, h.problem(ctx, err))
	}
}

// event sends an event, without a number where that is 0.
func (p *patient) event(name string, seq int64, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	id := ""
	if seq > 0 {
		id = fmt.Sprintf("id: %d\n", seq)
	}
	return p.say(fmt.Sprintf("%sevent: %s\ndata: %s\n\n", id, name, data))
}
