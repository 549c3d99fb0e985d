package oauth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/loadout-dev/loadout/internal/address"
)

const (
	maxBody      = 1 << 20 // bytes of an answer
	maxRedirects = 5
	maxIssuers   = 16
	patience     = 30 * time.Second // for one request
)

// metadata is what is kept of an authorization server's.
type metadata struct {
	Issuer        string `json:"issuer"`
	TokenURL      string `json:"token_endpoint"`
	RevocationURL string `json:"revocation_endpoint"`
}

// A transport carries what signing in to one server takes. A server says itself
// where its authorization server is: requests go over https, except to this
// machine, and where the server is public, to public addresses only.
type transport struct {
	server *url.URL
	public func() bool // whether the server is
	direct *http.Transport
	proxy  *http.Transport

	mu      sync.Mutex
	issuers map[string]metadata // that were seen, by token endpoint
}

// newClient returns a client with a transport for signing in to a server.
func newClient(server string) (*http.Client, *transport, error) {
	u, err := url.Parse(canonical(server))
	if err != nil || u.Host == "" {
		return nil, nil, errors.New("its url cannot be read; correct it")
	}
	t := &transport{server: u, issuers: map[string]metadata{}}
	t.public = sync.OnceValue(func() bool { return isPublic(u.Hostname()) })
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
	if !secure(req.URL) {
		return nil, fmt.Errorf("%s is not https: what is sent there could be read on the way", req.URL.Host)
	}
	through := t.direct
	if p, err := http.ProxyFromEnvironment(req); err != nil || p != nil {
		through = t.proxy // which connects for us, so that we can look at names only
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
	if req.Method == http.MethodGet && res.StatusCode == http.StatusOK && strings.Contains(req.URL.Path, "/.well-known/") {
		return res, t.note(res)
	}
	return res, nil
}

// note reads the metadata of an authorization server as it passes: the SDK, which
// checks it, keeps the issuer and the revocation endpoint to itself.
func (t *transport) note(res *http.Response) error {
	b, err := io.ReadAll(res.Body)
	res.Body.Close()
	if err != nil {
		return err
	}
	res.Body = io.NopCloser(bytes.NewReader(b))
	var m metadata
	if json.Unmarshal(b, &m) == nil && m.TokenURL != "" {
		t.mu.Lock()
		defer t.mu.Unlock()
		if len(t.issuers) < maxIssuers {
			t.issuers[m.TokenURL] = m
		}
	}
	return nil
}

// issuer is who has a token endpoint: the origin of that, where there was no
// metadata.
func (t *transport) issuer(tokenURL string) metadata {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m, ok := t.issuers[tokenURL]; ok {
		return m
	}
	m := metadata{TokenURL: tokenURL}
	if u, err := url.Parse(tokenURL); err == nil {
		m.Issuer = u.Scheme + "://" + u.Host
	}
	return m
}

func (t *transport) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	d := net.Dialer{Timeout: patience}
	if addr != hostPort(t.server) {
		d.Control = func(_, resolved string, _ syscall.RawConn) error {
			to, err := netip.ParseAddrPort(resolved)
			if err != nil {
				return err
			}
			return t.allowed(addr, to.Addr().Unmap())
		}
	}
	return d.DialContext(ctx, network, addr)
}

// allowed refuses an address that is not public to a server that is.
func (t *transport) allowed(host string, a netip.Addr) error {
	what := notPublic(a)
	if what == "" || !t.public() {
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
	if hostPort(u) == hostPort(t.server) {
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

// isPublic says whether a host has any public address; one that is not found
// counts as public, so that it may not send us anywhere else.
func isPublic(host string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	all := lookup(ctx, host)
	for _, a := range all {
		if notPublic(a) == "" {
			return true
		}
	}
	return len(all) == 0
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
