package network

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/sandbox/proxy"
	"github.com/loadout-dev/loadout/sandbox"
)

// Without a proxy, nothing is added.
func TestNoProxy(t *testing.T) {
	for _, n := range []sandbox.Network{{}, {Host: true}} {
		spec := &sandbox.Spec{Network: n}
		p, err := New(spec)
		if p != nil || err != nil {
			t.Fatalf("network %+v: %v, %v", n, p, err)
		}
		if p.Files() != nil || p.Environment(spec) != spec || p.Denied() != nil {
			t.Errorf("network %+v: files, environment or hosts", n)
		}
		p.Close()
	}
	if p, err := New(&sandbox.Spec{Network: sandbox.Network{Allow: []string{"a b"}}}); p != nil || err == nil {
		t.Errorf("an invalid host: %v, %v", p, err)
	}
}

func TestEnvironment(t *testing.T) {
	for _, tt := range []struct {
		name, address, want string
		inject              bool
	}{
		{"default", "", "127.0.0.1:3128", false}, {"other address", "127.0.0.1:9", "127.0.0.1:9", false}, {"injection", "", "127.0.0.1:3128", true},
	} {
		spec := &sandbox.Spec{Env: map[string]string{"A": "1"}, Network: sandbox.Network{Allow: []string{"a.example"}}}
		if tt.inject {
			spec.Network.Inject = []sandbox.Injection{{Host: "a.example", Header: "Authorization", Prefix: "Bearer ", Secret: sandbox.NewSecret("KEY", "v3ry-s3cret")}}
		}
		p, err := New(spec)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		p.Address = tt.address
		got := p.Environment(spec)
		if got == spec || len(spec.Env) != 1 || got.Env["A"] != "1" || !strings.Contains(got.Env["HTTPS_PROXY"], tt.want) {
			t.Errorf("%s: %v, changed to %v", tt.name, spec.Env, got.Env)
		}
		files := p.Files()
		roots := proxy.RootFile()
		if tt.inject {
			roots = bundleFile
			if len(files) != 1 || files[0].Path != bundleFile || files[0].Mode != 0o444 || !strings.Contains(files[0].Data, string(p.ca)) || len(p.ca) == 0 {
				t.Errorf("%s: files %v", tt.name, files)
			}
		} else if files != nil {
			t.Errorf("%s: files %v", tt.name, files)
		}
		for _, name := range []string{"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO"} {
			if got.Env[name] != roots {
				t.Errorf("%s: %s is %q, want %q", tt.name, name, got.Env[name], roots)
			}
		}
		if none := p.Environment(&sandbox.Spec{}); none.Env["HTTPS_PROXY"] == "" {
			t.Errorf("%s: no environment", tt.name)
		}
	}
}

// The proxy connects to allowed hosts only, and logs each decision without secrets.
func TestServe(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write([]byte("hello")) }))
	defer web.Close()
	var log bytes.Buffer
	host := strings.TrimPrefix(web.URL, "http://")
	spec := &sandbox.Spec{Secrets: []sandbox.Secret{sandbox.NewSecret("KEY", "v3ry-s3cret")}, Network: sandbox.Network{Allow: []string{host}, Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Log: slog.New(slog.NewTextHandler(&log, nil))}}
	p, err := New(spec)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.Serve(l)
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: l.Addr().String()})}}
	for address, want := range map[string]int{web.URL: 200, "http://v3ry-s3cret.example/": 403} {
		res, err := client.Get(address)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s: %d, want %d", address, res.StatusCode, want)
		}
	}
	if denied := p.Denied(); len(denied) != 1 || !strings.HasPrefix(denied[0], "v3ry-s3cret.example") {
		t.Errorf("denied %v", denied)
	}
	client.CloseIdleConnections()
	p.Close()
	if got := log.String(); strings.Count(got, "network of a sandbox") != 2 || !strings.Contains(got, "allowed=true") || !strings.Contains(got, "allowed=false") || strings.Contains(got, "v3ry-s3cret") {
		t.Errorf("logged %s", got)
	}
	if err := l.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the listener was open after Close: %v", err)
	}
}
