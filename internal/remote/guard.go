package remote

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"

	"github.com/loadout-dev/loadout/internal/address"
	"github.com/loadout-dev/loadout/internal/printable"
)

// checkTrusted returns an error if locations are untrusted and l is one that
// only the user may name. See Options.Untrusted.
func (c *Client) checkTrusted(l Location) error {
	if !c.opts.Untrusted {
		return nil
	}
	u, err := url.Parse(l.URL)
	switch {
	case l.Kind == Local || err == nil && u.Scheme == "file":
		return &UntrustedError{l, "it is a local path"}
	case err != nil || u.Scheme != "https" && u.Scheme != "http":
		return &UntrustedError{l, "it would be accessed with your ssh keys"}
	}
	return nil
}

// blockedPrefixes lists addresses that are always blocked. Services at these
// addresses reveal a machine's secrets to any program that runs on it.
var blockedPrefixes = []struct{ prefix, why string }{
	{"169.254.0.0/16", "link-local, which clouds use for the credentials of their machines"},
	{"fe80::/10", "link-local"},
	{"fd00:ec2::254/128", metadata},
	{"fd20:ce::254/128", metadata},
	{"100.100.100.200/32", metadata},
	{"192.0.0.192/32", metadata},
	{"168.63.129.16/32", "a cloud's own (Azure)"},
}

const metadata = "reserved by clouds for the credentials of their machines"

// embeddingPrefixes lists the IPv6 prefixes whose addresses contain an IPv4
// address.
var embeddingPrefixes = []struct {
	prefix string
	at     int // offset of the address in bytes
}{
	{"64:ff9b::/96", 12},   // NAT64
	{"64:ff9b:1::/48", 12}, // NAT64 of a local network
	{"2002::/16", 2},       // 6to4
	{"::/96", 12},          // compatible
}

// embeddedIPv4 returns the IPv4 address embedded in an IPv6 address, or the
// address itself if there is none.
func embeddedIPv4(a netip.Addr) netip.Addr {
	if a = a.Unmap().WithZone(""); !a.Is6() {
		return a
	}
	for _, c := range embeddingPrefixes {
		if netip.MustParsePrefix(c.prefix).Contains(a) {
			b := a.As16()
			return netip.AddrFrom4([4]byte(b[c.at : c.at+4]))
		}
	}
	return a
}

// allowedAddresses resolves host once and returns the addresses to which
// connections are allowed. host is a name or an IP address, with or without a
// port. Callers must connect to the returned addresses, never to the name. If
// no address is allowed, the error is an [*AddressError].
func (c *Client) allowedAddresses(ctx context.Context, host string) ([]netip.Addr, error) {
	host = hostName(host)
	if err := checkHostSpelling(host); err != nil {
		return nil, err
	}
	addrs, err := c.resolveHost(ctx, host)
	if err != nil {
		return nil, err
	}
	var refused error
	var out []netip.Addr
	for _, a := range addrs {
		a = a.Unmap() // resolvers may return mapped IPv4 addresses
		if err := c.checkAddress(ctx, host, a); err != nil {
			refused = err
			continue
		}
		out = append(out, a)
	}
	switch {
	case len(out) > 0:
		return out, nil
	case refused != nil:
		return nil, refused
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

// resolveHost returns the IP addresses of a host.
func (c *Client) resolveHost(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	if host == "" {
		return nil, &net.DNSError{Err: "no such host", IsNotFound: true}
	}
	if strings.Contains(host, ".") {
		host += "." // absolute: search lists do not apply
	}
	addrs, err := c.resolve(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("look up %s: %w", strings.TrimSuffix(host, "."), contextError(ctx, err))
	}
	return addrs, nil
}

// checkAddress returns an error if connections to host at address a are not
// allowed.
func (c *Client) checkAddress(ctx context.Context, host string, a netip.Addr) error {
	a = a.Unmap()
	for _, n := range blockedPrefixes {
		if p := netip.MustParsePrefix(n.prefix); p.Contains(a.WithZone("")) || p.Contains(embeddedIPv4(a)) {
			return &AddressError{Host: host, Address: a.String(), Reason: n.why, AlwaysBlocked: true}
		}
	}
	why := address.NonPublicReason(a)
	if why == "" || c.isPrivateAllowed(host) {
		return nil
	}
	if t, ok := ctx.Value(sessionKey{}).(*httpSession); ok && !c.opts.Untrusted && host == t.name && ctx.Value(otherHostKey{}) == nil {
		// The user wrote localhost or the address itself, and no redirect was
		// followed.
		if _, err := netip.ParseAddr(host); err == nil || isLocalhost(host) && a.IsLoopback() {
			return nil
		}
	}
	return &AddressError{Host: host, Address: a.String(), Reason: why}
}

// checkHostSpelling returns an error if different systems may interpret host
// differently. Some read numbers as addresses, and some map non-ASCII letters
// to other letters.
func checkHostSpelling(host string) error {
	if _, err := netip.ParseAddr(host); err == nil {
		return nil
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	switch {
	case strings.ContainsFunc(host, func(r rune) bool { return r >= 0x80 }):
		return &AddressError{Host: printable.OneLine(strings.ToValidUTF8(host, "\ufffd")), Reason: "not ASCII"}
	case last != "" && last[0] >= '0' && last[0] <= '9': // no top-level domain starts with a digit
		return &AddressError{Host: host, Reason: "a number in an unusual form"}
	}
	return nil
}

func (c *Client) isPrivateAllowed(host string) bool {
	return c.opts.Private != nil && !c.opts.Untrusted && c.opts.Private(host)
}

// hostName normalizes a host for comparisons: lower case, without brackets,
// port or trailing dot.
func hostName(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.TrimSuffix(strings.ToLower(host), ".")
}

// isLocalhost reports whether a host name or address refers to this machine.
func isLocalhost(host string) bool {
	if a, err := netip.ParseAddr(host); err == nil {
		return a.Unmap().IsLoopback()
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}
