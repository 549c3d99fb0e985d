package proxy_test

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/loadout-dev/loadout/internal/sandbox/proxy"
)

func TestMain(m *testing.M) {
	// net/http lingers for half a second over a request that it refused itself.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

// public is an address of the internet that tests only pretend to dial.
var public = netip.MustParseAddr("93.184.215.14")

// fixture is a proxy with its own resolver and dialler: each address leads to the test's
// one server on loopback.
type fixture struct {
	*proxy.Server
	addr string

	mu        sync.Mutex
	dialled   []string
	decisions []proxy.Decision
}

// start serves opts. Names resolve as names says, by default to public; whatever
// is dialled leads to backend.
func start(t *testing.T, opts proxy.Options, backend string, names map[string][]netip.Addr) *fixture {
	t.Helper()
	w := &fixture{}
	if opts.Resolve == nil {
		opts.Resolve = func(_ context.Context, host string) ([]netip.Addr, error) {
			if a, ok := names[host]; ok {
				return a, nil
			}
			return []netip.Addr{public}, nil
		}
	}
	if opts.Dial == nil && backend != "" {
		opts.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			w.mu.Lock()
			w.dialled = append(w.dialled, address)
			w.mu.Unlock()
			var d net.Dialer
			return d.DialContext(ctx, network, backend)
		}
	}
	opts.Log = func(d proxy.Decision) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.decisions = append(w.decisions, d)
	}
	s, err := proxy.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.Server, w.addr = s, l.Addr().String()
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Close()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return w
}

// log closes the server, which completes the log, and returns it.
func (w *fixture) log() []proxy.Decision {
	w.Close()
	return w.decisions
}

func (w *fixture) dials() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.dialled)
}

func (w *fixture) dial(t *testing.T) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", w.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(20 * time.Second)) // a test that hangs says where
	return c
}

