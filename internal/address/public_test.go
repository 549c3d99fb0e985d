package address_test

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/address"
)

func TestNonPublicReason(t *testing.T) {
	for text, public := range map[string]bool{
		"8.8.8.8": true, "2001:4860:4860::8888": true, "2a00::1": true,
		"127.0.0.1": false, "10.0.0.1": false, "172.16.0.1": false, "192.168.1.1": false, "169.254.169.254": false, "100.64.0.1": false, "0.0.0.0": false, "224.0.0.1": false, "255.255.255.255": false,
		"::1": false, "::": false, "fe80::1": false, "fd00::1": false, "ff02::1": false, "fe80::1%eth0": false, "2a00::1%eth0": false,
		"4000::1": false, "::7f00:1": false, // beyond what is allocated
	} {
		if got := address.NonPublicReason(netip.MustParseAddr(text)); (got == "") != public {
			t.Errorf("%s: %q", text, got)
		}
	}
	if got := address.NonPublicReason(netip.Addr{}); got != "not usable" {
		t.Errorf("no address: %q", got)
	}
	if got := address.NonPublicReason(netip.MustParseAddr("4000::1")); got != "reserved" {
		t.Errorf("an address that is not allocated: %q", got)
	}
}

func TestIsThisMachineKnowsItsAddresses(t *testing.T) {
	own, err := net.InterfaceAddrs()
	if err != nil || len(own) == 0 {
		t.Skip(err)
	}
	for _, o := range own {
		if p, err := netip.ParsePrefix(o.String()); err == nil && !address.IsThisMachine(p.Addr().Unmap()) {
			t.Errorf("%s is not of this machine", p.Addr())
		}
	}
	if address.IsThisMachine(netip.MustParseAddr("192.0.2.1")) {
		t.Error("an address of the documentation is of this machine")
	}
}

func TestHops(t *testing.T) {
	p, err := address.ParseProxies([]string{"10.0.0.0/8", "2001:db8::/32"})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{"10.1.2.3": true, "::ffff:10.1.2.3": true, "2001:db8::1": true, "11.0.0.1": false} {
		if got := p.Trusts(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s is trusted: %t", text, got)
		}
	}
	// Of a longer chain, only 16 proxies are read.
	for hops, want := range map[int]string{14: "192.0.2.1", 15: "192.0.2.1", 16: "10.0.0.1"} {
		chain := "192.0.2.1" + strings.Repeat(", 10.0.0.1", hops)
		if got := p.Client("10.0.0.2:1", []string{chain}); got.String() != want {
			t.Errorf("%d proxies: client %s, want %s", hops, got, want)
		}
	}
	for host, want := range map[string]bool{"[": false, "[]": false, "[::1]": true, "[::1": false, "::1]": false, "[x]": false} {
		if got := address.IsLoopback(host); got != want {
			t.Errorf("%s is loopback: %t", host, got)
		}
	}
}
