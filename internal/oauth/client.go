package oauth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/loadout-dev/loadout/internal/address"
)

const (
	maxBody        = 1 << 20 // maximum bytes of a response body
	maxRedirects   = 5
	requestTimeout = 30 * time.Second // timeout of each request
)

// A transport sends the requests for signing in to a server. Because the server
// names its authorization server, requests to other machines must use HTTPS,
// and a server at a public address must refer only to public addresses. If
// bounds is set, requests may go only to public addresses and those in bounds.
type transport struct {
	server *url.URL
	bounds *bounds // nil allows all addresses
	direct *http.Transport
	proxy  *http.Transport

	mu      sync.Mutex
	known   bool  // the server's address is known
	private bool  // the server's address is not public
	failed  error // error of the last request, because the SDK keeps only the text of some errors
}

// newClient returns an HTTP client for signing in to a server, and the client's
// transport.
func newClient(server string, b *bounds) (*http.Client, *transport, error) {
	u, err := url.Parse(CanonicalURL(server))
	if err != nil || u.Host == "" {
		return nil, nil, errors.New("invalid server URL")
	}
	t := &transport{server: u, bounds: b}
	t.proxy = plainTransport()
	t.direct = plainTransport()
	t.direct.Proxy, t.direct.DialContext = nil, t.dial
	return &http.Client{Transport: t, CheckRedirect: checkRedirect, Timeout: requestTimeout}, t, nil
}

func plainTransport() *http.Transport {
	t := &http.Transport{}
	if std, ok := http.DefaultTransport.(*http.Transport); ok {
		t = std.Clone()
	}
	t.DisableKeepAlives = true // there are only a few requests
	t.MaxResponseHeaderBytes = 64 << 10
	return t
}

// checkRedirect allows redirects only for GET requests, so that codes and
// tokens are not forwarded. It does not allow redirects from HTTPS to HTTP.
func checkRedirect(req *http.Request, via []*http.Request) error {
	if via[0].Method != http.MethodGet {
		return http.ErrUseLastResponse
	}
	if via[len(via)-1].URL.Scheme == "https" && req.URL.Scheme != "https" {
		return errors.New("refusing redirect from https to http")
	}
	if len(via) > maxRedirects {
		return fmt.Errorf("too many redirects (limit %d)", maxRedirects)
	}
	return nil
}

// isSecure reports whether requests to u are encrypted or stay on this machine.
func isSecure(u *url.URL) bool {
	return u.Scheme == "https" || u.Scheme == "http" && isLoopback(u.Hostname())
}

func isLoopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.Unmap().IsLoopback()
}

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := t.send(req)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failed = err; err != nil {
		t.failed = &url.Error{Op: req.Method, URL: req.URL.String(), Err: err}
	}
	return res, err
}

// originalError returns the error of the last request, because err may contain
// only the text of that error. If the last request did not fail, it returns
// err.
func (t *transport) originalError(err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return cmp.Or(t.failed, err)
}

func (t *transport) send(req *http.Request) (*http.Response, error) {
	if !isSecure(req.URL) {
		return nil, fmt.Errorf("%s does not use https: requests could be intercepted", req.URL.Host)
	}
	through := t.direct
	if p, err := http.ProxyFromEnvironment(req); t.bounds == nil && (err != nil || p != nil) {
		through = t.proxy // the proxy connects, so only the host name can be checked
		if hostPort(req.URL) == hostPort(t.server) {
			t.setAddress(literalAddr(t.server))
		}
		if err := t.check(req.Context(), req.URL); err != nil {
			return nil, err
		}
	}
	res, err := through.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	res.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(res.Body, maxBody), res.Body}
	return res, nil
}

func (t *transport) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	first := addr == hostPort(t.server) && !t.isKnown()
	d := net.Dialer{Timeout: requestTimeout, Control: func(_, resolved string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(resolved)
		if err != nil || first && t.bounds == nil {
			return err
		}
		return t.checkAddr(addr, to.Addr().Unmap())
	}}
	c, err := d.DialContext(ctx, network, addr)
	if err == nil && first {
		to, _ := netip.ParseAddrPort(c.RemoteAddr().String())
		t.setAddress(to.Addr().Unmap())
	}
	return c, err
}

// setAddress records whether the server's address is private. a must be the
// address of the connection, because host name lookups may differ each time.
// Once the server has had a public or unknown address, it counts as public.
func (t *transport) setAddress(a netip.Addr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.private = a.IsValid() && nonPublicReason(a) != "" && (t.private || !t.known)
	t.known = true
}

func (t *transport) isKnown() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.known
}

// restore sets whether the server's address is private, as recorded when the
// user signed in.
func (t *transport) restore(private bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known, t.private = true, private
}

// isPrivate reports whether the server has a non-public address.
func (t *transport) isPrivate() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.private
}

// literalAddr returns the IP address in u, or an invalid address if u contains
// a host name.
func literalAddr(u *url.URL) netip.Addr {
	a, _ := netip.ParseAddr(u.Hostname())
	return a.Unmap()
}

// checkAddr returns an error if the address is not public, unless bounds
// contains it or, without bounds, the server's address is not public either.
func (t *transport) checkAddr(host string, a netip.Addr) error {
	what := nonPublicReason(a)
	switch {
	case what == "":
		return nil
	case t.bounds != nil:
		if a.Zone() == "" && slices.ContainsFunc(t.bounds.private, func(p netip.Prefix) bool { return p.Contains(a) }) {
			return nil
		}
		return &PrivateAddressError{host}
	case t.isPrivate():
		return nil
	}
	return fmt.Errorf("public server refers to non-public address %s (%s, %s)", a, host, what)
}

// check returns an error if requests to u are not allowed. It is needed for
// URLs that the transport does not connect to, such as the sign-in page.
func (t *transport) check(ctx context.Context, u *url.URL) error {
	if !isSecure(u) {
		return fmt.Errorf("URL does not use https: %s", u.Host)
	}
	if hostPort(u) == hostPort(t.server) && t.bounds == nil {
		return nil
	}
	for _, a := range lookup(ctx, u.Hostname()) {
		if err := t.checkAddr(u.Host, a); err != nil {
			return err
		}
	}
	return nil
}

func nonPublicReason(a netip.Addr) string {
	if what := address.NonPublicReason(a); what != "" || !address.IsThisMachine(a) {
		return what
	}
	return "this machine's own"
}

// lookup returns the IP addresses of a host, or nil if the host cannot be
// resolved.
func lookup(ctx context.Context, host string) []netip.Addr {
	all, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil
	}
	for i := range all {
		all[i] = all[i].Unmap()
	}
	return all
}
