package address

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// maxHops is the maximum number of trusted proxies in a chain.
const maxHops = 16

// Proxies is a set of trusted reverse proxies. The zero value is an empty set.
// Proxies is safe for concurrent use.
type Proxies struct{ trusted []netip.Prefix }

// ParseProxies parses addresses and networks such as 10.0.0.5 and 10.0.0.0/8.
// It returns an error for a network that contains all addresses.
func ParseProxies(texts []string) (Proxies, error) {
	var p Proxies
	for _, text := range texts {
		prefix, err := parsePrefix(strings.TrimSpace(text))
		if err != nil {
			return Proxies{}, fmt.Errorf("invalid proxy address or network %.100q: want an address such as 10.0.0.5 or a network such as 10.0.0.0/24", text)
		}
		if prefix.Bits() == 0 {
			return Proxies{}, fmt.Errorf("proxy network %.100q contains all addresses and lets any client forge its address; list the individual proxies", text)
		}
		p.trusted = append(p.trusted, prefix)
	}
	return p, nil
}

// Trusts reports whether a is the address of a trusted proxy.
func (p Proxies) Trusts(a netip.Addr) bool {
	a = a.Unmap()
	return slices.ContainsFunc(p.trusted, func(t netip.Prefix) bool { return t.Contains(a) })
}

// Client returns the client address of a request. remote is the address and
// port of the connection's peer. If the peer is a trusted proxy, Client reads
// the X-Forwarded-For values from the end up to the first address that is not a
// trusted proxy. Earlier addresses can be forged. If remote is invalid, Client
// returns the zero Addr.
func (p Proxies) Client(remote string, forwardedFor []string) netip.Addr {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Addr{}
	}
	client := at.Addr().Unmap().WithZone("")
	rest := strings.Join(forwardedFor, ",")
	for hop := 0; hop < maxHops && p.Trusts(client) && rest != ""; hop++ {
		var last string
		rest, last = cutLast(rest)
		next, ok := parseHop(last)
		if !ok {
			break // the client is unknown, but behind this proxy
		}
		client = next
	}
	return client
}

// cutLast splits a list at its last comma.
func cutLast(list string) (rest, last string) {
	i := strings.LastIndexByte(list, ',')
	return list[:max(i, 0)], strings.TrimSpace(list[i+1:])
}

// parseHop parses an address in an X-Forwarded-For value, with or without a
// port.
func parseHop(text string) (netip.Addr, bool) {
	if at, err := netip.ParseAddrPort(text); err == nil {
		return at.Addr().Unmap().WithZone(""), true
	}
	a, err := netip.ParseAddr(strings.Trim(text, "[]"))
	return a.Unmap().WithZone(""), err == nil
}
