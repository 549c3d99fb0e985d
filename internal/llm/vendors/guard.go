package vendors

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"syscall"
	"time"

	"github.com/loadout-dev/loadout/internal/address"
)

// CheckKeyTransport returns an error if requests to base would send a key
// unencrypted over a network.
func CheckKeyTransport(base, key string, private []netip.Prefix) error {
	if base == "" || key == "" {
		return nil
	}
	u, err := url.Parse(base)
	if err != nil {
		return errors.New("invalid baseUrl")
	}
	at, err := netip.ParseAddr(u.Hostname())
	near := err == nil && slices.ContainsFunc(private, func(p netip.Prefix) bool { return p.Contains(at.Unmap()) })
	if u.Scheme != "https" && !near && !address.IsLoopback(u.Hostname()) {
		return errors.New("refusing to send an API key unencrypted: use an https base URL")
	}
	return nil
}

// WithLoopback returns the networks and the loopback addresses.
func WithLoopback(networks []netip.Prefix) []netip.Prefix {
	return append(slices.Clone(networks), netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"))
}

// AddressError reports that a model's server has an address that is not public.
type AddressError struct {
	Kind    string // such as "loopback"
	Address netip.Addr
}

// Error returns a text with the address.
func (e *AddressError) Error() string {
	return fmt.Sprintf("refusing to connect to %s address %s; the operator of the hub can allow it", e.Kind, e.Address)
}

// PublicClient returns an HTTP client that connects only to public addresses
// and the given private networks. It checks the address of each connection, which
// fails with an [*AddressError], and follows no redirects, because a user-defined
// model must not give access to the hub's network.
func PublicClient(private []netip.Prefix) *http.Client {
	dialer := &net.Dialer{Timeout: 30 * time.Second, Control: func(_, resolved string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(resolved)
		if err != nil {
			return err
		}
		at := to.Addr().Unmap()
		if kind := address.NonPublicReason(at); kind != "" && !slices.ContainsFunc(private, func(p netip.Prefix) bool { return p.Contains(at) }) {
			return &AddressError{Kind: kind, Address: at}
		}
		return nil
	}}
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{DialContext: dialer.DialContext, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second,
			IdleConnTimeout: 90 * time.Second, MaxIdleConnsPerHost: 16},
	}
}
