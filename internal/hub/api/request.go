package api

import (
	"context"
	"net/http"
	"net/netip"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
)

const (
	// MaxBody is the maximum size of any request body; most operations accept
	// much less.
	MaxBody = 32 << 20
	// MaxMigration is the maximum size of an upload for a migration. An exported
	// conversation contains all its images, in base64.
	MaxMigration = 96 << 20
	// ResponseTimeout is the timeout for writing a response. Streams extend it
	// with an [http.ResponseController].
	ResponseTimeout = time.Minute
	// idleTimeout is the timeout for the rest of an unread body. Without it, any
	// client could hold a connection open forever.
	idleTimeout = 5 * time.Second
)

// Request holds request data that is not in the [http.Request] itself.
type Request struct {
	ID            string
	Began         time.Time
	HTTP          *http.Request
	Client        netip.Addr // client address, behind trusted proxies
	Route         string     // mux pattern, once known
	Principal     account.Principal
	Login         []byte // hash of the browser's sign-in token, if authenticated by cookie
	Failure       int    // status of a failure after the response began with status 200; 0 if none
	tooManyValues bool   // whether the body had too many values
}

type requestKey struct{}

// WithRequest returns a context that carries v.
func WithRequest(ctx context.Context, v *Request) context.Context {
	return context.WithValue(ctx, requestKey{}, v)
}

// RequestFrom returns the request data in ctx, or empty data if there is none.
func RequestFrom(ctx context.Context) *Request {
	if v, ok := ctx.Value(requestKey{}).(*Request); ok {
		return v
	}
	return &Request{}
}

// LimitBodyRest sets the read deadline for the part of a request body that has
// not been read yet.
func LimitBodyRest(w http.ResponseWriter) {
	http.NewResponseController(w).SetReadDeadline(time.Now().Add(idleTimeout)) // not supported by every server
}
