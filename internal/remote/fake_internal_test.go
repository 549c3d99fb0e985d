package remote

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// public is an address of the public internet, which nothing is ever sent to here.
var public = netip.MustParseAddr("93.184.215.14")

// fixture is an internet of test servers: hosts by name, each at an address that the
// test gives it, and answered by one server over http and one over https.
type fixture struct {
	handler http.Handler
	plain   *httptest.Server
	secure  *httptest.Server

	mu     sync.Mutex
	names  map[string][]netip.Addr // where not public
	dialed []string
	asked  []string // "GET scheme://host/path?query", with the Authorization
}

func newFixture(t testing.TB, handler http.HandlerFunc) *fixture {
	t.Helper()
	w := &fixture{names: map[string][]netip.Addr{}}
	w.handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		scheme := "http"
		if r.TLS != nil {
			scheme = "https"
		}
		w.mu.Lock()
		w.asked = append(w.asked, strings.TrimSpace(scheme+"://"+r.Host+r.URL.RequestURI()+" "+r.Header.Get("Authorization")))
		w.mu.Unlock()
		handler(rw, r)
	})
	w.plain, w.secure = httptest.NewServer(w.handler), httptest.NewTLSServer(w.handler)
	t.Cleanup(w.plain.Close)
	t.Cleanup(w.secure.Close)
	return w
}

// client returns a client of this fake internet, with the credentials of o only.
func (w *fixture) client(t testing.TB, o *Options) *Client {
	t.Helper()
	if o == nil {
		o = &Options{}
	}
	if o.Credential == nil {
		o.Credential = func(context.Context, string) (*Credential, error) { return nil, nil }
	}
	if o.TempDir == "" {
		o.TempDir = t.TempDir()
	}
	c := New(o)
	c.tls = &tls.Config{InsecureSkipVerify: true}
	c.proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	c.resolve = func(_ context.Context, host string) ([]netip.Addr, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if addrs, ok := w.names[strings.TrimSuffix(host, ".")]; ok {
			return addrs, nil
		}
		return []netip.Addr{public}, nil
	}
	c.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		w.mu.Lock()
		w.dialed = append(w.dialed, address)
		w.mu.Unlock()
		to := w.plain.Listener.Addr().String()
		if strings.HasSuffix(address, ":443") {
			to = w.secure.Listener.Addr().String()
		}
		return (&net.Dialer{}).DialContext(ctx, network, to)
	}
	return c
}

func (w *fixture) log() (asked, dialed []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.asked...), append([]string(nil), w.dialed...)
}
