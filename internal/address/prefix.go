package address

import (
	"cmp"
	"fmt"
	"net/netip"
)

// ParsePrefixes parses addresses and networks such as 10.0.0.5 and 10.0.0.0/8.
// An IPv4-mapped IPv6 address becomes an IPv4 address. A network of such
// addresses is invalid, because addresses are compared unmapped. If some
// strings are invalid, ParsePrefixes returns the valid prefixes and the first
// error.
func ParsePrefixes(texts []string) (out []netip.Prefix, err error) {
	for _, text := range texts {
		p, failed := parsePrefix(text)
		if failed != nil {
			err = cmp.Or(err, failed)
			continue
		}
		out = append(out, p)
	}
	return out, err
}

func parsePrefix(text string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" {
		return netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil || p.Addr().Is4In6() {
		return netip.Prefix{}, fmt.Errorf("invalid address or network %.100q", text)
	}
	return p.Masked(), nil
}
