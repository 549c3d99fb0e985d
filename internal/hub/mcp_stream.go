package hub

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/loadout-dev/loadout/internal/account"
)

// How much is done at once on a node, by MCP, and how often who listens has to be let in
// again.
const (
	maxCalls, maxAllCalls         = 64, 4096 // of a user, and of all
	maxListeners, maxAllListeners = 32, 8192
	admittedEvery                 = 10 * time.Second
)

// whileAdmitted returns a context for who listens: it ends when the endpoint is put
// together anew, the hub is about to end, or the same request would not be let in any
// more. The client then asks again, and finds out.
func (h *Hub) whileAdmitted(r *http.Request, e *endpoint) (context.Context, func()) {
	ctx, cancel := context.WithCancel(r.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer cancel()
		look := time.NewTicker(h.endpoints.listeners.beat)
		defer look.Stop()
		ended, forget := h.inUse.hold(visitOf(ctx).by)
		defer forget()
		for {
			select {
			case <-ctx.Done():
				return
			case <-h.draining:
				return
			case <-e.gone:
				return
			case <-ended:
				return
			case <-look.C:
				if h.stillAdmitted(r.WithContext(ctx), e) {
					continue
				}
				return
			}
		}
	}()
	return ctx, func() { cancel(); <-done }
}

// stillAdmitted reports whether a request would come to the same endpoint now. Where that
// cannot be known it would.
func (h *Hub) stillAdmitted(r *http.Request, e *endpoint) bool {
	ctx := r.Context()
	if err := h.still(ctx, visitOf(ctx)); err != nil {
		return false
	}
	p, err := h.principal(ctx, e.user)
	if err != nil {
		return !errors.Is(err, account.ErrRefused)
	}
	made, err := h.endpoints.made(ctx, p)
	return err != nil || made == e.made
}

// slowAnswer is written for as long as there is something to say, where each part has the
// time that other answers have as a whole.
type slowAnswer struct{ http.ResponseWriter }

// within has what is written next be taken in the time of an answer, or in any.
func (a *slowAnswer) within(limited bool) {
	at := time.Time{}
	if limited {
		at = time.Now().Add(answerTime)
	}
	http.NewResponseController(a.ResponseWriter).SetWriteDeadline(at) // not with every server
}

func (a *slowAnswer) Write(b []byte) (int, error) {
	a.within(true)
	defer a.within(false)
	return a.ResponseWriter.Write(b)
}

// FlushError is for [http.ResponseController].
func (a *slowAnswer) FlushError() error {
	a.within(true)
	defer a.within(false)
	return http.NewResponseController(a.ResponseWriter).Flush()
}

// Unwrap is for [http.ResponseController].
func (a *slowAnswer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
