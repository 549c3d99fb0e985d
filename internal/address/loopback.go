package address

import (
	"net"
	"net/netip"
	"strings"
)

// IsLoopback reports whether a host, as in a URL or a Host header, always means
// this machine. That is true for localhost and for literal loopback addresses,
// with or without brackets and a port. Other names may resolve differently at
// the next lookup, so IsLoopback returns false for them.
func IsLoopback(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	} else if len(host) > 1 && host[0] == '[' && host[len(host)-1] == ']' {
		host = host[1 : len(host)-1]
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Zone() == "" && a.Unmap().IsLoopback()
}

// CustomerNetwork returns the smallest network that a provider assigns to a
// customer: a single IPv4 address, or 64 bits of IPv6. Rate limits use it,
// because an IPv6 customer has many addresses.
func CustomerNetwork(a netip.Addr) netip.Prefix {
	a = a.Unmap().WithZone("")
	bits := a.BitLen()
	if a.Is6() {
		bits = 64
	}
	p, _ := a.Prefix(bits) // invalid addresses give the zero prefix
	return p
}
