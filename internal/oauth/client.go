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
	maxBody      = 1 << 20 // bytes of an answer
	maxRedirects = 5
	patience     = 30 * time.Second // for one request
)

// A transport carries what signing in to one server takes. A server says itself
// where its authorization server is: requests go over https, except to this
// machine, and where the server is public, to public addresses only. With bounds they
// go to no others in any case.
type transport struct {
	server *url.URL
	bounds *bounds // nil has none
	direct *http.Transport
	proxy  *http.Transport

	mu      sync.Mutex
	met     bool  // whether the server was connected to
	private bool  // whether it is at an address that is not public
	failed  error // of the last request, as the SDK hides what some errors are
}

// newClient returns a client with a transport for signing in to a server.
func newClient(server string, b *bounds) (*http.Client, *transport, error) {
	u, err := url.Parse(Canonical(server))
	if err != nil || u.Host == "" {
		return nil, nil, errors.New("its url cannot be read; correct it")
	}
	t := &transport{server: u, bounds: b}
	t.proxy = plainTransport()
	t.direct = plainTransport()
	t.direct.Proxy, t.direct.DialContext = nil, t.dial
	return &http.Client{Transport: t, CheckRedirect: redirect, Timeout: patience}, t, nil
}

func plainTransport() *http.Transport {
	t := &http.Transport{}
	if std, ok := http.DefaultTransport.(*http.Transport); ok {
		t = std.Clone()
	}
	t.DisableKeepAlives = true // a few requests, and nothing to close behind them
	t.MaxResponseHeaderBytes = 64 << 10
	return t
}

// redirect follows what only reads: a code or a token is not sent on.
func redirect(req *http.Request, via []*http.Request) error {
	if via[0].Method != http.MethodGet {
		return http.ErrUseLastResponse
	}
	if via[len(via)-1].URL.Scheme == "https" && req.URL.Scheme != "https" {
		return errors.New("a redirect from https to http is not followed")
	}
	if len(via) > maxRedirects {
		return fmt.Errorf("more than %d redirects", maxRedirects)
	}
	return nil
}

// secure says whether nobody on the way reads what is sent to a URL.
func secure(u *url.URL) bool {
	return u.Scheme == "https" || u.Scheme == "http" && isLoopback(u.Hostname())
}

func isLoopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.Unmap().IsLoopback()
}

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := t.carry(req)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failed = err; err != nil {
		t.failed = &url.Error{Op: req.Method, URL: req.URL.String(), Err: err}
	}
	return res, err
}

// why is the failure of the last request, where there is one, in place of an error that
// only has its text.
func (t *transport) why(err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return cmp.Or(t.failed, err)
}

func (t *transport) carry(req *http.Request) (*http.Response, error) {
	if !secure(req.URL) {
		return nil, fmt.Errorf("%s is not https: what is sent there could be read on the way", req.URL.Host)
	}
	through := t.direct
	if p, err := http.ProxyFromEnvironment(req); t.bounds == nil && (err != nil || p != nil) {
		through = t.proxy // which connects for us, so that we can look at names only
		if hostPort(req.URL) == hostPort(t.server) {
			t.meet(written(t.server))
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
	first := addr == hostPort(t.server) && !t.hasMet()
	d := net.Dialer{Timeout: patience, Control: func(_, resolved string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(resolved)
		if err != nil || first && t.bounds == nil {
			return err
		}
		return t.allowed(addr, to.Addr().Unmap())
	}}
	c, err := d.DialContext(ctx, network, addr)
	if err == nil && first {
		to, _ := netip.ParseAddrPort(c.RemoteAddr().String())
		t.meet(to.Addr().Unmap())
	}
	return c, err
}

// meet notes at which address the server answers: not what its name leads to when
// it is looked up, which may be something else each time. Once public, it stays so,
// and so does one at an address that is not known.
func (t *transport) meet(a netip.Addr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.private = a.IsValid() && notPublic(a) != "" && (t.private || !t.met)
	t.met = true
}

func (t *transport) hasMet() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.met
}

// recall is meet for a server that was met when the person signed in.
func (t *transport) recall(private bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.met, t.private = true, private
}

// isPrivate says whether the server is known to be at an address that is not
// public.
func (t *transport) isPrivate() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.private
}

// written is the address that a URL has in place of a name, none where it has a
// name.
func written(u *url.URL) netip.Addr {
	a, _ := netip.ParseAddr(u.Hostname())
	return a.Unmap()
}

// allowed refuses an address that is not public to a server that is, or may be.
func (t *transport) allowed(host string, a netip.Addr) error {
	what := notPublic(a)
	switch {
	case what == "":
		return nil
	case t.bounds != nil:
		if a.Zone() == "" && slices.ContainsFunc(t.bounds.private, func(p netip.Prefix) bool { return p.Contains(a) }) {
			return nil
		}
		return &AddressError{host}
	case t.isPrivate():
		return nil
	}
	return fmt.Errorf("it names %s, which is at %s (%s), and a public server may not send us there", host, a, what)
}

// check looks at where the names of a URL lead: what we do not connect to
// ourselves, as the page that a browser opens.
func (t *transport) check(ctx context.Context, u *url.URL) error {
	if !secure(u) {
		return fmt.Errorf("it sends us to %s, which is not https", u.Host)
	}
	if hostPort(u) == hostPort(t.server) && t.bounds == nil {
		return nil
	}
	for _, a := range lookup(ctx, u.Hostname()) {
		if err := t.allowed(u.Host, a); err != nil {
			return err
		}
	}
	return nil
}

func notPublic(a netip.Addr) string {
	if what := address.NotPublic(a); what != "" || !address.IsOwn(a) {
		return what
	}
	return "this machine's own"
}

// lookup are the addresses of a host, none where they are not known here.
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
