package upstream

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"github.com/loadout-dev/loadout/internal/address"
)

// PrivateAddressError says that a server which does not come from the person is
// at an address that is not public, and that it was not connected to.
type PrivateAddressError struct {
	Server string
	Owner  string // what brings the configuration
	Host   string
	Addr   netip.Addr
	Kind   string // as in: loopback
}

func (e *PrivateAddressError) Error() string {
	return fmt.Sprintf("its host %q is at %s, which is not a public address (%s), and its configuration comes from %s: if it may go there, list the address in sandbox.private", e.Host, e.Addr, e.Kind, e.Owner)
}

// notPublic says why a server that is not the person's may not be at an address; ""
// where it may.
func notPublic(a netip.Addr) string {
	if !a.IsValid() {
		return "not usable"
	}
	a = a.Unmap()
	what := address.NotPublic(a)
	if what == "" && address.IsOwn(a) {
		what = "this machine's own"
	}
	return what
}

// guardedTransport is one for a server that the person did not configure: it goes
// straight to public addresses, and to those of [Dialer.Private], as they are when
// it connects.
func (l *link) guardedTransport() http.RoundTripper {
	std, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		std = &http.Transport{ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: 90 * time.Second}
	}
	t := std.Clone()
	if l.dialer.HTTP != nil {
		if given, ok := l.dialer.HTTP.Transport.(*http.Transport); ok {
			t.TLSClientConfig = given.TLSClientConfig.Clone()
		}
	}
	t.Proxy, t.DialContext, t.DialTLSContext = nil, l.dialGuarded, nil
	t.MaxIdleConnsPerHost = idlePerHost
	l.mu.Lock()
	l.http = t
	l.mu.Unlock()
	return t
}

func (l *link) dialGuarded(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: 30 * time.Second, Control: func(_, resolved string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(resolved)
		if err != nil {
			return err
		}
		a := to.Addr().Unmap()
		kind := notPublic(a)
		if kind == "" || a.Zone() == "" && slices.ContainsFunc(l.dialer.Private, func(p netip.Prefix) bool { return p.Contains(a) }) {
			return nil
		}
		return &PrivateAddressError{l.config.Name, l.config.Owner, host, a, kind}
	}}
	return d.DialContext(ctx, network, address)
}
