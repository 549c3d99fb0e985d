package proxy_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"testing"

	"github.com/loadout-dev/loadout/internal/sandbox/proxy"
)

// A name that is refused is not looked up either: a lookup is a message.
func TestRefusedNamesAreNotResolved(t *testing.T) {
	w := start(t, proxy.Options{
		Allow: []string{"test.allowed"},
		Resolve: func(_ context.Context, host string) ([]netip.Addr, error) {
			t.Errorf("resolved %s", host)
			return nil, io.EOF
		},
	}, "", nil)
	w.send(t, get("data.evil.com"))
	w.send(t, "CONNECT data.evil.com:443 HTTP/1.1\r\n\r\n")
	w.send(t, "GET http://test.allowed/ HTTP/1.1\r\nHost: data.evil.com\r\n\r\n")
}

// Events pass as they come, not when the response has ended; bodies pass whole.
func TestBodies(t *testing.T) {
	next := make(chan bool)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		fmt.Fprintln(w, n)
		w.(http.Flusher).Flush()
		<-next
		io.WriteString(w, "end")
	}))
	defer s.Close()
	w := start(t, proxy.Options{Allow: []string{"test.allowed"}}, s.Listener.Addr().String(), nil)
	const size = 3 << 20
	for _, body := range []io.Reader{bytes.NewReader(make([]byte, size)), io.LimitReader(zeros{}, size)} { // with a length, and chunked
		resp, err := w.client(t, nil).Post("http://test.allowed/", "application/octet-stream", body)
		if err != nil {
			t.Fatal(err)
		}
		r := bufio.NewReader(resp.Body)
		if line, err := r.ReadString('\n'); line != fmt.Sprintln(size) {
			t.Errorf("first event %q, %v", line, err)
		}
		next <- true
		if rest, err := io.ReadAll(r); string(rest) != "end" {
			t.Errorf("rest %q, %v", rest, err)
		}
		resp.Body.Close()
	}
	for _, d := range w.log() {
		if d.Bytes != int64(size+len(fmt.Sprintln(size))+3) {
			t.Errorf("logged %+v", d)
		}
	}
}

// A WebSocket works, even if the proxy inserts the secret that opens it.
func TestWebSocket(t *testing.T) {
	addr, roots := secure(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != value || r.Header.Get("Upgrade") != "websocket" {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", "websocket")
		w.WriteHeader(http.StatusSwitchingProtocols)
		c, buf, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		line, _ := buf.ReadString('\n')
		io.WriteString(c, "echo "+line)
	})
	w := start(t, proxy.Options{
		Allow:   []string{"example.com"},
		Secrets: []proxy.Injection{{Host: "example.com", Header: "Authorization", Value: value, Name: "TOKEN"}},
		Roots:   roots,
	}, addr, nil)
	req, _ := http.NewRequest("GET", "https://example.com/", nil)
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "websocket")
	resp, err := w.client(t, w.trust(t)).Transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(resp.Status)
	}
	io.WriteString(resp.Body.(io.Writer), "hi\n")
	if got, err := io.ReadAll(resp.Body); string(got) != "echo hi\n" {
		t.Errorf("got %q, %v", got, err)
	}
}

// With an encrypted client hello, the outer name decides.
func TestEncryptedClientHello(t *testing.T) {
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	prefixed := func(b []byte) []byte { return append(binary.BigEndian.AppendUint16(nil, uint16(len(b))), b...) }
	config := func(outer string) []byte { // of RFC 9849, section 4
		c := append([]byte{7, 0, 0x20}, prefixed(key.PublicKey().Bytes())...)
		c = append(c, prefixed([]byte{0, 1, 0, 1})...)
		c = append(append(c, 32, byte(len(outer))), outer...)
		c = append(c, 0, 0)
		return prefixed(append([]byte{0xfe, 0x0d}, prefixed(c)...))
	}
	addr, all := received(t)
	w := start(t, proxy.Options{Allow: []string{"inner.test"}}, addr, nil)
	c, _ := w.connect(t, "inner.test:443")
	tls.Client(c, &tls.Config{
		ServerName:                     "inner.test",
		EncryptedClientHelloConfigList: config("outer.test"),
		InsecureSkipVerify:             true,
		EncryptedClientHelloRejectionVerify: func(tls.ConnectionState) error {
			return nil
		},
	}).Handshake()
	c.Close()
	log := w.log()
	if len(log) != 1 || log[0].Allowed || log[0].Reason != "the TLS handshake names outer.test" {
		t.Errorf("logged %+v", log)
	}
	if got, want := w.Denied(), []string{"outer.test:443"}; !slices.Equal(got, want) {
		t.Errorf("denied %q, want %q", got, want)
	}
	if got := all(); got != "" {
		t.Errorf("the host received %d bytes", len(got))
	}
}

// BenchmarkRequest measures the cost of the proxy for a request on a new connection, to
// a host whose connection is reused.
func BenchmarkRequest(b *testing.B) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}))
	defer s.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	p, err := proxy.New(proxy.Options{
		Allow:    []string{"test.allowed"},
		MaxBytes: -1,
		Resolve:  func(context.Context, string) ([]netip.Addr, error) { return []netip.Addr{public}, nil },
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, s.Listener.Addr().String())
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	go p.Serve(l)
	defer p.Close()
	for b.Loop() {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			b.Fatal(err)
		}
		io.WriteString(c, get("test.allowed"))
		if answer, err := io.ReadAll(c); err != nil || !bytes.Contains(answer, []byte("200 OK")) {
			b.Fatalf("%q, %v", answer, err)
		}
		c.Close()
	}
}
