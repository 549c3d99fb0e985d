package proxy_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/sandbox/proxy"
)

var quiet = log.New(io.Discard, "", 0)

const value = "Bearer s3cr3t-value"

// trust is the certificate pool of a script in the sandbox.
func (w *fixture) trust(t *testing.T) *x509.CertPool {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(w.CA()) {
		t.Fatal("CA holds no certificate")
	}
	return pool
}

func TestSecretOverTLS(t *testing.T) {
	var got []string
	addr, roots := secure(t, func(w http.ResponseWriter, r *http.Request) {
		got = append(got, fmt.Sprint(r.Proto, " ", r.Host, " ", r.Header["Authorization"], " ", r.Header["X-Other"]))
		w.Header().Set("Location", "https://elsewhere.example/")
		w.WriteHeader(http.StatusTemporaryRedirect)
	})
	w := start(t, proxy.Options{
		Allow:   []string{"example.com"},
		Secrets: []proxy.Injection{{Host: "example.com", Header: "authorization", Value: value, Name: "TOKEN"}},
		Roots:   roots,
	}, addr, nil)
	client := w.client(t, w.trust(t))
	for range 2 { // on one connection
		req, _ := http.NewRequest("POST", "https://example.com/path", strings.NewReader("body"))
		req.Header.Set("Authorization", "Bearer mine")
		req.Header.Set("X-Other", "loadout-secret:TOKEN")
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusTemporaryRedirect {
			t.Errorf("status %d: a redirect is the script's", resp.StatusCode)
		}
	}
	want := "HTTP/1.1 example.com [" + value + "] [loadout-secret:TOKEN]"
	if !slices.Equal(got, []string{want, want}) {
		t.Errorf("the host received %q", got)
	}
	decisions := w.log()
	if len(decisions) != 2 || decisions[0].Method != "POST" || !slices.Equal(decisions[0].Secrets, []string{"TOKEN"}) || decisions[0].Bytes != 4 {
		t.Errorf("logged %+v", decisions)
	}
	if s := fmt.Sprintf("%+v", decisions); strings.Contains(s, "s3cr3t") {
		t.Errorf("the value is in the log: %s", s)
	}
}

func TestSecretOverPlainHTTP(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Header["X-Api-Key"])
	}))
	defer s.Close()
	w := start(t, proxy.Options{
		Allow: []string{"plain.test", "plain.test:8080", "tls.test", "other.test", "plain.test.other.test"},
		Secrets: []proxy.Injection{
			{Host: "plain.test", Header: "X-Api-Key", Value: "one", Name: "P", Plain: true},
			{Host: "plain.test:8080", Header: "X-Api-Key", Value: "two", Name: "P8", Plain: true},
			{Host: "tls.test", Header: "X-Api-Key", Value: "three", Name: "T"},
		},
	}, s.Listener.Addr().String(), nil)
	for host, want := range map[string]string{
		"plain.test": "[one]", "PLAIN.test.": "[one]", "plain.test:8080": "[two]",
		"tls.test": "[mine]", "other.test": "[mine]", "plain.test.other.test": "[mine]",
	} {
		_, _, body := w.send(t, "GET http://"+host+"/ HTTP/1.1\r\nHost: "+host+"\r\nConnection: X-Nothing\r\nX-Api-Key: mine\r\n\r\n")
		if body != want {
			t.Errorf("%s: the host received %s, want %s", host, body, want)
		}
	}
	// In a tunnel too, and a script cannot have it removed as belonging to the hop.
	for _, authority := range []string{"plain.test:80", "plain.test:8080"} {
		c, r := w.connect(t, authority)
		fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: x-api-key\r\n\r\n", authority)
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		if want := map[string]string{"plain.test:80": "[one]", "plain.test:8080": "[two]"}[authority]; string(body) != want {
			t.Errorf("%s: the host received %s, want %s", authority, body, want)
		}
		c.Close()
	}
}

