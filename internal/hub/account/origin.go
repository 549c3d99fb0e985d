package account

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/address"
)

// forwarding lists headers that proxies add, in addition to X-Forwarded-*. A
// request with any of them may come from another machine.
var forwarding = []string{"Forwarded", "Via", "X-Real-Ip", "True-Client-Ip", "Cf-Connecting-Ip", "X-Client-Ip", "X-Cluster-Client-Ip"}

// NotLocalError reports why a request to a hub without accounts is not local.
// Respond with status 403.
type NotLocalError struct{ Reason string }

func (e *NotLocalError) Error() string {
	return "a hub without accounts only accepts requests from this machine: " + e.Reason
}

// LocalOnly fails with a [*NotLocalError] for a request that a hub without accounts
// must reject: one from another machine, for a host other than localhost, or
// through a proxy. If other hosts were accepted, a page on another site could
// access the hub through a browser on this machine.
func LocalOnly(r *http.Request) error {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !at.Addr().Unmap().IsLoopback() {
		return &NotLocalError{Reason: "the request comes from another machine"}
	}
	if !address.IsLoopback(r.Host) {
		return &NotLocalError{Reason: fmt.Sprintf("%.100q is not localhost", r.Host)}
	}
	for name := range r.Header {
		if strings.HasPrefix(name, "X-Forwarded") || slices.Contains(forwarding, name) {
			return &NotLocalError{Reason: "the request came through a proxy (" + name + "); set up accounts, or configure the proxy not to forward requests"}
		}
	}
	return nil
}

// OriginGuard rejects requests from pages on other sites, because browsers may send
// this hub's cookies with them. It is safe for concurrent use.
type OriginGuard struct {
	guard http.CrossOriginProtection
	own   []string
}

// NewOriginGuard returns a guard that accepts requests from pages on the requested
// host and on the given origins. Pass the hub's public URL, such as
// https://hub.example.com, because a proxy may change the Host header.
func NewOriginGuard(origins ...string) (*OriginGuard, error) {
	p := &OriginGuard{}
	for _, o := range origins {
		o = strings.ToLower(strings.TrimSuffix(o, "/"))
		if err := p.guard.AddTrustedOrigin(o); err != nil {
			return nil, fmt.Errorf("invalid origin %.200q: want a URL such as https://hub.example.com", o)
		}
		p.own = append(p.own, o)
	}
	return p, nil
}

// ErrCrossOrigin is returned if a page on another site made the request. Respond
// with status 403.
var ErrCrossOrigin = errors.New("request comes from a page on another site")

// Check fails with [ErrCrossOrigin] if a page on another site makes a request that
// changes something or opens a WebSocket. It accepts requests without an origin,
// which come from programs other than browsers. Call it for every request that is
// authenticated by a cookie, or only by the fact that it comes from this machine.
// Requests with a token do not need it.
func (p *OriginGuard) Check(r *http.Request) error {
	if p.guard.Check(r) != nil {
		return ErrCrossOrigin
	}
	// A WebSocket is opened with GET, which is accepted above. Its messages are
	// not checked again.
	if r.Header.Get("Upgrade") != "" && !p.isOwn(r) {
		return ErrCrossOrigin
	}
	return nil
}

// isOwn reports whether a request comes from a page on this hub or does not come
// from a page at all.
func (p *OriginGuard) isOwn(r *http.Request) bool {
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		site := r.Header.Get("Sec-Fetch-Site")
		return site == "" || site == "none" || site == "same-origin"
	}
	u, err := url.Parse(origins[0])
	if err != nil || u.Host == "" || len(origins) > 1 {
		return false
	}
	return strings.EqualFold(u.Host, r.Host) || slices.Contains(p.own, strings.ToLower(origins[0]))
}
