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

	"github.com/loadout-dev/loadout/internal/address"
)

// dialTimeout is the maximum time to resolve a host and connect to it.
const dialTimeout = 15 * time.Second

// refusal is the error for a connection that policy forbids, as opposed to a
// network error.
type refusal struct{ reason string }

func (r *refusal) Error() string { return r.reason }

// checkAddr returns an error if the address is not public or belongs to this
// machine, unless the operator allows it.
func (s *Server) checkAddr(a netip.Addr) error {
	if a.Zone() == "" {
		for _, p := range s.private {
			if p.Contains(a) {
				return nil
			}
		}
	}
	what := address.NonPublicReason(a)
	if what == "" && address.IsThisMachine(a) {
		what = "this machine's own"
	}
	if what != "" {
		return &refusal{fmt.Sprintf("address %s is %s", a, what)}
	}
	return nil
}

// dial resolves a normalized host, checks its addresses, and connects to one of
// them. It never dials by name, because the name could resolve to another
// address after the check.
func (s *Server) dial(ctx context.Context, t target) (*conn, error) {
	if !s.startWork() {
		return nil, net.ErrClosed
	}
	defer s.wg.Done()
	// The context of the transport is not cancelled when the server is closed,
	// because the transport does not dial for a particular request.
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()

	addrs, err := s.resolve(ctx, t.host)
	if err != nil {
		return nil, err
	}
	var refused, failed error
	for _, a := range addrs {
		a = a.Unmap() // resolvers may return mapped IPv4 addresses
		if err := s.checkAddr(a); err != nil {
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
		c.resetIdle()
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
	// A trailing dot prevents the resolver from using search lists.
	if strings.Contains(host, ".") {
		host += "."
	}
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

func (s *Server) connect(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	// Leave time for the next address if this address does not answer.
	ctx, cancel := context.WithTimeout(ctx, dialTimeout/3)
	defer cancel()
	if s.opts.Dial != nil {
		return s.opts.Dial(ctx, "tcp", to.String())
	}
	d := net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
		got, err := netip.ParseAddrPort(address)
		if err != nil || got.Addr().Unmap() != to.Addr() || got.Port() != to.Port() {
			return &refusal{fmt.Sprintf("address %s was not checked", address)}
		}
		return s.checkAddr(got.Addr().Unmap())
	}}
	return d.DialContext(ctx, "tcp", to.String())
}

// dialTransport is like dial, but has the signature that http.Transport
// requires. address is the target as host:port.
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

// errQuota is returned by connections after the server's byte limit is
// exceeded.
var errQuota = errors.New("byte limit for this skill exceeded")