// A host that cannot prove who it is gets no secret.
func TestSecretNeedsVerifiedHost(t *testing.T) {
	asked := false
	addr, _ := secure(t, func(http.ResponseWriter, *http.Request) { asked = true })
	w := start(t, proxy.Options{
		Allow:   []string{"example.com"},
		Secrets: []proxy.Injection{{Host: "example.com", Header: "Authorization", Value: value, Name: "TOKEN"}},
		Roots:   x509.NewCertPool(),
	}, addr, nil)
	resp, err := w.client(t, w.trust(t)).Get("https://example.com/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	if want := "loadout: cannot reach example.com:443: invalid certificate\n"; resp.StatusCode != 502 || string(body) != want || asked {
		t.Errorf("%d %q, asked %t", resp.StatusCode, body, asked)
	}
}

// Inside an opened tunnel only its host can be asked, and refusals can be read.
func TestSecretTunnelServesOneHost(t *testing.T) {
	addr, roots := secure(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Host) })
	w := start(t, proxy.Options{
		Allow:   []string{"example.com", "private.test", "evil.com"},
		Secrets: []proxy.Injection{{Host: "example.com", Header: "Authorization", Value: value, Name: "TOKEN"}, {Host: "private.test", Header: "X", Value: "x"}},
		Roots:   roots,
	}, addr, map[string][]netip.Addr{"private.test": {netip.MustParseAddr("10.0.0.1")}})
	client := w.client(t, w.trust(t))
	if resp, err := client.Get("https://private.test/"); err != nil {
		t.Error(err)
	} else {
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != 403 || !strings.Contains(string(body), "private.test:443 is not allowed for this skill: its address is not public\nTo allow it, the operator adds its address to sandbox.private.\n") {
			t.Errorf("private address: %d %q", resp.StatusCode, body)
		}
	}
	req, _ := http.NewRequest("GET", "https://example.com/", nil)
	req.Host = "evil.com"
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 400 {
		t.Errorf("other Host header: %d", resp.StatusCode)
	}
	if _, err := client.Get("https://evil.com/"); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a host without a secret must not be opened: %v", err)
	}
	// Only that request: not the one for example.com, nor any for private.test.
	if got, want := w.dials(), []string{public.String() + ":443"}; !slices.Equal(got, want) {
		t.Errorf("dialled %q, want %q", got, want)
	}
}

