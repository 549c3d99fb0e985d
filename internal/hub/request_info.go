package hub

import (
	"context"
	"net/http"
	"net/netip"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
)

const (
	// maxBody limits the body of any request; most operations accept much less.
	maxBody = 32 << 20
	// responseTimeout limits writing a response. Streams extend it with an
	// [http.ResponseController].
	responseTimeout = time.Minute
	// idleTimeout limits the wait for the rest of an unread body. Without it,
	// any client could hold a connection forever.
	idleTimeout = 5 * time.Second
)

// requestInfo holds data of a request that is not in the request itself.
type requestInfo struct {
	id            string
	began         time.Time
	request       *http.Request
	client        netip.Addr // behind trusted proxies
	route         string     // pattern of the mux, once known
	principal     account.Principal
	login         []byte // hash of the browser sign-in, if a cookie authenticated the request
	tooManyValues bool   // the body had too many values
}

type requestInfoKey struct{}

// withRequestInfo returns a context with the info of a request.
func withRequestInfo(ctx context.Context, v *requestInfo) context.Context {
	return context.WithValue(ctx, requestInfoKey{}, v)
}

// requestInfoFrom returns the info of a context, an empty one if there is none.
func requestInfoFrom(ctx context.Context) *requestInfo {
	if v, ok := ctx.Value(requestInfoKey{}).(*requestInfo); ok {
		return v
	}
	return &requestInfo{}
}

// setDeadlines limits the wait for the rest of a body.
func setDeadlines(w http.ResponseWriter) {
	http.NewResponseController(w).SetReadDeadline(time.Now().Add(idleTimeout)) // not supported by every server
}
