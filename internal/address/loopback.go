package address

import (
	"net"
	"net/netip"
	"strings"
)

// IsLoopback reports whether a host, as it stands in a URL or a Host header, is
// this machine whoever is asked: localhost, or a loopback address that is written
// out, with or without brackets and a port. No other name is, wherever it leads:
// that can change between two looks.
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

// Network is what one customer of a provider has at least: the address itself for
// IPv4, the 64 bits of the network for IPv6, of which everybody has as many
// addresses as he likes. It is what attempts are counted by.
func Network(a netip.Addr) netip.Prefix {
	a = a.Unmap().WithZone("")
	bits := a.BitLen()
	if a.Is6() {
		bits = 64
	}
	p, _ := a.Prefix(bits) // of what is no address, no prefix
	return p
}
