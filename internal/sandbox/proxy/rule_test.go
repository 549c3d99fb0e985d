package proxy_test

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/sandbox/proxy"
)

func ExampleParseRule() {
	r, err := proxy.ParseRule("*.Example.COM.:8443")
	fmt.Println(r, err)
	fmt.Println(r.Match("api.example.com", 8443), r.Match("example.com", 8443), r.Match("api.example.com", 443))
	_, err = proxy.ParseRule("https://example.com/path")
	fmt.Println(err)
	// Output:
	// *.example.com:8443 <nil>
	// true false false
	// allowed host "https://example.com/path": remove the scheme, only a host can be allowed
}

func TestParseRule(t *testing.T) {
	for in, want := range map[string]string{
		"Example.com":             "example.com",
		"example.com.":            "example.com",
		"example.com:8080":        "example.com:8080",
		"*.a.example":             "*.a.example",
		"bücher.example":          "xn--bcher-kva.example",
		"*.BÜCHER.example:1":      "*.xn--bcher-kva.example:1",
		"localhost":               "localhost",
		"*":                       "*",
		"*:8443":                  "*:8443",
		"my_bucket.example":       "my_bucket.example",
		"r3---sn-x.example":       "r3---sn-x.example",
		"1.2.3.4":                 "1.2.3.4",
		"[2606:4700:0:0::1111]":   "[2606:4700::1111]",
		"[2606:4700::1111]:65535": "[2606:4700::1111]:65535",
	} {
		r, err := proxy.ParseRule(in)
		if got := r.String(); err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", in, got, err, want)
		}
	}
	for _, in := range []string{
		"", "**", "*:", "*:0", "*:70000", "*.", "*.*.example.com", "a*.example.com", "*example.com", "*.com", "*.1.2.3.4", ".", ".example.com", "a..b",
		"example.com:", "example.com:0", "example.com:080", "example.com:65536", "example.com:+80", "example.com:80:80", "example.com:http",
		"::1", "[::1", "[::1]80", "[fe80::1%lo]", "[::ffff:1.2.3.4]", "[1.2.3.4]", "[example.com]", "user@example.com", "example.com/", "exa mple.com",
		"example.com\x00", "%65xample.com", "1.2.3", "0x1", "1.2.3.04", "-a.example", "a-.example", "xn--a.example", "a\u00adb\u2028.example",
		strings.Repeat("a", 64) + ".example", strings.Repeat("abcdefg.", 40) + "example",
	} {
		if r, err := proxy.ParseRule(in); err == nil {
			t.Errorf("%q is taken as %q", in, r)
		}
	}
	if all, err := proxy.ParseRule("*"); err != nil || !all.Match("example.com", 443) || all.Match("example.com", 8443) || all.Match("", 443) {
		t.Errorf("* does not stand for every host at the ports of the web: %v", err)
	}
	if (proxy.Rule{}).Match("", 80) || (proxy.Rule{}).Match("example.com", 80) {
		t.Error("the zero rule matches")
	}
}

func FuzzRule(f *testing.F) {
	for _, s := range []string{"example.com", "*.example.com:8080", "[::1]:443", "1.2.3.4", "bücher.example", "１２７.0.0.1", "0x7f.1", "ß.example", "a。b", "xn--bcher-kva.example", "*", "*:8080"} {
		f.Add(s, s, uint16(443))
		f.Add(s, "evil"+s, uint16(80))
		f.Add(s, "x."+s+".", uint16(8080))
	}
	f.Fuzz(func(t *testing.T, entry, written string, port uint16) {
		host, err := proxy.NormalizeHost(written)
		if err != nil {
			return
		}
		again, err := proxy.NormalizeHost(host)
		if err != nil || again != host {
			t.Fatalf("%q normalises to %q, and that to %q, %v", written, host, again, err)
		}
		r, err := proxy.ParseRule(entry)
		if err != nil {
			return
		}
		same, err := proxy.ParseRule(r.String())
		if err != nil || same != r {
			t.Fatalf("%q is printed as %q, which is %q, %v", entry, r, same, err)
		}
		if !r.Match(host, port) {
			return
		}
		name := strings.TrimPrefix(r.String(), "*.")
		if h, p, err := net.SplitHostPort(name); err == nil {
			if name = h; p != fmt.Sprint(port) {
				t.Fatalf("%q matches at port %d", r, port)
			}
		} else if port != 80 && port != 443 {
			t.Fatalf("%q matches at port %d", r, port)
		}
		if name == "*" {
			return // every host
		}
		name = strings.Trim(name, "[]")
		if host != name && !(strings.HasPrefix(r.String(), "*.") && strings.HasSuffix(host, "."+name)) {
			t.Fatalf("%q matches %q", r, host)
		}
		_, hostErr := netip.ParseAddr(host)
		_, ruleErr := netip.ParseAddr(name)
		if (hostErr == nil) != (ruleErr == nil) {
			t.Fatalf("%q matches %q: one is an address", r, host)
		}
	})
}

func TestEnv(t *testing.T) {
	env := proxy.Env("127.0.0.1:3128")
	for _, name := range []string{"http_proxy", "HTTPS_PROXY", "all_proxy"} {
		if env[name] != "http://127.0.0.1:3128" {
			t.Errorf("%s is %q", name, env[name])
		}
	}
}
