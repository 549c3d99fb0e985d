package proxy_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/sandbox/proxy"
)

// secure is a TLS server that goes by example.com, with the roots to trust it.
func secure(t *testing.T, h http.HandlerFunc) (addr string, roots *x509.CertPool) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = quiet
	s.StartTLS()
	t.Cleanup(s.Close)
	roots = x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return s.Listener.Addr().String(), roots
}

// client sends everything through the proxy, as a script does.
func (w *fixture) client(t *testing.T, roots *x509.CertPool) *http.Client {
	tr := &http.Transport{
		Proxy:           http.ProxyURL(&url.URL{Scheme: "http", Host: w.addr}),
		TLSClientConfig: &tls.Config{RootCAs: roots},
	}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{
		Transport:     tr,
		Timeout:       20 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// connect opens a tunnel.
func (w *fixture) connect(t *testing.T, authority string) (net.Conn, *bufio.Reader) {
	t.Helper()
	c := w.dial(t)
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", authority, authority)
	r := bufio.NewReader(c)
	resp, err := http.ReadResponse(r, &http.Request{Method: "CONNECT"})
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("CONNECT %s: %v, %v", authority, resp, err)
	}
	return c, r
}

func TestTunnelDoesNotDecryptTLS(t *testing.T) {
	addr, roots := secure(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "over TLS") })
	w := start(t, proxy.Options{Allow: []string{"example.com"}}, addr, nil)
	resp, err := w.client(t, roots).Get("https://Example.COM/")
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if string(body) != "over TLS" {
		t.Errorf("got %q", body)
	}
	log := w.log()
	if len(log) != 1 || !log[0].Allowed || log[0].Method != "CONNECT" || log[0].Host != "example.com" || log[0].Port != 443 || log[0].Bytes < 500 {
		t.Errorf("logged %+v", log)
	}
}

// received is a host that records what it receives and answers nothing.
func received(t *testing.T) (addr string, all func() string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan string, 10)
	go func() {
		defer close(got)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			b, _ := io.ReadAll(c)
			c.Close()
			got <- string(b)
		}
	}()
	t.Cleanup(func() { l.Close() })
	return l.Addr().String(), func() string {
		l.Close()
		var s string
		for g := range got {
			s += g
		}
		return s
	}
}

func TestTunnelStart(t *testing.T) {
	shake := func(name string) func(net.Conn) {
		return func(c net.Conn) {
			tls.Client(c, &tls.Config{ServerName: name, InsecureSkipVerify: true}).Handshake()
		}
	}
	say := func(s string) func(net.Conn) {
		return func(c net.Conn) { io.WriteString(c, s); io.Copy(io.Discard, c) }
	}
	tests := []struct {
		name, to string
		send     func(net.Conn)
		reason   string // empty: it passes
	}{
		{"other name", "test.allowed:443", shake("evil.com"), "the TLS handshake names evil.com"},
		{"name below", "test.allowed:443", shake("x.test.allowed"), "the TLS handshake names x.test.allowed"},
		{"no name", "test.allowed:443", shake(""), "the TLS handshake names no server"},
		{"no TLS", "test.allowed:443", say("GET / HTTP/1.1\r\nHost: evil.com\r\n\r\n"), "traffic on port 443 is not TLS"},
		{"broken TLS", "test.allowed:443", say("\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00"), "the tunnel does not start with a valid TLS handshake"},
		{"endless hello", "test.allowed:443", say(strings.Repeat("\x16\x03\x01\x3f\xff\x01\xff\xff\xff"+strings.Repeat("x", 0x3fff-4), 20)), "the tunnel does not start with a valid TLS handshake"},
		{"nothing", "test.allowed:443", func(c net.Conn) { c.(*net.TCPConn).CloseWrite(); io.Copy(io.Discard, c) }, "the tunnel does not start with a valid TLS handshake"},
		{"other name, other port", "test.allowed:9000", shake("evil.com"), "the TLS handshake names evil.com"},
		{"other name, port 80", "test.allowed:80", shake("evil.com"), "the TLS handshake names evil.com"},
		{"address, other name", "93.184.215.14:443", shake("evil.com"), "the TLS handshake names evil.com"},
		{"address, no TLS", "93.184.215.14:443", say("SSH-2.0-x\r\n"), "traffic on port 443 is not TLS"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			addr, all := received(t)
			w := start(t, proxy.Options{Allow: []string{"test.allowed", "test.allowed:9000", public.String()}}, addr, nil)
			c, _ := w.connect(t, tt.to)
			tt.send(c)
			c.Close()
			log := w.log()
			if len(log) != 1 || log[0].Allowed || log[0].Reason != tt.reason {
				t.Errorf("logged %+v, want %q", log, tt.reason)
			}
			if got := all(); got != "" {
				t.Errorf("the host received %q", got)
			}
		})
	}
}

