package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// dialTimeout bounds resolving and connecting together.
const dialTimeout = 15 * time.Second

// special holds what no public server has as its address, from the registries
// of IANA for special-purpose addresses and from the documents of the clouds.
var special = []struct {
	prefix netip.Prefix
	what   string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "unspecified"},
	{netip.MustParsePrefix("10.0.0.0/8"), "private"},
	{netip.MustParsePrefix("100.64.0.0/10"), "shared by a provider (CGNAT)"},
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback"},
	{netip.MustParsePrefix("168.63.129.16/32"), "a cloud's own (Azure)"},
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
// is empty for one that is. An IPv4 address must not be mapped into IPv6.
func notPublic(a netip.Addr) string {
	if !a.IsValid() || a.Zone() != "" {
		return "not usable"
	}
	for _, s := range special {
		if s.prefix.Contains(a) {
			return s.what
		}
	}
	if a.Is6() && !global.Contains(a) {
		return "reserved"
	}
	return ""
}

// refusal is an error that policy caused, not the network.
type refusal struct{ reason string }

func (r *refusal) Error() string { return r.reason }

// check refuses an address that is not public, or is this machine's own, unless
// the operator listed it.
func (s *Server) check(a netip.Addr) error {
	if a.Zone() == "" {
		for _, p := range s.private {
			if p.Contains(a) {
				return nil
			}
		}
	}
	what := notPublic(a)
	if what == "" && isOwn(a) {
		what = "this machine's own"
	}
	if what != "" {
		return &refusal{fmt.Sprintf("address %s is %s", a, what)}
	}
	return nil
}

// isOwn reports whether an address is one of this machine's: what listens on it
// may trust callers from here more than callers from outside.
func isOwn(a netip.Addr) bool {
	own, err := net.InterfaceAddrs()
	if err != nil {
		return true
	}
	for _, o := range own {
		p, err := netip.ParsePrefix(o.String())
		if err == nil && p.Addr().Unmap() == a {
			return true
		}
	}
	return false
}

// dial resolves a normalised host here, checks what it resolves to, and connects
// to a checked address, never to the name: what a name means cannot change
// between check and use.
func (s *Server) dial(ctx context.Context, t target) (*conn, error) {
	if !s.begin() {
		return nil, net.ErrClosed
	}
	defer s.wg.Done()
	// The transport dials on behalf of no request in particular, so its
	// context does not end with the server's.
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()

	addrs, err := s.resolve(ctx, t.host)
	if err != nil {
		return nil, err
	}
	var refused, failed error
	for _, a := range addrs {
		a = a.Unmap() // resolvers may return IPv4 addresses mapped
		if err := s.check(a); err != nil {
			refused = err
			continue
		}
		raw, err := s.connect(ctx, netip.AddrPortFrom(a, t.port))
		if err != nil {
			failed = err
			continue
		}
		c := &conn{Conn: raw, server: s, idle: s.idle, metered: true}
		if !s.track(c) {
			raw.Close()
			return nil, net.ErrClosed
		}
		c.touch()
		return c, nil
	}
	switch {
	case failed != nil:
		return nil, failed
	case refused != nil:
		return nil, refused
	}
	return nil, &net.DNSError{Err: "no such host", Name: t.host, IsNotFound: true}
}

func (s *Server) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	if s.opts.Resolve != nil {
		return s.opts.Resolve(ctx, host)
	}
	// A name with a dot is complete: no search list makes another one of it.
	if strings.Contains(host, ".") {
		host += "."
	}
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

func (s *Server) connect(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	// One address that does not answer leaves time for the next.
	ctx, cancel := context.WithTimeout(ctx, dialTimeout/3)
	defer cancel()
	if s.opts.Dial != nil {
		return s.opts.Dial(ctx, "tcp", to.String())
	}
	d := net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
		got, err := netip.ParseAddrPort(address)
		if err != nil || got.Addr().Unmap() != to.Addr() || got.Port() != to.Port() {
			return &refusal{fmt.Sprintf("about to connect to %s, which was not checked", address)}
		}
		return s.check(got.Addr().Unmap())
	}}
	return d.DialContext(ctx, "tcp", to.String())
}

// dialTransport is dial for an http.Transport, whose addresses are targets of ours
// in text.
func (s *Server) dialTransport(ctx context.Context, _, address string) (net.Conn, error) {
	host, digits, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(digits, 10, 16)
	if err != nil {
		return nil, err
	}
	c, err := s.dial(ctx, target{host: host, port: uint16(port)})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// errQuota ends connections when the server has passed all it may.
var errQuota = errors.New("the limit on bytes for this skill is reached")
