package policy

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/loadout-dev/loadout/internal/pattern"
)

// host is a pattern of places on a network.
type host struct {
	name string // lower case; "" is any
	sub  bool   // what is below name, and not name itself
	port int    // 0 is any
}

var (
	label   = `[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?`
	dnsName = pattern.New(`\A` + label + `(\.` + label + `)*\z`)
	// Programs take these for an IPv4 address, in more forms than one.
	numeric = pattern.New(`(\A|\.)([0-9]+|0x[0-9a-f]*)\z`)
)

// parseHost reads a pattern: host, host:port, *.domain, *.domain:port, * and
// *:port. A host is a DNS name in ASCII or an IP address, IPv6 in brackets.
func parseHost(s string) (host, error) {
	bad := func(why string) (host, error) { return host{}, fmt.Errorf("%.300q is no host pattern: %s", s, why) }
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
		return bad("an address has nothing below it")
	}
	if inner, ok := strings.CutPrefix(name, "["); ok {
		a, err := netip.ParseAddr(strings.TrimSuffix(inner, "]"))
		if err != nil || !strings.HasSuffix(inner, "]") || !a.Is6() || a.Is4In6() || a.Zone() != "" {
			return bad("brackets hold an IPv6 address without a zone")
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
		return bad("an IPv6 address has to be in brackets, and an address has nothing below it")
	case len(name) > 253 || !dnsName().MatchString(name):
		return bad("a host is a DNS name in ASCII or an address, with * only in front of a domain")
	case numeric().MatchString(name):
		return bad("an IPv4 address has four decimal numbers")
	}
	h.name = name
	return h, nil
}

func parsePort(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 || strconv.FormatUint(n, 10) != s {
		return 0, errors.New("a port is a number from 1 to 65535")
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

// covers reports whether every place of o is one of h.
func (h host) covers(o host) bool { return (h.port == 0 || h.port == o.port) && h.coversName(o) }

func (h host) coversName(o host) bool {
	switch {
	case h.name == "":
		return true
	case h.sub:
		return o.sub && o.name == h.name || strings.HasSuffix(o.name, "."+h.name)
	default:
		return !o.sub && o.name == h.name
	}
}

// meet returns the places of both, and whether there are any. The names of two
// patterns overlap only where one covers the other.
func (h host) meet(o host) (host, bool) {
	m := h
	switch {
	case h.coversName(o):
		m = o
	case !o.coversName(h):
		return host{}, false
	}
	if h.port != 0 && o.port != 0 && h.port != o.port {
		return host{}, false
	}
	m.port = max(h.port, o.port)
	return m, true
}

// MatchHost reports whether a pattern of the list covers the host, a name or
// an address without brackets, and the port. What cannot be read matches
// nothing. It does not look names up: whoever connects has to connect to the
// name that was checked.
func MatchHost(patterns []string, name string, port int) bool {
	if port <= 0 || strings.HasPrefix(name, "*") {
		return false
	}
	if strings.Contains(name, ":") {
		name = "[" + name + "]"
	}
	return coversHost(patterns, name+":"+strconv.Itoa(port))
}

func coversHost(patterns []string, asked string) bool {
	o, err := parseHost(asked)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(parseHosts(patterns), func(h host) bool { return h.covers(o) })
}

func meetHosts(a, b []string) []string {
	var out []host
	bs := parseHosts(b)
	for _, x := range parseHosts(a) {
		for _, y := range bs {
			if m, ok := x.meet(y); ok {
				out = append(out, m)
			}
		}
	}
	return hostList(out)
}

// parseHosts leaves out what cannot be read: it permits nothing.
func parseHosts(patterns []string) []host {
	var out []host
	for _, p := range patterns {
		if h, err := parseHost(p); err == nil {
			out = append(out, h)
		}
	}
	return out
}

// hostList renders patterns sorted, each once; nil for none. What another of
// them covers stays out.
func hostList(hosts []host) []string {
	// A pattern can only be covered by one with no port and as long a name, so
	// the kept ones of this order are the ones that can cover.
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