// send writes a raw request and returns the status line and body of the response.
func (w *fixture) send(t *testing.T, raw string) (status int, line, body string) {
	t.Helper()
	c := w.dial(t)
	defer c.Close()
	if _, err := io.WriteString(c, raw); err != nil {
		t.Fatal(err)
	}
	method, _, _ := strings.Cut(raw, " ")
	resp, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if method == "CONNECT" && resp.StatusCode == 200 {
		return 200, resp.Status, ""
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Status, string(b)
}

func hello(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello from %s", r.Host)
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func get(host string) string {
	return "GET http://" + host + "/ HTTP/1.1\r\nHost: " + host + "\r\n\r\n"
}

// ownAddress is one of this machine that is not loopback, or a usual one.
func ownAddress() netip.Addr {
	addrs, _ := net.InterfaceAddrs()
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() && !p.Addr().IsLoopback() {
			return p.Addr()
		}
	}
	return netip.MustParseAddr("192.168.1.10")
}

// The cases of the attack suite, each as plain HTTP and through CONNECT.
func TestCases(t *testing.T) {
	own := ownAddress()
	bracket := func(s string) string { return "[" + s + "]" }
	tests := []struct {
		id, text string
		host     string
		raw      string // instead of the two requests for host
		want     int    // 0: 403 or 400
	}{
		{"P01", "allowed host works", "test.allowed", "", 200},
		{"P02", "other domain", "example.com", "", 403},
		{"P03", "127.0.0.1", "127.0.0.1", "", 403},
		{"P04", "[::1]", "[::1]", "", 403},
		{"P05", "localhost (name allowed, address private)", "localhost", "", 403},
		{"P06", "2130706433", "2130706433", "", 0},
		{"P07", "0x7f000001", "0x7f000001", "", 0},
		{"P08", "0", "0", "", 0},
		{"P09", "::ffff:127.0.0.1", bracket("::ffff:127.0.0.1"), "", 0},
		{"P10", "169.254.169.254", "169.254.169.254", "", 403},
		{"P11", "own LAN address", own.String(), "", 403},
		{"P12", "test.allowed@127.0.0.1", "test.allowed@127.0.0.1", "", 400},
		{"P13", "test.allowed.evil.com", "test.allowed.evil.com", "", 403},
		{"P14", "eviltest.allowed", "eviltest.allowed", "", 403},
		{"P15", "%00", "127.0.0.1%00.test.allowed", "", 400},
		{"P16", "absolute-URI to another host with an allowed Host header", "",
			"GET http://evil.com/ HTTP/1.1\r\nHost: test.allowed\r\n\r\n", 0},
		{"P17", "origin-form request", "", "GET / HTTP/1.1\r\nHost: test.allowed\r\n\r\n", 400},

		{"N01", "normalised once", "TEST.ALLOWED.", "", 200},
		{"N02", "full-width letters are letters", "", "CONNECT ｔest.allowed:443 HTTP/1.1\r\n\r\n", 200},
		{"N03", "full-width address", "１２７.0.0.1", "", 0},
		{"N04", "017700000001", "017700000001", "", 0},
		{"N05", "short address", "127.1", "", 0},
		{"N06", "mixed address", "0x7f.0.0.1", "", 0},
		{"N07", "address with a dot", "127.0.0.1.", "", 0},
		{"N08", "two dots", "test.allowed..", "", 0},
		{"N09", "control character", "test.allowed\x01", "", 400},
		{"N10", "zone", "[fe80::1%25eth0]", "", 0},
		{"N11", "mapped without brackets", "::ffff:127.0.0.1", "", 0},
		{"N12", "escape", "%74est.allowed", "", 400},
		{"N13", "backslash", "test.allowed\\@127.0.0.1", "", 400},
		{"N14", "name that leads to this machine", "lan.allowed", "", 403},
		{"N15", "fragment", "test.allowed#@127.0.0.1", "", 0},
		{"N16", "Host header of another, address allowed", "",
			"GET http://test.allowed/ HTTP/1.1\r\nHost: evil.com\r\n\r\n", 400},
		{"N17", "Host header with another port", "",
			"GET http://test.allowed/ HTTP/1.1\r\nHost: test.allowed:81\r\n\r\n", 400},
		{"N18", "Host header in another form", "",
			"GET http://test.allowed/ HTTP/1.1\r\nHost: Test.Allowed.:80\r\n\r\n", 200},
		{"N19", "two Host headers", "",
			"GET http://test.allowed/ HTTP/1.1\r\nHost: test.allowed\r\nHost: evil.com\r\n\r\n", 400},
		{"N20", "other port", "", "CONNECT test.allowed:22 HTTP/1.1\r\n\r\n", 403},
		{"N21", "no port", "", "CONNECT test.allowed HTTP/1.1\r\n\r\n", 400},
		{"N22", "port 0", "", "CONNECT test.allowed:0 HTTP/1.1\r\n\r\n", 400},
		{"N23", "https without CONNECT", "", "GET https://test.allowed/ HTTP/1.1\r\nHost: test.allowed\r\n\r\n", 400},
		{"N24", "plain HTTP to 443", "", "GET http://test.allowed:443/ HTTP/1.1\r\nHost: test.allowed:443\r\n\r\n", 400},
		{"N25", "ftp", "", "GET ftp://test.allowed/ HTTP/1.1\r\nHost: test.allowed\r\n\r\n", 400},
		{"N26", "TRACE", "", "TRACE http://test.allowed/ HTTP/1.1\r\nHost: test.allowed\r\n\r\n", 403},
		{"N27", "OPTIONS *", "", "OPTIONS * HTTP/1.1\r\nHost: test.allowed\r\n\r\n", 400},
		{"N28", "CONNECT to a path", "", "CONNECT /test.allowed:443 HTTP/1.1\r\nHost: test.allowed\r\n\r\n", 400},
		{"N29", "folded and split request", "", "GET http://test.allowed/ HTTP/1.1\r\nHost: test.allowed\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\nX\x00: y\r\n\r\n", 400},
		{"N30", "HTTP/1.0 without a Host header", "", "GET http://test.allowed/ HTTP/1.0\r\n\r\n", 200},
	}
	names := map[string][]netip.Addr{
		"localhost":   {netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::1")},
		"lan.allowed": {own},
	}
	backend := hello(t)
	for _, tt := range tests {
		requests := map[string]string{"raw": tt.raw}
		if tt.raw == "" {
			requests = map[string]string{
				"plain":   get(tt.host),
				"connect": "CONNECT " + tt.host + ":443 HTTP/1.1\r\nHost: test.allowed:443\r\n\r\n",
			}
		}
		for form, raw := range requests {
			t.Run(tt.id+"/"+form, func(t *testing.T) {
				w := start(t, proxy.Options{Allow: []string{"test.allowed", "localhost", "lan.allowed"}}, backend, names)
				got, _, body := w.send(t, raw)
				if got != tt.want && (tt.want != 0 || got != 403 && got != 400) {
					t.Errorf("%s: %d %q, want %d", tt.text, got, body, cmp.Or(tt.want, 403))
				}
				dials := w.dials()
				if want := public.String() + ":"; got == 200 && (len(dials) != 1 || !strings.HasPrefix(dials[0], want)) {
					t.Errorf("%s: dialled %q", tt.text, dials)
				}
				if got != 200 && len(dials) > 0 {
					t.Errorf("%s: refused, and dialled %q", tt.text, dials)
				}
				for _, d := range w.log() {
					if d.Allowed != (got == 200) && !strings.HasPrefix(d.Reason, "traffic on port 443") &&
						!strings.HasPrefix(d.Reason, "the tunnel does not start") {
						t.Errorf("%s: logged %+v", tt.text, d)
					}
				}
			})
		}
	}
}

func TestRefusalNamesTheHost(t *testing.T) {
	w := start(t, proxy.Options{Allow: []string{"test.allowed"}}, hello(t), nil)
	_, _, body := w.send(t, get("Example.COM"))
	want := "loadout: host example.com:80 is not allowed for this skill\n" +
		"To allow it, the skill requests \"example.com:80\" in its front matter (metadata.sandbox.network), and the operator adds it to sandbox.network.\n"
	if body != want {
		t.Errorf("got %q, want %q", body, want)
	}
	_, _, body = w.send(t, get("10.0.0.7"))
	if !strings.HasSuffix(body, "\nTo allow it, the skill requests \"10.0.0.7:80\" in its front matter (metadata.sandbox.network), "+
		"and the operator adds it to sandbox.network, and to sandbox.private because its address is not public.\n") {
		t.Errorf("a private address: %q", body)
	}
	// Programs print the reason of a refused CONNECT, not its body.
	_, line, _ := w.send(t, "CONNECT example.com:443 HTTP/1.1\r\n\r\n")
	if want := "403 host example.com:443 is not allowed for this skill"; line != want {
		t.Errorf("got %q, want %q", line, want)
	}
	if got, want := w.Denied(), []string{"10.0.0.7:80", "example.com:443", "example.com:80"}; !slices.Equal(got, want) {
		t.Errorf("denied %q, want %q", got, want)
	}
	for _, d := range w.log() {
		if d.Allowed || d.Host != "example.com" && d.Host != "10.0.0.7" || d.Time.IsZero() || !strings.Contains(d.Reason, "not allowed") {
			t.Errorf("logged %+v", d)
		}
	}
}

func TestDeniedHostLimit(t *testing.T) {
	w := start(t, proxy.Options{}, "", nil)
	for i := range 103 {
		w.send(t, get(fmt.Sprintf("h%d.example", i)))
	}
	got := w.Denied()
	if len(got) != 101 || got[100] != "and more" {
		t.Errorf("%d entries, the last %q", len(got), got[len(got)-1])
	}
}

// The proxy adds no information about the client, and removes the headers meant for the
// proxy.
func TestHeaders(t *testing.T) {
	var got http.Header
	var host, query string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, host, query = r.Header, r.Host, r.URL.RawQuery
		w.Header().Set("Location", "http://elsewhere.example/")
		w.Header().Set("Keep-Alive", "timeout=5")
		w.WriteHeader(http.StatusFound)
	}))
	defer s.Close()
	w := start(t, proxy.Options{Allow: []string{"test.allowed"}}, s.Listener.Addr().String(), nil)
	status, _, _ := w.send(t, "GET http://TEST.allowed./p?a;b=%zz HTTP/1.1\r\nHost: TEST.allowed.\r\nProxy-Authorization: Basic eA==\r\n"+
		"Proxy-Connection: keep-alive\r\nConnection: X-Hop\r\nX-Hop: 1\r\nUpgrade: h2c\r\nX-Kept: loadout-secret:KEY\r\n\r\n")
	if status != http.StatusFound {
		t.Errorf("status %d: a redirect is the script's to follow", status)
	}
	want := http.Header{"X-Kept": {"loadout-secret:KEY"}}
	if diff := gocmp.Diff(got, want); diff != "" {
		t.Errorf("header (-got +want):\n%s", diff)
	}
	if host != "test.allowed" || query != "a;b=%zz" {
		t.Errorf("host %q, query %q", host, query)
	}
	if n := len(w.dials()); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

