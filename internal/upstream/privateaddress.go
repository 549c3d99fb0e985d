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

// A PrivateAddressError reports that a connection was refused because the
// server's address is not public and the user did not configure the server.
type PrivateAddressError struct {
	Server string
	Owner  Owner // provider of the configuration
	Host   string
	Addr   netip.Addr
	Kind   string // such as loopback
}

func (e *PrivateAddressError) Error() string {
	return fmt.Sprintf("host %q has the non-public address %s (%s), but %s configured it: to allow it, add the address to sandbox.private", e.Host, e.Addr, e.Kind, e.Owner)
}

// nonPublicReason returns the reason why an address is not public, or "" for a
// public address.
func nonPublicReason(a netip.Addr) string {
	if !a.IsValid() {
		return "not usable"
	}
	a = a.Unmap()
	what := address.NonPublicReason(a)
	if what == "" && address.IsThisMachine(a) {
		what = "this machine's own"
	}
	return what
}

// guardedTransport returns a transport for servers that the user did not
// configure. It uses no proxy, and checks that each connection is to a public
// address or one in [Dialer.Private].
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
		kind := nonPublicReason(a)
		if kind == "" || a.Zone() == "" && slices.ContainsFunc(l.dialer.Private, func(p netip.Prefix) bool { return p.Contains(a) }) {
			return nil
		}
		return &PrivateAddressError{l.config.Name, l.config.Owner, host, a, kind}
	}}
	return d.DialContext(ctx, network, address)
}
