// Package address classifies IP addresses as public or as belonging to this
// machine, and finds the client address behind reverse proxies. It is used
// before connecting on behalf of untrusted code or configuration. It resolves
// no names and opens no connections. Start reading at [NonPublicReason].
package address

import (
	"net"
	"net/netip"
)

// specialNetworks lists networks that contain no public servers. The sources
// are the IANA registries of special-purpose addresses and the documentation of
// cloud providers.
var specialNetworks = []struct {
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

// globalUnicast is the part of the IPv6 address space that is allocated for
// public use.
var globalUnicast = netip.MustParsePrefix("2000::/3")

// NonPublicReason returns a short reason why an address is not public, such as
// "private". It returns "" for a public address. The address must not be an
// IPv4-mapped IPv6 address.
func NonPublicReason(a netip.Addr) string {
	if !a.IsValid() || a.Zone() != "" {
		return "not usable"
	}
	for _, s := range specialNetworks {
		if s.prefix.Contains(a) {
			return s.what
		}
	}
	if a.Is6() && !globalUnicast.Contains(a) {
		return "reserved"
	}
	return ""
}

// IsThisMachine reports whether an address belongs to this machine. A service
// on such an address may trust local callers more than others. If the machine's
// addresses cannot be listed, it returns true.
func IsThisMachine(a netip.Addr) bool {
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
