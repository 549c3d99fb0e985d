package account_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub/account"
)

func TestLocalOnly(t *testing.T) {
	tests := []struct {
		name, remote, host string
		header             string
		want               string // in the error; empty is served
	}{
		{"a program here", "127.0.0.1:4000", "127.0.0.1:8484", "", ""},
		{"by name", "127.0.0.1:4000", "localhost:8484", "", ""},
		{"over IPv6", "[::1]:4000", "[::1]:8484", "", ""},
		{"IPv4 in IPv6", "[::ffff:127.0.0.1]:4000", "localhost:8484", "", ""},
		{"a browser", "127.0.0.1:4000", "localhost:8484", "Origin: http://localhost:8484", ""},
		{"another machine", "192.0.2.7:4000", "localhost:8484", "", "from another"},
		{"its own other address", "10.0.0.1:4000", "10.0.0.1:8484", "", "from another"},
		{"a name that was made to point here", "127.0.0.1:4000", "evil.example.com:8484", "", `"evil.example.com:8484" is not localhost`},
		{"a name that looks so", "127.0.0.1:4000", "127.0.0.1.example.com", "", "is not localhost"},
		{"a subdomain", "127.0.0.1:4000", "a.localhost:8484", "", "is not localhost"},
		{"every address", "127.0.0.1:4000", "0.0.0.0:8484", "", "is not localhost"},
		{"no name", "127.0.0.1:4000", "", "", "is not localhost"},
		{"a pipe", "@", "localhost", "", "from another"},
		{"no address", "", "localhost", "", "from another"},
		{"a proxy", "127.0.0.1:4000", "localhost:8484", "X-Forwarded-For: 127.0.0.1", "X-Forwarded-For"},
		{"a proxy that says little", "127.0.0.1:4000", "localhost:8484", "x-forwarded-proto: http", "X-Forwarded-Proto"},
		{"a proxy that says nothing", "127.0.0.1:4000", "localhost:8484", "X-Forwarded-For: ", "X-Forwarded-For"},
		{"a proxy by the standard", "127.0.0.1:4000", "localhost:8484", "Forwarded: for=127.0.0.1", "Forwarded"},
		{"a proxy by another name", "127.0.0.1:4000", "localhost:8484", "X-Real-IP: 127.0.0.1", "X-Real-Ip"},
		{"a tunnel", "127.0.0.1:4000", "localhost:8484", "CF-Connecting-IP: 127.0.0.1", "Cf-Connecting-Ip"},
		{"any proxy", "127.0.0.1:4000", "localhost:8484", "Via: 1.1 proxy", "Via"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "http://localhost/", nil)
			r.RemoteAddr, r.Host = tt.remote, tt.host
			if name, value, ok := strings.Cut(tt.header, ": "); ok {
				r.Header.Set(name, value)
			}
			err := account.LocalOnly(r)
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if e, ok := errors.AsType[*account.NotLocalError](err); !ok || !strings.Contains(e.Error(), tt.want) {
				t.Errorf("%v, want one about %q", err, tt.want)
			}
		})
	}
}

func TestCrossSiteRequestsChangeNothing(t *testing.T) {
	pages, err := account.NewOriginGuard("https://Hub.example.com/", "http://localhost:3000")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, method, headers string
		want                  error
	}{
		{"a program", "POST", "", nil},
		{"our page", "POST", "Sec-Fetch-Site: same-origin|Origin: http://inner:8484", nil},
		{"our page in an old browser", "POST", "Origin: http://inner:8484", nil},
		{"our page by its public name", "POST", "Origin: https://hub.example.com", nil},
		{"our page by its public name, behind a proxy", "DELETE", "Sec-Fetch-Site: same-site|Origin: https://hub.example.com", nil},
		{"another page", "POST", "Sec-Fetch-Site: cross-site|Origin: https://evil.example.com", account.ErrCrossOrigin},
		{"another page in an old browser", "POST", "Origin: https://evil.example.com", account.ErrCrossOrigin},
		{"a neighbour", "PUT", "Sec-Fetch-Site: same-site", account.ErrCrossOrigin},
		{"a page without an origin", "POST", "Origin: null", account.ErrCrossOrigin},
		{"a link from another page", "GET", "Sec-Fetch-Site: cross-site", nil},
		{"a socket of a program", "GET", "Upgrade: websocket", nil},
		{"a socket of our page", "GET", "Upgrade: websocket|Origin: http://inner:8484", nil},
		{"a socket of our page by its public name", "GET", "Upgrade: websocket|Origin: https://hub.example.com", nil},
		{"a socket of another page", "GET", "Upgrade: websocket|Origin: https://evil.example.com", account.ErrCrossOrigin},
		{"a socket of another page that begins so", "GET", "Upgrade: websocket|Origin: https://hub.example.com.evil.example", account.ErrCrossOrigin},
		{"a socket of a page without an origin", "GET", "Upgrade: websocket|Origin: null", account.ErrCrossOrigin},
		{"a socket of a neighbour", "GET", "Upgrade: websocket|Sec-Fetch-Site: same-site", account.ErrCrossOrigin},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest(tt.method, "http://inner:8484/api/v1/skills", nil)
			for h := range strings.SplitSeq(tt.headers, "|") {
				if name, value, ok := strings.Cut(h, ": "); ok {
					r.Header.Set(name, value)
				}
			}
			if err := pages.Check(r); !errors.Is(err, tt.want) {
				t.Errorf("%v, want %v", err, tt.want)
			}
		})
	}
}

func TestContradictoryOriginsAreRefused(t *testing.T) {
	pages, err := account.NewOriginGuard()
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, "http://inner:8484/ws", nil)
	r.Header.Set("Upgrade", "websocket")
	r.Header["Origin"] = []string{"http://inner:8484", "https://evil.example.com"}
	if err := pages.Check(r); !errors.Is(err, account.ErrCrossOrigin) {
		t.Error(err)
	}
}

func TestNewPagesRefusesInvalidOrigins(t *testing.T) {
	for _, bad := range []string{"", "hub.example.com", "https://", "https://hub.example.com/path", "https://hub.example.com?x=y"} {
		if _, err := account.NewOriginGuard(bad); err == nil {
			t.Errorf("%q is an origin", bad)
		}
	}
}
