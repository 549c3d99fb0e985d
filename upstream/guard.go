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

// special holds what no public server has as its address. The proxy of the sandbox
// has the same ones.
var special = []struct {
	prefix netip.Prefix
	kind   string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "unspecified"},
	{netip.MustParsePrefix("10.0.0.0/8"), "private"},
	{netip.MustParsePrefix("100.64.0.0/10"), "shared by a provider"},
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback"},
	{netip.MustParsePrefix("168.63.129.16/32"), "a cloud's own"},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local"},
	{netip.MustParsePrefix("172.16.0.0/12"), "private"},
	{netip.MustParsePrefix("192.0.0.0/24"), "reserved"},
	{netip.MustParsePrefix("192.0.2.0/24"), "documentation"},
	{netip.MustParsePrefix("192.88.99.0/24"), "a 6to4 relay"},
	{netip.MustParsePrefix("192.168.0.0/16"), "private"},
	{netip.MustParsePrefix("198.18.0.0/15"), "benchmark"},
	{netip.MustParsePrefix("198.51.100.0/24"), "documentation"},
	{netip.MustParsePrefix("203.0.113.0/24"), "documentation"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved"},

	{netip.MustParsePrefix("::/128"), "unspecified"},
	{netip.MustParsePrefix("::1/128"), "loopback"},
	{netip.MustParsePrefix("64:ff9b::/96"), "an IPv4 address inside NAT64"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "an IPv4 address inside NAT64"},
	{netip.MustParsePrefix("fc00::/7"), "private"},
	{netip.MustParsePrefix("fe80::/10"), "link-local"},
	{netip.MustParsePrefix("fec0::/10"), "private"},
	{netip.MustParsePrefix("ff00::/8"), "multicast"},
	{netip.MustParsePrefix("2001::/32"), "an IPv4 address inside Teredo"},
	{netip.MustParsePrefix("2001::/23"), "reserved"},
	{netip.MustParsePrefix("2001:db8::/32"), "documentation"},
	{netip.MustParsePrefix("2002::/16"), "an IPv4 address inside 6to4"},
	{netip.MustParsePrefix("3fff::/20"), "documentation"},
}

// global is all of IPv6 that has been handed out for public use.
var global = netip.MustParsePrefix("2000::/3")

// notPublic says in a word why an address is not one of the public internet; it
// is empty for one that is.
func notPublic(a netip.Addr) string {
	if !a.IsValid() || a.Zone() != "" {
		return "not usable"
	}
	a = a.Unmap()
	for _, s := range special {
		if s.prefix.Contains(a) {
			return s.kind
		}
	}
	if a.Is6() && !global.Contains(a) {
		return "reserved"
	}
	if isOwn(a) {
		return "this machine's own"
	}
	return ""
}

// isOwn says whether an address is one of this machine's: what listens on it may
// trust callers from here more than others.
func isOwn(a netip.Addr) bool {
	own, err := net.InterfaceAddrs()
	return err != nil || slices.ContainsFunc(own, func(o net.Addr) bool {
		p, err := netip.ParsePrefix(o.String())
		return err == nil && p.Addr().Unmap() == a
	})
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
