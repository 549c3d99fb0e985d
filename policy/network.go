package policy

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
)

// host is a host pattern, which matches hosts and ports.
type host struct {
	name string // in lower case; "" matches any host
	sub  bool   // whether only subdomains of name match
	port int    // 0 matches any
}

var (
	label   = `[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?`
	dnsName = lazyregexp.New(`\A` + label + `(\.` + label + `)*\z`)
	// numeric matches names that programs interpret as IPv4 addresses, in
	// several notations.
	numeric = lazyregexp.New(`(\A|\.)([0-9]+|0x[0-9a-f]*)\z`)
)

// parseHost parses a pattern: host, host:port, *.domain, *.domain:port, * or
// *:port. A host is a DNS name in ASCII or an IP address, IPv6 in brackets.
func parseHost(s string) (host, error) {
	bad := func(why string) (host, error) { return host{}, fmt.Errorf("invalid host pattern %.300q: %s", s, why) }
	var h host
	name := strings.ToLower(s)
	end := strings.LastIndexByte(name, ':')
	if end > strings.LastIndexByte(name, ']') {
		port, err := parsePort(name[end+1:])
		if err != nil {
			return bad(err.Error())
		}
		name, h.port = name[:end], port
	}
	if name == "*" {
		return h, nil
	}
	if name, h.sub = strings.CutPrefix(name, "*."); h.sub && strings.HasPrefix(name, "[") {
		return bad("an address has no subdomains")
	}
	if inner, ok := strings.CutPrefix(name, "["); ok {
		a, err := netip.ParseAddr(strings.TrimSuffix(inner, "]"))
		if err != nil || !strings.HasSuffix(inner, "]") || !a.Is6() || a.Is4In6() || a.Zone() != "" {
			return bad("brackets need an IPv6 address without a zone")
		}
		h.name = "[" + a.String() + "]"
		return h, nil
	}
	name = strings.TrimSuffix(name, ".")
	switch a, err := netip.ParseAddr(name); {
	case err == nil && a.Is4() && !h.sub:
		h.name = a.String()
		return h, nil
	case err == nil:
		return bad("an IPv6 address needs brackets, and an address has no subdomains")
	case len(name) > 253 || !dnsName.MatchString(name):
		return bad("want a DNS name in ASCII or an address, with * only in front of a domain")
	case numeric.MatchString(name):
		return bad("an IPv4 address needs four decimal numbers")
	}
	h.name = name
	return h, nil
}

func parsePort(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 || strconv.FormatUint(n, 10) != s {
		return 0, errors.New("port must be a number from 1 to 65535")
	}
	return int(n), nil
}

func (h host) String() string {
	s := h.name
	switch {
	case s == "":
		s = "*"
	case h.sub:
		s = "*." + s
	}
	if h.port != 0 {
		s += ":" + strconv.Itoa(h.port)
	}
	return s
}

// covers reports whether h matches everything that o matches.
func (h host) covers(o host) bool { return (h.port == 0 || h.port == o.port) && h.coversNameOf(o) }

func (h host) coversNameOf(o host) bool {
	switch {
	case h.name == "":
		return true
	case h.sub:
		return o.sub && o.name == h.name || strings.HasSuffix(o.name, "."+h.name)
	default:
		return !o.sub && o.name == h.name
	}
}

// intersect returns a pattern for the hosts that both patterns match, and false
// if there are none. Two name patterns overlap only if one of them covers the
// other.
func (h host) intersect(o host) (host, bool) {
	m := h
	switch {
	case h.coversNameOf(o):
		m = o
	case !o.coversNameOf(h):
		return host{}, false
	}
	if h.port != 0 && o.port != 0 && h.port != o.port {
		return host{}, false
	}
	m.port = max(h.port, o.port)
	return m, true
}

func coversHost(patterns []string, asked string) bool {
	o, err := parseHost(asked)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(parseHosts(patterns), func(h host) bool { return h.covers(o) })
}

func intersectHosts(a, b []string) []string {
	var out []host
	bs := parseHosts(b)
	for _, x := range parseHosts(a) {
		for _, y := range bs {
			if m, ok := x.intersect(y); ok {
				out = append(out, m)
			}
		}
	}
	return normalizeHosts(out)
}

// parseHosts parses patterns and drops invalid ones, which permit nothing.
func parseHosts(patterns []string) []host {
	var out []host
	for _, p := range patterns {
		if h, err := parseHost(p); err == nil {
			out = append(out, h)
		}
	}
	return out
}

// normalizeHosts returns the patterns, sorted and without those that are
// covered by another. It returns nil if there are none.
func normalizeHosts(hosts []host) []string {
	// Only a pattern without a port and with a name that is not longer can
	// cover another pattern. Sort such patterns first.
	slices.SortFunc(hosts, func(a, b host) int {
		return cmp.Or(cmp.Compare(len(a.name), len(b.name)), cmp.Compare(a.port, b.port), strings.Compare(a.String(), b.String()))
	})
	var kept []host
	var out []string
	for _, h := range hosts {
		if !slices.ContainsFunc(kept, func(k host) bool { return k.covers(h) }) {
			kept, out = append(kept, h), append(out, h.String())
		}
	}
	slices.Sort(out)
	return out
}