// Whatever a name on the list resolves to, only public addresses are dialled.
func TestAddresses(t *testing.T) {
	refused := []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.255.255.254", "168.63.129.16",
		"169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.192", "192.0.2.1", "192.168.0.1", "198.18.0.1", "198.19.255.255",
		"198.51.100.1", "203.0.113.1", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255",
		"::", "::1", "::7f00:1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a00:1", "64:ff9b:1::1", "100::1",
		"fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%lo", "fec0::1", "ff02::1", "2001::7f00:1", "2001:db8::1", "2002:7f00:1::", "2002:a00:1::1",
		"3fff::1", "4000::1", "5f00::1",
	}
	allowed := []string{"1.1.1.1", "::ffff:8.8.8.8", "2606:4700::1111", "172.32.0.1", "100.128.0.1"}
	names := map[string][]netip.Addr{}
	var rules []string
	for i, a := range append(slices.Clone(refused), allowed...) {
		name := fmt.Sprintf("h%d.test", i)
		names[name] = []netip.Addr{netip.MustParseAddr(a)}
		rules = append(rules, name)
	}
	w := start(t, proxy.Options{Allow: rules}, hello(t), names)
	for i, name := range rules {
		status, _, body := w.send(t, get(name))
		want := 403
		if i >= len(refused) {
			want = 200
		}
		if status != want {
			t.Errorf("%v: %d %q, want %d", names[name], status, body, want)
		}
	}
	if got := len(w.dials()); got != len(allowed) {
		t.Errorf("%d dials, want %d", got, len(allowed))
	}
}

