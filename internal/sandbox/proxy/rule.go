package proxy

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// Rule is an entry of a host allowlist: a host, or all names below a domain,
// with one port or with ports 80 and 443. The zero Rule matches nothing.
type Rule struct {
	host string // from NormalizeHost
	port uint16 // 0 means 80 and 443
	sub  bool   // whether the rule matches names below host, but not host
	all  bool   // whether the rule matches every host
}

// RuleError reports an invalid entry of a host allowlist.
type RuleError struct {
	Entry  string
	Reason string
}

func (e *RuleError) Error() string {
	return fmt.Sprintf("allowed host %q: %s", e.Entry, e.Reason)
}

// ParseRule parses host, host:port, *.domain and *.domain:port. The host may be
// an IP address, with brackets for IPv6. * and *:port match every public host.
// A rule without a port matches ports 80 and 443. *.domain matches names at any
// depth below domain, but not domain itself. The error is a [*RuleError].
//
// A rule for a non-public address is valid but has no effect unless
// [Options.Private] contains the address.
func ParseRule(s string) (Rule, error) {
	fault := func(reason string) (Rule, error) { return Rule{}, &RuleError{Entry: s, Reason: reason} }
	if strings.Contains(s, "://") {
		return fault("remove the scheme, only a host can be allowed")
	}
	if strings.ContainsAny(s, "/?#") {
		return fault("remove the path, only a host can be allowed")
	}
	if s == "*" {
		return Rule{all: true}, nil
	}
	if port, ok := strings.CutPrefix(s, "*:"); ok {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return fault("invalid port, want a number from 1 to 65535")
		}
		return Rule{all: true, port: uint16(n)}, nil
	}
	rest, sub := strings.CutPrefix(s, "*.")
	if strings.Contains(rest, "*") {
		return fault("a * must be the whole first label, as in *.example.com")
	}
	host, port, err := splitAuthority(rest)
	if err != nil {
		return fault(err.Error())
	}
	if sub && isIP(host) {
		return fault("an IP address has no subdomains")
	}
	if sub && !strings.Contains(host, ".") {
		return fault("a whole top-level domain cannot be allowed")
	}
	return Rule{host: host, port: port, sub: sub}, nil
}

// String returns the rule in the normalized form accepted by [ParseRule].
func (r Rule) String() string {
	s := r.host
	if strings.Contains(s, ":") {
		s = "[" + s + "]"
	}
	if r.sub {
		s = "*." + s
	}
	if r.all {
		s = "*"
	}
	if r.port != 0 {
		s += ":" + strconv.Itoa(int(r.port))
	}
	return s
}

// Match reports whether the rule covers a port of a host. The host must be
// normalized by [NormalizeHost].
func (r Rule) Match(host string, port uint16) bool {
	switch {
	case host == "" || r.host == "" && !r.all:
		return false
	case r.port != 0 && port != r.port, r.port == 0 && port != 80 && port != 443:
		return false
	case r.all:
		return true
	case r.sub:
		below, ok := strings.CutSuffix(host, "."+r.host)
		return ok && below != ""
	}
	return host == r.host
}

// lookupProfile is the IDNA profile that browsers use for lookups, except for two
// rules. The hyphen rule would reject names that are in use (r3---sn.example).
// The character rule is replaced with the check below, which allows
// underscores.
var lookupProfile = idna.New(
	idna.MapForLookup(),
	idna.BidiRule(),
	idna.StrictDomainName(false),
	idna.CheckHyphens(false),
)

// NormalizeHost returns the canonical form of a host, for comparing, resolving
// and dialing: ASCII, lower case, without a trailing dot, or an IP address in
// canonical form without brackets. It rejects everything that a resolver or a C
// library could interpret differently: numbers, shortened or mapped addresses,
// zones, escapes, user information, control characters and empty labels. It is
// idempotent.
func NormalizeHost(s string) (string, error) {
	if s == "" {
		return "", errors.New("host is empty")
	}
	if len(s) > 1024 {
		return "", errors.New("host too long (limit 1024 bytes)")
	}
	if addr, err := netip.ParseAddr(s); err == nil {
		switch {
		case addr.Zone() != "":
			return "", errors.New("address must not have a zone")
		case addr.Is4In6():
			return "", errors.New("IPv4 address must not be in IPv6 form")
		}
		return addr.String(), nil
	}
	if !utf8.ValidString(s) {
		return "", errors.New("invalid domain name")
	}
	for _, c := range s {
		if c <= ' ' || c == 0x7f || strings.ContainsRune("%@:/\\?#[]", c) {
			return "", errors.New("invalid character in host")
		}
	}
	host, err := lookupProfile.ToASCII(strings.TrimSuffix(s, "."))
	if again, err2 := lookupProfile.ToASCII(host); err != nil || err2 != nil || again != host {
		return "", errors.New("invalid domain name")
	}
	if len(host) > 253 {
		return "", errors.New("host too long (limit 253 bytes)")
	}
	labels := strings.Split(host, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return "", errors.New("invalid domain name")
		}
		for _, c := range []byte(label) {
			if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
				return "", errors.New("invalid domain name")
			}
		}
	}
	// As in the URL Standard, a name whose last label is a number is an IPv4
	// address. Canonical addresses were parsed above.
	if isNumber(labels[len(labels)-1]) {
		return "", errors.New("host must not be a number")
	}
	return host, nil
}

// isNumber reports whether inet_aton would interpret a label as a number.
func isNumber(label string) bool {
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}

func isIP(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}

// splitAuthority strictly parses host, host:port, [v6] and [v6]:port, and
// normalizes the host. The port is 0 if it is missing.
func splitAuthority(s string) (host string, port uint16, err error) {
	name, after := s, ""
	if strings.HasPrefix(s, "[") {
		end := strings.IndexByte(s, ']')
		if end < 0 {
			return "", 0, errors.New("missing closing bracket")
		}
		name, after = s[1:end], s[end+1:]
		if !strings.Contains(name, ":") {
			return "", 0, errors.New("brackets must enclose an IPv6 address")
		}
	} else if i := strings.IndexByte(s, ':'); i >= 0 {
		name, after = s[:i], s[i:]
		if strings.Contains(after[1:], ":") {
			return "", 0, errors.New("invalid port, or IPv6 address without brackets")
		}
	}
	if after != "" {
		digits, ok := strings.CutPrefix(after, ":")
		n, err := strconv.ParseUint(digits, 10, 16)
		if !ok || err != nil || n == 0 || digits[0] == '0' {
			return "", 0, errors.New("invalid port, want a number from 1 to 65535")
		}
		port = uint16(n)
	}
	host, err = NormalizeHost(name)
	return host, port, err
}

// target is the host and port of a request.
type target struct {
	host string // normalized
	port uint16
	tls  bool // whether the proxy decrypts TLS to it
}

func (t target) String() string { return net.JoinHostPort(t.host, strconv.Itoa(int(t.port))) }

// hostHeader formats the target as in a Host header.
func (t target) hostHeader() string {
	if t.port != t.defaultPort() {
		return t.String()
	}
	if strings.Contains(t.host, ":") {
		return "[" + t.host + "]"
	}
	return t.host
}

func (t target) defaultPort() uint16 {
	if t.tls {
		return 443
	}
	return 80
}

// isHost reports whether a Host header names the target.
func (t target) isHost(header string) bool {
	host, port, err := splitAuthority(header)
	if port == 0 {
		port = t.defaultPort()
	}
	return err == nil && host == t.host && port == t.port
}
