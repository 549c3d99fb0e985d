package setup

import (
	"net/netip"
	"slices"
	"testing"
)

func TestParsePrefixes(t *testing.T) {
	got, err := ParsePrefixes([]string{"10.1.2.3/8", "192.0.2.1", "2001:db8::1"})
	want := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("2001:db8::1/128")}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	got, err = ParsePrefixes([]string{"example.com", "10.0.0.1", "10.0.0.0/99"})
	if err == nil || len(got) != 1 {
		t.Errorf("%v, %v; want the valid address and an error", got, err)
	}
}