func TestPrivateAddressesThatAreListed(t *testing.T) {
	opts := proxy.Options{
		Allow:   []string{"registry.test", "other.test", "10.0.0.7"},
		Private: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/28")},
	}
	w := start(t, opts, hello(t), map[string][]netip.Addr{
		"registry.test": {netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("10.0.0.5")},
		"other.test":    {netip.MustParseAddr("10.0.0.16")},
	})
	for host, want := range map[string]int{"registry.test": 200, "other.test": 403, "10.0.0.7": 200, "10.0.0.8": 403} {
		if got, _, body := w.send(t, get(host)); got != want {
			t.Errorf("%s: %d %q, want %d", host, got, body, want)
		}
	}
	got := w.dials()
	slices.Sort(got)
	if want := []string{"10.0.0.5:80", "10.0.0.7:80"}; !slices.Equal(got, want) {
		t.Errorf("dialled %q, want %q", got, want)
	}
}

// A resolver that answers differently each time gains nothing: a name is resolved
// once for a connection, and the address that was checked is the one dialled.
func TestRebinding(t *testing.T) {
	answers := []netip.Addr{public, netip.MustParseAddr("127.0.0.1")}
	var mu sync.Mutex
	asked := 0
	w := start(t, proxy.Options{
		Allow: []string{"test.allowed", "test.allowed:8443"},
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			mu.Lock()
			defer mu.Unlock()
			asked++
			return answers[(asked-1)%2 : (asked-1)%2+1], nil
		},
	}, hello(t), nil)
	if got, _, _ := w.send(t, "CONNECT test.allowed:8443 HTTP/1.1\r\n\r\n"); got != 200 {
		t.Errorf("first: %d, want 200", got)
	}
	if got, _, _ := w.send(t, "CONNECT test.allowed:8443 HTTP/1.1\r\n\r\n"); got != 403 {
		t.Errorf("second: %d, want 403", got)
	}
	if got, want := w.dials(), []string{public.String() + ":8443"}; !slices.Equal(got, want) {
		t.Errorf("dialled %q, want %q", got, want)
	}
	if asked != 2 {
		t.Errorf("resolved %d times, want once for each", asked)
	}
}

