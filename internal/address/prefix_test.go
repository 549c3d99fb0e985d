package address_test

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/loadout-dev/loadout/internal/address"
)

func TestParsePrefixes(t *testing.T) {
	got, err := address.ParsePrefixes([]string{"10.1.2.3/8", "192.0.2.1", "2001:db8::1", "::ffff:192.0.2.2"})
	want := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("2001:db8::1/128"),
		netip.MustParsePrefix("192.0.2.2/32")}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	for _, bad := range []string{"example.com", "10.0.0.0/99", "::ffff:10.0.0.0/104", "fe80::1%eth0", ""} {
		got, err = address.ParsePrefixes([]string{bad, "10.0.0.1"})
		if err == nil || len(got) != 1 {
			t.Errorf("%q: %v, %v; want the valid address and an error", bad, got, err)
		}
	}
}
