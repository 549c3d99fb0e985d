// Package address tells which addresses are of the public internet, for who
// connects on behalf of code or configuration that is not the person's, which are
// of this machine, and which one a request is from behind proxies. It looks up no
// name and connects to nothing.
package address

import (
	"net"
	"net/netip"
)

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

// NotPublic says in a word why an address is not one of the public internet; it
// is empty for one that is. An IPv4 address must not be mapped into IPv6.
func NotPublic(a netip.Addr) string {
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

// IsOwn reports whether an address is one of this machine's: what listens on it
// may trust callers from here more than callers from outside. Where they cannot
// be listed, every address is.
func IsOwn(a netip.Addr) bool {
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