func TestAuthority(t *testing.T) {
	w := start(t, proxy.Options{
		Allow:   []string{"*.example.com"},
		Secrets: []proxy.Injection{{Host: "*.example.com", Header: "X", Value: "x"}, {Host: "192.0.2.1", Header: "X", Value: "x"}},
	}, "", nil)
	block, rest := pem.Decode(w.CA())
	if block == nil || len(rest) > 0 {
		t.Fatalf("CA is not one certificate: %s", w.CA())
	}
	ca, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if !ca.IsCA || !ca.MaxPathLenZero || !slices.Equal(ca.PermittedDNSDomains, []string{"example.com"}) || len(ca.PermittedIPRanges) != 1 {
		t.Errorf("the authority is not limited: %+v", ca)
	}
	if bytes.Contains(w.CA(), []byte("PRIVATE")) {
		t.Error("the key is handed out")
	}
	s, err := proxy.New(proxy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.CA() != nil {
		t.Error("an authority without a secret")
	}
	if bundle, err := w.CABundle(); err == nil && (!bytes.HasSuffix(bundle, w.CA()) || len(bundle) < 10_000) {
		t.Errorf("bundle of %d bytes", len(bundle))
	}
}

// What curl and Python trust by file, with the constraints of the authority.
func TestSecretWithRealPrograms(t *testing.T) {
	addr, roots := secure(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%t", r.Header.Get("Authorization") == value)
	})
	w := start(t, proxy.Options{
		Allow:   []string{"example.com"},
		Secrets: []proxy.Injection{{Host: "example.com", Header: "Authorization", Value: value, Name: "TOKEN"}},
		Roots:   roots,
	}, addr, nil)
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, w.CA(), 0o600); err != nil {
		t.Fatal(err)
	}
	const py = `import ssl, urllib.request as u
c = ssl.create_default_context()
c.verify_flags |= getattr(ssl, "VERIFY_X509_STRICT", 0)
print(u.build_opener(u.ProxyHandler(), u.HTTPSHandler(context=c)).open("https://example.com/", timeout=20).read().decode(), end="")`
	const js = `const [host, port] = process.argv[1].split(":")
require("http").request({host, port, method: "CONNECT", path: "example.com:443"}).on("connect", (r, socket) => {
const c = require("tls").connect({socket, servername: "example.com"}, () => c.write("GET / HTTP/1.0\r\n\r\n"))
let all = ""
c.on("data", d => all += d).on("end", () => process.stdout.write(all.split("\r\n\r\n")[1])) }).end()`
	for _, command := range [][]string{
		{"curl", "-q", "-sS", "-m", "20", "https://example.com/"},
		{"python3", "-c", py},
		{"node", "-e", js, w.addr},
	} {
		t.Run(command[0], func(t *testing.T) {
			name, err := exec.LookPath(command[0])
			if err != nil {
				t.Skipf("%s is not on PATH", command[0])
			}
			cmd := exec.Command(name, command[1:]...)
			cmd.Env = append(os.Environ(), "SSL_CERT_FILE="+file, "CURL_CA_BUNDLE="+file, "NODE_EXTRA_CA_CERTS="+file)
			for k, v := range proxy.Env(w.addr) {
				cmd.Env = append(cmd.Env, k+"="+v)
			}
			if out, err := cmd.CombinedOutput(); string(out) != "true" {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

func TestFaultsAreReportedTogether(t *testing.T) {
	_, err := proxy.New(proxy.Options{
		Allow: []string{"good.test", "a*b", "http://x.test", "*.com", "10.0.0.256"},
		Secrets: []proxy.Injection{
			{Host: "a/b", Header: "X", Value: "s3cr3t", Name: "A"},
			{Host: "a.test", Header: "X y", Value: "s3cr3t", Name: "B"},
			{Host: "a.test", Header: "Content-length", Value: "s3cr3t", Name: "C"},
			{Host: "a.test", Header: "X", Value: "s3cr3t\n", Name: "D"},
			{Host: "a.test", Header: "X", Value: "", Name: "E"},
		},
	})
	if err == nil {
		t.Fatal("no error")
	}
	want := strings.TrimPrefix(`
allowed host "a*b": a * must be the whole first label, as in *.example.com
allowed host "http://x.test": remove the scheme, only a host can be allowed
allowed host "*.com": a whole top-level domain cannot be allowed
allowed host "10.0.0.256": host must not be a number
secret "A": allowed host "a/b": remove the path, only a host can be allowed
secret "B": invalid header name "X y"
secret "C": header "Content-length" is not allowed
secret "D": value contains a control character, such as a newline
secret "E": value is empty`, "\n")
	if err.Error() != want {
		t.Errorf("got:\n%v\nwant:\n%s", err, want)
	}
	in := proxy.Injection{Host: "a.test", Value: "s3cr3t", Name: "A"}
	if s := fmt.Sprintf("%v %+v %#v %s", in, in, &in, []proxy.Injection{in}); strings.Contains(s, "s3cr3t") {
		t.Errorf("printed: %s", s)
	}
}

// A host that goes by its address can have a secret too.
func TestSecretForAddress(t *testing.T) {
	addr, roots := secure(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Header["X-Api-Key"]) })
	_, port, _ := net.SplitHostPort(addr)
	host := "127.0.0.1:" + port // the certificate of httptest names it
	w := start(t, proxy.Options{
		Allow:   []string{host},
		Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Secrets: []proxy.Injection{{Host: host, Header: "X-Api-Key", Value: "k", Name: "K"}},
		Roots:   roots,
	}, "", nil)
	c, _ := w.connect(t, host) // net/http asks no proxy for loopback
	tc := tls.Client(c, &tls.Config{ServerName: "127.0.0.1", RootCAs: w.trust(t)})
	fmt.Fprintf(tc, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", host)
	resp, err := http.ReadResponse(bufio.NewReader(tc), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); string(body) != "[k]" {
		t.Errorf("the host received %s", body)
	}
}
