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

// forwarding lists headers that proxies add, besides X-Forwarded-*. A request
// with one of them may come from anywhere.
var forwarding = []string{"Forwarded", "Via", "X-Real-Ip", "True-Client-Ip", "Cf-Connecting-Ip", "X-Client-Ip", "X-Cluster-Client-Ip"}

// NotLocalError says why a request to a hub without accounts is not local.
// Answer with 403.
type NotLocalError struct{ Reason string }

func (e *NotLocalError) Error() string {
	return "a hub without accounts serves this machine only: " + e.Reason
}

// LocalOnly fails with a [*NotLocalError] for requests that a hub without
// accounts must not serve: from another machine, for a host name that is not
// loopback, or through a proxy. Under another host name, a web page of a third
// party could reach the hub through a browser on this machine.
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

// OriginGuard rejects requests that pages of other sites make. Browsers send
// our cookies with those too. It is safe for concurrent use.
type OriginGuard struct {
	guard http.CrossOriginProtection
	own   []string
}

// NewOriginGuard returns a guard that trusts the host of each request and the
// given origins, for example https://hub.example.com: the public address of a
// hub behind a proxy that changes Host.
func NewOriginGuard(origins ...string) (*OriginGuard, error) {
	p := &OriginGuard{}
	for _, o := range origins {
		o = strings.ToLower(strings.TrimSuffix(o, "/"))
		if err := p.guard.AddTrustedOrigin(o); err != nil {
			return nil, fmt.Errorf("not an origin like https://hub.example.com: %.200q", o)
		}
		p.own = append(p.own, o)
	}
	return p, nil
}

// ErrCrossOrigin says that a page of another site made a request. Answer with
// 403.
var ErrCrossOrigin = errors.New("request from a page of another site")

// Check fails with [ErrCrossOrigin] for a request of another site's page that
// changes something or opens a WebSocket. Programs other than browsers send no
// origin and pass. Call it for every request that is authenticated by a cookie
// or by coming from this machine; requests with a token do not need it.
func (p *OriginGuard) Check(r *http.Request) error {
	if p.guard.Check(r) != nil {
		return ErrCrossOrigin
	}
	// HTTP counts opening a WebSocket as reading, so it passes above; messages
	// over it are not checked again.
	if r.Header.Get("Upgrade") != "" && !p.isOwn(r) {
		return ErrCrossOrigin
	}
	return nil
}

// isOwn reports whether a request comes from one of our pages or from no page.
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
