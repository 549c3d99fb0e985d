package mcpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
)

// Limits on MCP requests per node, and the re-authentication interval.
const (
	maxCalls, maxAllCalls         = 64, 4096 // per user, and in total
	maxListeners, maxAllListeners = 32, 8192
	admittedEvery                 = 10 * time.Second
)

// withAdmission returns the context for a subscription. It is cancelled when the
// endpoint changes, the node shuts down, or the request would no longer be
// accepted. The client then subscribes again.
func (h *Handlers) withAdmission(r *http.Request, e *endpoint) (context.Context, func()) {
	ctx, cancel := context.WithCancel(r.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer cancel()
		look := time.NewTicker(h.Listeners.Beat)
		defer look.Stop()
		ended, forget := h.Credentials.Watch(api.RequestFrom(ctx))
		defer forget()
		for {
			select {
			case <-ctx.Done():
				return
			case <-h.Draining:
				return
			case <-e.gone:
				return
			case <-ended:
				return
			case <-look.C:
				if h.isAdmitted(r.WithContext(ctx), e) {
					continue
				}
				return
			}
		}
	}()
	return ctx, func() { cancel(); <-done }
}

// isAdmitted reports whether the same request would now get the same endpoint. If
// this cannot be determined, it returns true.
func (h *Handlers) isAdmitted(r *http.Request, e *endpoint) bool {
	ctx := r.Context()
	if err := h.Gate.CheckValid(ctx, api.RequestFrom(ctx)); err != nil {
		return false
	}
	p, err := h.Gate.PrincipalOf(ctx, e.user)
	if err != nil {
		return !errors.Is(err, account.ErrInvalidCredentials)
	}
	h.endpoints.mu.Lock()
	made := e.current
	h.endpoints.mu.Unlock()
	now, err := h.endpoints.readState(ctx, p, e.at, made)
	return err != nil || now.equal(made)
}

// timeoutWriter sets a deadline for each write instead of one for the whole
// response.
type timeoutWriter struct{ http.ResponseWriter }

// withTimeout sets or clears the write deadline.
func (a *timeoutWriter) withTimeout(limited bool) {
	at := time.Time{}
	if limited {
		at = time.Now().Add(api.ResponseTimeout)
	}
	http.NewResponseController(a.ResponseWriter).SetWriteDeadline(at) // not supported by every server
}

func (a *timeoutWriter) Write(b []byte) (int, error) {
	a.withTimeout(true)
	defer a.withTimeout(false)
	return a.ResponseWriter.Write(b)
}

// FlushError implements flushing for [http.ResponseController].
func (a *timeoutWriter) FlushError() error {
	a.withTimeout(true)
	defer a.withTimeout(false)
	return http.NewResponseController(a.ResponseWriter).Flush()
}

// Unwrap gives [http.ResponseController] access to the wrapped writer.
func (a *timeoutWriter) Unwrap() http.ResponseWriter { return a.ResponseWriter }
