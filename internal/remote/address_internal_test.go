package remote

import (
	"net/netip"
	"testing"

	"errors"
)

// Metadata services of clouds, which serve secrets of machines, are refused in every
// spelling of their addresses.
func TestRefusedAddresses(t *testing.T) {
	c := New(&Options{Private: func(string) bool { return true }})
	for _, text := range []string{"169.254.169.254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "64:ff9b:1::a9fe:a9fe", "2002:a9fe:a9fe::1", "::a9fe:a9fe",
		"100.100.100.200", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254", "168.63.129.16", "fe80::1"} {
		a := netip.MustParseAddr(text)
		ctx, cancel := c.startSession(t.Context(), Location{Kind: Archive, URL: "https://[" + text + "]/x.zip"})
		err := c.checkAddress(ctx, text, a)
		cancel()
		if e, ok := errors.AsType[*AddressError](err); !ok || !e.AlwaysBlocked {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{"127.0.0.1", "10.0.0.1", "::1", "8.8.8.8"} {
		if err := c.checkAddress(t.Context(), text, netip.MustParseAddr(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}