func TestTunnelToAddressNeedsNoName(t *testing.T) {
	addr, _ := secure(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "by address") })
	w := start(t, proxy.Options{Allow: []string{public.String()}}, addr, nil)
	c := w.client(t, nil)
	c.Transport.(*http.Transport).TLSClientConfig.InsecureSkipVerify = true
	resp, err := c.Get("https://" + public.String() + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); string(body) != "by address" {
		t.Errorf("got %q", body)
	}
}

func TestTunnelOnNamedPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		io.WriteString(c, "220 ready\r\n")
		data, _ := io.ReadAll(c)
		fmt.Fprintf(c, "you said %s", data)
	}()
	w := start(t, proxy.Options{Allow: []string{"mail.test:2525"}}, l.Addr().String(), nil)
	c, r := w.connect(t, "mail.test:2525")
	if line, err := r.ReadString('\n'); line != "220 ready\r\n" {
		t.Fatalf("greeting %q, %v", line, err)
	}
	io.WriteString(c, "HELO script\r\n")
	c.(*net.TCPConn).CloseWrite()
	if got, err := io.ReadAll(r); string(got) != "you said HELO script\r\n" {
		t.Errorf("got %q, %v", got, err)
	}
}

// Some programs open a tunnel for plain HTTP too. It is read, so that it goes to no
// other host.
func TestHTTPInsideTunnel(t *testing.T) {
	w := start(t, proxy.Options{Allow: []string{"test.allowed", "evil.com"}}, hello(t), nil)
	for _, tt := range []struct {
		request string
		want    int
	}{
		{"GET / HTTP/1.1\r\nHost: test.allowed\r\n\r\n", 200},
		{"GET / HTTP/1.1\r\nHost: TEST.allowed.:80\r\n\r\n", 200},
		{"GET / HTTP/1.1\r\nHost: evil.com\r\n\r\n", 400},
		{"GET http://evil.com/ HTTP/1.1\r\nHost: evil.com\r\n\r\n", 400},
		{"GET http://test.allowed/ HTTP/1.1\r\nHost: test.allowed\r\n\r\n", 400},
		{"CONNECT test.allowed:443 HTTP/1.1\r\nHost: test.allowed\r\n\r\n", 400},
		{"TRACE / HTTP/1.1\r\nHost: test.allowed\r\n\r\n", 403},
	} {
		c, r := w.connect(t, "test.allowed:80")
		io.WriteString(c, tt.request)
		resp, err := http.ReadResponse(r, &http.Request{Method: "GET"})
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != tt.want {
			t.Errorf("%q: %d, want %d", tt.request, resp.StatusCode, tt.want)
		}
		c.Close()
	}
}

