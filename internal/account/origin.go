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

// forwarding are headers that proxies add, besides X-Forwarded and what begins so: a
// request that has one is from wherever they say, whatever the address at the other
// end is.
var forwarding = []string{"Forwarded", "Via", "X-Real-Ip", "True-Client-Ip", "Cf-Connecting-Ip", "X-Client-Ip", "X-Cluster-Client-Ip"}

// NotLocalError says why a request is not one from this machine for itself. Answer
// with 403.
type NotLocalError struct{ Why string }

func (e *NotLocalError) Error() string {
	return "a hub without accounts serves this machine alone: " + e.Why
}

// LocalOnly fails with a [*NotLocalError] for a request that a hub of one person,
// where nobody signs in, must not serve: one from another machine, or for a name that
// is not loopback's, under which a page of somebody else could reach it in a browser
// on this machine, or one that a proxy passed on.
func LocalOnly(r *http.Request) error {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !at.Addr().Unmap().IsLoopback() {
		return &NotLocalError{Why: "the request is from another"}
	}
	if !address.IsLoopback(r.Host) {
		return &NotLocalError{Why: fmt.Sprintf("%.100q is not localhost", r.Host)}
	}
	for name := range r.Header {
		if strings.HasPrefix(name, "X-Forwarded") || slices.Contains(forwarding, name) {
			return &NotLocalError{Why: "a proxy passed the request on (" + name + "); set up accounts, or have the proxy pass on nothing"}
		}
	}
	return nil
}

// Pages tells requests that our own pages make from those of others' pages, which a
// browser sends with our cookies all the same. It is safe for concurrent use.
type Pages struct {
	guard http.CrossOriginProtection
	own   []string
}

// NewPages returns pages of the host that a request is for, and besides of these
// origins, as https://hub.example.com: the public address of a hub behind a proxy
// that changes the Host. It fails for what is no origin.
func NewPages(origins ...string) (*Pages, error) {
	p := &Pages{}
	for _, o := range origins {
		o = strings.ToLower(strings.TrimSuffix(o, "/"))
		if err := p.guard.AddTrustedOrigin(o); err != nil {
			return nil, fmt.Errorf("%.200q is no origin, as https://hub.example.com", o)
		}
		p.own = append(p.own, o)
	}
	return p, nil
}

// ErrCrossOrigin says that a page of somebody else made a request. Answer with 403.
var ErrCrossOrigin = errors.New("the request is from a page of another site")

// Check fails with [ErrCrossOrigin] for a request that changes something, or opens a
// WebSocket, and is from a page that is not ours. A program that is no browser says
// nothing about pages, and passes: it has no cookies that it does not mean to send.
// To be asked for every request that a cookie, or coming from this machine, lets in;
// those with a token need it not.
func (p *Pages) Check(r *http.Request) error {
	if p.guard.Check(r) != nil {
		return ErrCrossOrigin
	}
	// Opening a WebSocket reads, says HTTP, and so passes above; what is said over it
	// is not looked at again.
	if r.Header.Get("Upgrade") != "" && !p.mine(r) {
		return ErrCrossOrigin
	}
	return nil
}

// mine reports whether the page that a request is from, if it is from one, is ours.
func (p *Pages) mine(r *http.Request) bool {
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
