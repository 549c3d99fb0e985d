package address_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/address"
)

func TestIsLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LocalHost:8484": true, "127.0.0.1": true, "127.0.0.1:80": true, "127.9.9.9": true, "[::1]": true, "[::1]:8484": true, "::1": true, "[::ffff:127.0.0.1]:1": true,
		"": false, ":8484": false, "localhost.": false, "a.localhost": false, "localhost.example.com": false, "127.0.0.1.example.com:80": false,
		"127.1": false, "2130706433": false, "0x7f.0.0.1": false, "0177.0.0.1": false, "0.0.0.0": false, "[::]": false, "[::1%lo]": false, "10.0.0.1": false,
		"localhost:80:80": false, "[localhost": false, "[]": false, "[": false, "user@127.0.0.1": false, "127.0.0.1 ": false,
	} {
		if got := address.IsLoopback(host); got != want {
			t.Errorf("%q: %v, want %v", host, got, want)
		}
	}
}

func TestIsThisMachine(t *testing.T) {
	for a, want := range map[string]bool{"127.0.0.1": true, "192.0.2.1": false, "2001:db8::1": false, "0.0.0.0": false} {
		if got := address.IsThisMachine(netip.MustParseAddr(a)); got != want {
			t.Errorf("%s: %t", a, got)
		}
	}
}

func TestNetwork(t *testing.T) {
	for a, want := range map[string]string{
		"203.0.113.9": "203.0.113.9/32", "::ffff:203.0.113.9": "203.0.113.9/32",
		"2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64", "fe80::1%eth0": "fe80::/64",
	} {
		if got := address.CustomerNetwork(netip.MustParseAddr(a)).String(); got != want {
			t.Errorf("%s: %s, want %s", a, got, want)
		}
	}
	if got := address.CustomerNetwork(netip.Addr{}); got.IsValid() {
		t.Errorf("of no address: %s", got)
	}
}

func TestClientFromTrustedProxies(t *testing.T) {
	proxies, err := address.ParseProxies([]string{"10.0.0.0/24", " 2001:db8::5 ", "192.0.2.1"})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, remote string
		forwarded    []string
		want         string
	}{
		{"no proxy", "198.51.100.7:4000", nil, "198.51.100.7"},
		{"a stranger's word is not taken", "198.51.100.7:4000", []string{"127.0.0.1"}, "198.51.100.7"},
		{"one proxy", "10.0.0.2:4000", []string{"198.51.100.7"}, "198.51.100.7"},
		{"one proxy over IPv6", "[2001:db8::5]:4000", []string{"2001:db8:9::1"}, "2001:db8:9::1"},
		{"an address inside IPv6", "[::ffff:10.0.0.2]:4000", []string{"::ffff:198.51.100.7"}, "198.51.100.7"},
		{"two proxies", "10.0.0.2:4000", []string{"198.51.100.7, 192.0.2.1"}, "198.51.100.7"},
		{"two headers", "10.0.0.2:4000", []string{"198.51.100.7", "192.0.2.1"}, "198.51.100.7"},
		{"what the client wrote stands before", "10.0.0.2:4000", []string{"127.0.0.1, 203.0.113.1, 198.51.100.7"}, "198.51.100.7"},
		{"with a port", "10.0.0.2:4000", []string{"198.51.100.7:55555"}, "198.51.100.7"},
		{"IPv6 with a port", "10.0.0.2:4000", []string{"[2001:db8:9::1]:555"}, "2001:db8:9::1"},
		{"IPv6 in brackets", "10.0.0.2:4000", []string{"[2001:db8:9::1]"}, "2001:db8:9::1"},
		{"nothing said", "10.0.0.2:4000", nil, "10.0.0.2"},
		{"unknown", "10.0.0.2:4000", []string{"198.51.100.7, unknown"}, "10.0.0.2"},
		{"empty", "10.0.0.2:4000", []string{""}, "10.0.0.2"},
		{"ends with a comma", "10.0.0.2:4000", []string{"198.51.100.7,"}, "10.0.0.2"},
		{"proxies only", "10.0.0.2:4000", []string{"10.0.0.3, 10.0.0.4"}, "10.0.0.3"},
		{"more than can be", "10.0.0.2:4000", []string{"198.51.100.7" + strings.Repeat(",10.0.0.4", 100_000)}, "10.0.0.4"},
		{"a pipe", "@", []string{"127.0.0.1"}, "invalid IP"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := proxies.Client(tt.remote, tt.forwarded).String(); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

func TestParseProxiesRefuses(t *testing.T) {
	for _, bad := range []string{"", "proxy.example.com", "10.0.0.0/33", "0.0.0.0/0", "::/0", "fe80::1%eth0", "::ffff:10.0.0.0/120", "10.0.0.1:80"} {
		if p, err := address.ParseProxies([]string{"10.0.0.1", bad}); err == nil || p.Trusts(netip.MustParseAddr("10.0.0.1")) {
			t.Errorf("%q is taken", bad)
		}
	}
}

// The client is always the connected address or one that a trusted proxy reported.
// Headers of others change nothing.
func FuzzClient(f *testing.F) {
	f.Add("10.0.0.2:1", "198.51.100.7, 10.0.0.3")
	f.Add("198.51.100.7:1", "127.0.0.1")
	f.Add("10.0.0.2:1", "[::1]:1, x,,")
	proxies, err := address.ParseProxies([]string{"10.0.0.0/24"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, remote, output string) {
		got := proxies.Client(remote, []string{output})
		alone := proxies.Client(remote, nil)
		if !proxies.Trusts(alone) && got != alone {
			t.Errorf("%q returned %q and is %s, want %s", remote, output, got, alone)
		}
		if got.Zone() != "" || got.Is4In6() {
			t.Errorf("%s is not written as others are", got)
		}
	})
}

func ExampleProxies_Client() {
	proxies, err := address.ParseProxies([]string{"10.0.0.0/24"})
	if err != nil {
		fmt.Println(err)
		return
	}
	// The client wrote 127.0.0.1, and the proxy appended the real address.
	fmt.Println(proxies.Client("10.0.0.2:51000", []string{"127.0.0.1, 198.51.100.7"}))
	// Output: 198.51.100.7
}