func TestMaxBytes(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(w, io.LimitReader(zeros{}, 1<<20))
	}))
	defer s.Close()
	w := start(t, proxy.Options{Allow: []string{"test.allowed"}, MaxBytes: 300_000}, s.Listener.Addr().String(), nil)
	resp, err := w.client(t, nil).Get("http://test.allowed/")
	if err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	if err == nil || n > 300_000 {
		t.Errorf("%d bytes, %v", n, err)
	}
	if status, _, body := w.send(t, get("test.allowed")); status != 403 || !strings.Contains(body, "byte limit") {
		t.Errorf("after: %d %q", status, body)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// Connections beyond the limit wait for a place.
func TestMaxConns(t *testing.T) {
	entered, leave := make(chan bool), make(chan bool)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		entered <- true
		<-leave
	}))
	defer s.Close()
	w := start(t, proxy.Options{Allow: []string{"test.allowed"}, MaxConns: 1}, s.Listener.Addr().String(), nil)
	client := w.client(t, nil)
	done := make(chan error, 2)
	for range 2 {
		go func() {
			resp, err := client.Get("http://test.allowed/")
			if err == nil {
				resp.Body.Close()
			}
			done <- err
		}()
	}
	<-entered
	select {
	case <-entered:
		t.Error("two at once")
	default:
	}
	leave <- true
	<-entered
	leave <- true
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// A header that trickles in, a handshake that does not come, a body that stops, and a
// host that does not answer all end, without our doing anything.
func TestIdle(t *testing.T) {
	stop := make(chan bool)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		<-stop
	}))
	defer s.Close()
	defer close(stop)
	w := start(t, proxy.Options{Allow: []string{"test.allowed"}, IdleTimeout: 100 * time.Millisecond}, s.Listener.Addr().String(), nil)
	for name, raw := range map[string]string{
		"nothing":   "",
		"header":    "GET http://test.allowed/ HTTP/1.1\r\nHost: te",
		"handshake": "CONNECT test.allowed:443 HTTP/1.1\r\n\r\n\x16\x03",
		"inner":     "CONNECT test.allowed:80 HTTP/1.1\r\n\r\nGET / HT",
		"body":      "POST http://test.allowed/ HTTP/1.1\r\nHost: test.allowed\r\nContent-Length: 9\r\n\r\nhalf",
		"answer":    get("test.allowed"),
	} {
		t.Run(name, func(t *testing.T) {
			c := w.dial(t)
			io.WriteString(c, raw)
			if _, err := io.ReadAll(c); isTimeout(err) {
				t.Error("the connection stays")
			}
		})
	}
}

func isTimeout(err error) bool {
	e, ok := err.(net.Error)
	return ok && e.Timeout()
}

func TestHeaderLimit(t *testing.T) {
	w := start(t, proxy.Options{Allow: []string{"test.allowed"}}, hello(t), nil)
	status, _, _ := w.send(t, "GET http://test.allowed/ HTTP/1.1\r\nHost: test.allowed\r\nX: "+strings.Repeat("x", 70_000)+"\r\n\r\n")
	if status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("status %d", status)
	}
	status, _, _ = w.send(t, "GET http://test.allowed/ HTTP/1.1\r\nHost: test.allowed\r\nX: "+strings.Repeat("x", 60_000)+"\r\n\r\n")
	if status != 200 {
		t.Errorf("status %d, want 200", status)
	}
}

// Close ends connections at every stage, and all of them are logged.
func TestClose(t *testing.T) {
	entered := make(chan bool, 10)
	addr, _ := received(t)
	w := start(t, proxy.Options{
		Allow: []string{"test.allowed", "test.allowed:9000", "slow.allowed"},
		Resolve: func(ctx context.Context, host string) ([]netip.Addr, error) {
			entered <- true
			if host == "slow.allowed" {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return []netip.Addr{public}, nil
		},
	}, addr, nil)
	w.dial(t)
	w.connect(t, "test.allowed:443")
	c, _ := w.connect(t, "test.allowed:9000")
	io.WriteString(c, "some bytes")
	w.connect(t, "test.allowed:80")
	for _, raw := range []string{get("test.allowed"), get("slow.allowed"), "CONNECT slow.allowed:443 HTTP/1.1\r\n\r\n"} {
		io.WriteString(w.dial(t), raw)
	}
	for range 5 {
		<-entered
	}
	log := w.log()
	var hosts []string
	for _, d := range log {
		hosts = append(hosts, d.Method+" "+d.Host)
	}
	slices.Sort(hosts)
	if len(hosts) < 5 {
		t.Errorf("logged %q", hosts)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if s, err := proxy.New(proxy.Options{}); err != nil {
		t.Error(err)
	} else {
		s.Close()
		l, _ := net.Listen("tcp", "127.0.0.1:0")
		if err := s.Serve(l); err != nil {
			t.Errorf("Serve after Close: %v", err)
		}
	}
}
