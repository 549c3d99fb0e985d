package upstream

import (
	"net/netip"
	"testing"
)

func TestPrivateAddresses(t *testing.T) {
	for _, a := range []string{
		"127.0.0.1", "10.1.2.3", "172.31.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1", "255.255.255.255", "168.63.129.16",
		"::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::1", "2002:7f00:1::", "2001::1", "100::1",
	} {
		if nonPublicReason(netip.MustParseAddr(a)) == "" {
			t.Errorf("%s counts as public", a)
		}
	}
	for _, a := range []string{"1.1.1.1", "8.8.8.8", "::ffff:8.8.8.8", "2606:4700:4700::1111"} {
		if kind := nonPublicReason(netip.MustParseAddr(a)); kind != "" {
			t.Errorf("%s counts as %s", a, kind)
		}
	}
}
