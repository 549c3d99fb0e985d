package api

import (
	"context"
	"net/http"
	"net/netip"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
)

const (
	// MaxBody limits the body of any request; most operations accept much less.
	MaxBody = 32 << 20
	// ResponseTimeout limits writing a response. Streams extend it with an
	// [http.ResponseController].
	ResponseTimeout = time.Minute
	// idleTimeout limits the wait for the rest of an unread body. Without it,
	// any client could hold a connection forever.
	idleTimeout = 5 * time.Second
)

// Request holds data of a request that is not in the request itself.
type Request struct {
	ID            string
	Began         time.Time
	HTTP          *http.Request
	Client        netip.Addr // behind trusted proxies
	Route         string     // pattern of the mux, once known
	Principal     account.Principal
	Login         []byte // hash of the browser sign-in, if a cookie authenticated the request
	tooManyValues bool   // the body had too many values
}

type requestKey struct{}

// WithRequest returns a context with the info of a request.
func WithRequest(ctx context.Context, v *Request) context.Context {
	return context.WithValue(ctx, requestKey{}, v)
}

// RequestFrom returns the info of a context, an empty one if there is none.
func RequestFrom(ctx context.Context) *Request {
	if v, ok := ctx.Value(requestKey{}).(*Request); ok {
		return v
	}
	return &Request{}
}

// LimitBodyRest limits the wait for the rest of a body.
func LimitBodyRest(w http.ResponseWriter) {
	http.NewResponseController(w).SetReadDeadline(time.Now().Add(idleTimeout)) // not supported by every server
}
