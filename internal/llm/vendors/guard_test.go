package vendors

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

// API keys are sent encrypted, except to this machine and to networks that the
// operator named.
func TestCheckKeyTransport(t *testing.T) {
	private := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00::/8")}
	for _, tt := range []struct {
		base, key string
		want      string
	}{
		{"", "k", ""},
		{"http://example.com", "", ""}, // no key to lose
		{"https://example.com/v1", "k", ""},
		{"http://example.com", "k", "use an https base URL"},
		{"http://10.1.2.3:8000/v1", "k", ""},
		{"http://[::ffff:10.1.2.3]/v1", "k", ""},
		{"http://[fd00::1]:80", "k", ""},
		{"http://10.2.0.1", "k", "use an https base URL"},
		{"http://localhost:11434", "k", ""},
		{"http://127.0.0.1", "k", ""},
		{"ftp://example.com", "k", "use an https base URL"},
		{"http://a b", "k", "invalid baseUrl"},
		{"http://10.1.2.3.example.com", "k", "use an https base URL"},
	} {
		err := CheckKeyTransport(tt.base, tt.key, private)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%q with key %q: %v, want %q", tt.base, tt.key, err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), tt.key+"@") {
			t.Errorf("%q: the error contains the key", tt.base)
		}
	}
	if err := CheckKeyTransport("http://10.1.2.3", "k", nil); err == nil {
		t.Error("without private networks, a private address gets the key")
	}
}

// A model that a user defines reaches public addresses and named networks only,
// and cannot lead to another address with a redirect.
func TestPublicClient(t *testing.T) {
	reached := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached++
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	}))
	defer srv.Close()
	for _, private := range [][]netip.Prefix{nil, {netip.MustParsePrefix("10.0.0.0/8")}} {
		res, err := PublicClient(private).Get(srv.URL)
		if err == nil {
			res.Body.Close()
			t.Fatal("connected to this machine")
		}
		if !strings.Contains(err.Error(), "refusing to connect to loopback address 127.0.0.1; the operator of the hub can allow it") {
			t.Errorf("got %v", err)
		}
		if refused, ok := errors.AsType[*AddressError](err); !ok || refused.Kind != "loopback" {
			t.Errorf("got %#v", err)
		}
	}
	client := PublicClient([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})
	defer client.CloseIdleConnections()
	res, err := client.Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusFound || reached != 1 {
		t.Errorf("status %d after %d requests, want the redirect itself", res.StatusCode, reached)
	}
}