// The dialler of the package, on loopback that the operator listed.
func TestRealDialler(t *testing.T) {
	backend := hello(t)
	_, port, _ := net.SplitHostPort(backend)
	w := start(t, proxy.Options{
		Allow:   []string{"test.allowed:" + port},
		Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	}, "", map[string][]netip.Addr{"test.allowed": {netip.MustParseAddr("127.0.0.1")}})
	status, _, body := w.send(t, get("test.allowed:"+port))
	if want := "hello from test.allowed:" + port; status != 200 || body != want {
		t.Errorf("%d %q, want %q", status, body, want)
	}
	d := w.log()[0]
	if d.Bytes != int64(len(body)) || d.Reason != "rule test.allowed:"+port {
		t.Errorf("logged %+v", d)
	}
}

func TestUnreachable(t *testing.T) {
	w := start(t, proxy.Options{
		Allow: []string{"gone.test", "refused.test"},
		Resolve: func(_ context.Context, host string) ([]netip.Addr, error) {
			if host == "gone.test" {
				return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
			}
			return []netip.Addr{public}, nil
		},
		Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("SECRET inside") },
	}, "", nil)
	for raw, want := range map[string]string{
		get("gone.test"):                         "502 loadout: host not found: gone.test\n",
		get("refused.test"):                      "502 loadout: cannot reach refused.test:80\n",
		"CONNECT gone.test:443 HTTP/1.1\r\n\r\n": "502 loadout: host not found: gone.test\n",
	} {
		status, _, body := w.send(t, raw)
		if got := fmt.Sprintf("%d %s", status, body); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := w.Denied(); len(got) > 0 {
		t.Errorf("denied %q: they were allowed", got)
	}
}

func TestCurl(t *testing.T) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("curl is not on PATH")
	}
	w := start(t, proxy.Options{Allow: []string{"test.allowed"}}, hello(t), nil)
	run := func(args ...string) string {
		cmd := exec.Command(curl, append([]string{"-q", "-sS", "-m", "20"}, args...)...)
		for k, v := range proxy.Env(w.addr) {
			cmd.Env = append(cmd.Env, k+"="+v)
		}
		out, _ := cmd.CombinedOutput()
		return string(out)
	}
	if got := run("http://TEST.allowed/"); got != "hello from test.allowed" {
		t.Errorf("allowed: %q", got)
	}
	if got := run("-p", "http://test.allowed/"); got != "hello from test.allowed" {
		t.Errorf("HTTP through CONNECT: %q", got)
	}
	if got := run("http://other.example/"); !strings.Contains(got, "host other.example:80 is not allowed for this skill") {
		t.Errorf("refused: %q", got)
	}
	if got := run("https://other.example/"); !strings.Contains(got, "403") {
		t.Errorf("refused CONNECT: %q", got)
	}
}
