package address

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// maxHops is how many proxies one behind the other are believed.
const maxHops = 16

// Proxies are the addresses of reverse proxies whose word is taken for who is
// behind them. None is the zero value, which takes nobody's. It is safe for
// concurrent use.
type Proxies struct{ trusted []netip.Prefix }

// ParseProxies reads addresses and networks, as 10.0.0.5 and 10.0.0.0/8. It fails
// for what is neither, and for all of the internet, where everybody is a proxy.
func ParseProxies(texts []string) (Proxies, error) {
	var p Proxies
	for _, text := range texts {
		prefix, err := parsePrefix(strings.TrimSpace(text))
		if err != nil {
			return Proxies{}, fmt.Errorf("%.100q is no address or network of a proxy; write 10.0.0.5 or 10.0.0.0/24", text)
		}
		if prefix.Bits() == 0 {
			return Proxies{}, fmt.Errorf("%.100q is every address, so that everybody could say to be somebody else; name the proxies", text)
		}
		p.trusted = append(p.trusted, prefix)
	}
	return p, nil
}

var errNoPrefix = errors.New("no address or network")

func parsePrefix(text string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" {
		return netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil || p.Addr().Is4In6() { // which no address is that was unmapped
		return p, errNoPrefix
	}
	return p.Masked(), nil
}

// Trusts reports whether an address is one of the proxies.
func (p Proxies) Trusts(a netip.Addr) bool {
	a = a.Unmap()
	return slices.ContainsFunc(p.trusted, func(t netip.Prefix) bool { return t.Contains(a) })
}

// Client is the address of who sent a request: remote, which is the address and
// port at the other end of the connection, unless that is a proxy's. Then it is
// what the proxies say in the values of X-Forwarded-For, read from the end that
// ours wrote: the first address that is no proxy of ours. What stands before that
// was sent by the client and may be anything. It is no address where remote is
// none.
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
			break // whom a proxy means is not known, but it is behind that one
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

// parseHop reads an address as proxies write it, some with a port.
func parseHop(text string) (netip.Addr, bool) {
	if at, err := netip.ParseAddrPort(text); err == nil {
		return at.Addr().Unmap().WithZone(""), true
	}
	a, err := netip.ParseAddr(strings.Trim(text, "[]"))
	return a.Unmap().WithZone(""), err == nil
}
