package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fetched returns the content of a URL for a location of this kind.
func fetched(t testing.TB, c *Client, l Location, from string) (string, error) {
	t.Helper()
	ctx, cancel := c.startSession(t.Context(), l)
	defer cancel()
	resp, err := c.get(ctx, from, nil)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	src, err := io.ReadAll(resp.Body)
	return string(src), err
}

func TestAddressesThatAreNotPublicAreRefused(t *testing.T) {
	w := newFixture(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "secret") })
	w.names["rebound.example.com"] = []netip.Addr{netip.MustParseAddr("127.0.0.1")}
	w.names["mapped.example.com"] = []netip.Addr{netip.MustParseAddr("::ffff:10.0.0.1")}
	w.names["metadata.example.com"] = []netip.Addr{netip.MustParseAddr("169.254.169.254")}
	w.names["mixed.example.com"] = []netip.Addr{netip.MustParseAddr("10.0.0.1"), public}
	w.names["localhost"] = []netip.Addr{netip.MustParseAddr("127.0.0.1")}
	w.names["evil.localhost"] = []netip.Addr{netip.MustParseAddr("10.0.0.1")}
	c := w.client(t, nil)
	for _, tt := range []struct{ place, url, why string }{
		{"https://example.com", "https://example.com/", ""},
		{"https://mixed.example.com", "https://mixed.example.com/", ""},
		{"https://rebound.example.com", "https://rebound.example.com/", "loopback"},
		{"https://mapped.example.com", "https://mapped.example.com/", "private"},
		{"https://metadata.example.com", "https://metadata.example.com/", "link-local"},
		{"https://2130706433", "https://2130706433/", "number"},
		{"https://0x7f.1", "https://0x7f.1/", "number"},
		{"https://example.com", "https://①②⑦.⓪.⓪.①/", "ASCII"},
		// Written by the user.
		{"https://10.0.0.1", "https://10.0.0.1/", ""},
		{"http://127.0.0.1:80", "http://127.0.0.1:80/", ""},
		{"http://[::1]:80", "http://[::1]:80/", ""},
		{"http://localhost", "http://LOCALHOST/", ""},
		{"https://evil.localhost", "https://evil.localhost/", "private"},
		// Not written by the user.
		{"https://example.com", "https://10.0.0.1/", "private"},
		{"https://example.com", "https://localhost/", "loopback"},
		{"http://127.0.0.1", "http://localhost/", "loopback"},
		// Forbidden for everybody.
		{"https://169.254.169.254", "https://169.254.169.254/", "link-local"},
		{"https://[fd00:ec2::254]", "https://[fd00:ec2::254]/", "credentials"},
		{"https://168.63.129.16", "https://168.63.129.16/", "cloud"},
		{"https://[::ffff:169.254.169.254]", "https://[::ffff:169.254.169.254]/", "link-local"},
		{"https://[fe80::1%25eth0]", "https://[fe80::1%25eth0]/", "link-local"},
	} {
		t.Run(tt.place+" "+tt.url, func(t *testing.T) {
			got, err := fetched(t, c, Location{Kind: File, URL: tt.place}, tt.url)
			if tt.why == "" {
				if err != nil || got != "secret" {
					t.Errorf("%q, %v", got, err)
				}
				return
			}
			refused, ok := errors.AsType[*AddressError](err)
			if !ok || !strings.Contains(refused.Reason, tt.why) {
				t.Errorf("%q, %v; want it refused as %s", got, err, tt.why)
			}
		})
	}
	_, dialed := w.log()
	for _, a := range dialed {
		if host, _, _ := net.SplitHostPort(a); netip.MustParseAddr(host) != public && !slices.Contains([]string{"10.0.0.1", "127.0.0.1", "::1"}, host) {
			t.Errorf("dialled %s", a)
		}
	}
	if _, err := c.get(t.Context(), "http://127.0.0.1/", nil); err == nil {
		t.Error("outside a trip a private address was asked")
	}
}

func TestListedPrivateHostsAreAllowed(t *testing.T) {
	w := newFixture(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ours") })
	w.names["git.example.com"] = []netip.Addr{netip.MustParseAddr("10.0.0.1")}
	w.names["cloud.example.com"] = []netip.Addr{netip.MustParseAddr("169.254.169.254")}
	c := w.client(t, &Options{Private: func(host string) bool { return host == "git.example.com" || host == "cloud.example.com" }})
	if got, err := fetched(t, c, Location{}, "https://GIT.example.com./"); err != nil || got != "ours" {
		t.Errorf("%q, %v", got, err)
	}
	_, err := fetched(t, c, Location{}, "https://cloud.example.com/")
	if refused, ok := errors.AsType[*AddressError](err); !ok || !refused.AlwaysBlocked {
		t.Errorf("%v, want an address that no option lets", err)
	}
}

func TestCheckedAddressIsDialled(t *testing.T) {
	w := newFixture(t, func(http.ResponseWriter, *http.Request) {})
	c := w.client(t, nil)
	lookups := 0
	c.resolve = func(context.Context, string) ([]netip.Addr, error) {
		if lookups++; lookups == 1 {
			return []netip.Addr{public}, nil
		}
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}
	if _, err := fetched(t, c, Location{Kind: File, URL: "https://example.com"}, "https://example.com/"); err != nil {
		t.Fatal(err)
	}
	if _, dialed := w.log(); lookups != 1 || dialed[0] != public.String()+":443" {
		t.Errorf("%d look-ups, dialled %v", lookups, dialed)
	}
}

func TestRedirects(t *testing.T) {
	w := newFixture(t, func(w http.ResponseWriter, r *http.Request) {
		if to := r.URL.Query().Get("to"); to != "" {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		if r.URL.Path == "/loop" {
			http.Redirect(w, r, "/loop", http.StatusMovedPermanently)
			return
		}
		if r.URL.Path == "/nowhere" {
			w.WriteHeader(http.StatusFound)
			return
		}
		if ref := r.Header.Get("Referer"); ref != "" {
			t.Errorf("got %s that it comes from %s", r.Host, ref)
		}
		io.WriteString(w, "here")
	})
	w.names["inside.example.com"] = []netip.Addr{netip.MustParseAddr("192.168.1.1")}
	c := w.client(t, nil)
	for _, tt := range []struct{ from, to, wrong string }{
		{"https://example.com/", "https://example.org/x", ""},
		{"https://example.com/", "/x?y=1", ""},
		{"http://127.0.0.1/", "http://127.0.0.1/x", ""},
		{"http://127.0.0.1/", "https://example.com/x", ""},
		{"https://example.com/", "http://example.com/x", "from https to http"},
		{"https://example.com/", "http://127.0.0.1/x", "from https to http"},
		{"https://127.0.0.1:443/", "http://127.0.0.1/x", "from https to http"},
		{"http://127.0.0.1/", "http://example.com/x", "requires https"},
		{"https://example.com/", "https://127.0.0.1/x", "loopback"},
		{"https://example.com/", "https://inside.example.com/x", "private"},
		{"https://example.com/", "https://169.254.169.254/latest/meta-data", "link-local"},
		{"https://example.com/", "file:///etc/passwd", "redirect"},
		{"https://127.0.0.1:443/", "https://example.com/?to=https://127.0.0.1:443/x", "loopback"}, // there, and back
		{"https://example.com/loop", "", "too many redirects (limit 10)"},
		{"https://example.com/nowhere", "", "invalid redirect URL"},
	} {
		from := tt.from
		if tt.to != "" {
			from += "?to=" + url.QueryEscape(tt.to)
		}
		got, err := fetched(t, c, Location{Kind: File, URL: tt.from}, from)
		switch {
		case tt.wrong == "" && (err != nil || got != "here"):
			t.Errorf("%s to %s: %q, %v", tt.from, tt.to, got, err)
		case tt.wrong != "" && (err == nil || !strings.Contains(err.Error(), tt.wrong)):
			t.Errorf("%s to %s: %q, %v; want %s", tt.from, tt.to, got, err, tt.wrong)
		}
	}
}

func TestCredentialIsSentToItsHostOnly(t *testing.T) {
	w := newFixture(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/elsewhere" && r.Header.Get("Authorization") != "":
			http.Redirect(w, r, "https://cdn.example.com/x", http.StatusFound)
		case r.URL.Path == "/foreign":
			http.Redirect(w, r, "https://example.org/denied", http.StatusFound)
		case r.Host == "cdn.example.com":
			io.WriteString(w, "from elsewhere")
		case r.URL.Path == "/missing", r.Header.Get("Authorization") == "":
			status := http.StatusUnauthorized
			if r.URL.Path == "/hidden" || r.URL.Path == "/missing" {
				status = http.StatusNotFound
			}
			http.Error(w, "", status)
		default:
			io.WriteString(w, "private")
		}
	})
	const basic = " Basic YTpz"
	for _, tt := range []struct {
		name, url string
		kind      Kind
		cred      *Credential
		want      string // content, or the status
		asked     []string
	}{
		{"refused and shown", "https://example.com/x", File, &Credential{"a", "s"}, "private", []string{"https://example.com/x", "https://example.com/x" + basic}},
		{"a token without a user", "https://example.com/x", File, &Credential{"", "s"}, "private", []string{"https://example.com/x", "https://example.com/x Bearer s"}},
		{"hidden as not found", "https://example.com/hidden", File, &Credential{"a", "s"}, "private", []string{"https://example.com/hidden", "https://example.com/hidden" + basic}},
		{"an index that is not there", "https://example.com/missing", Index, &Credential{"a", "s"}, "404", []string{"https://example.com/missing"}},
		{"none there", "https://example.com/x", File, nil, "401", []string{"https://example.com/x"}},
		{"redirected to another host", "https://example.com/elsewhere", File, &Credential{"a", "s"}, "from elsewhere",
			[]string{"https://example.com/elsewhere", "https://example.com/elsewhere" + basic, "https://cdn.example.com/x"}},
		{"another host refuses", "https://example.com/foreign", File, &Credential{"a", "s"}, "401", []string{"https://example.com/foreign", "https://example.org/denied"}},
		{"not the host of the place", "https://example.org/x", File, &Credential{"a", "s"}, "401", []string{"https://example.org/x"}},
		{"user and password in a redirect or URL", "https://u:p@example.org/x", File, nil, "401", []string{"https://example.org/x"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w.mu.Lock()
			w.asked = nil
			w.mu.Unlock()
			asked := 0
			c := w.client(t, &Options{Credential: func(_ context.Context, host string) (*Credential, error) {
				if asked++; host != "example.com" {
					t.Errorf("asked for %s", host)
				}
				return tt.cred, nil
			}})
			got, err := fetched(t, c, Location{Kind: tt.kind, URL: "https://example.com"}, tt.url)
			if status, ok := errors.AsType[*StatusError](err); ok {
				got = fmt.Sprint(status.Code)
			}
			if got != tt.want || asked > 1 {
				t.Errorf("got %q, %v, asked %d times", got, err, asked)
			}
			log, _ := w.log()
			if diff := cmp.Diff(tt.asked, log); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A credential is not sent where others could read it.
func TestCredentialIsNotSentOverPlainHTTP(t *testing.T) {
	w := newFixture(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "", http.StatusUnauthorized) })
	w.names["git.example.com"] = []netip.Addr{netip.MustParseAddr("10.0.0.1")}
	c := w.client(t, &Options{
		Private:    func(string) bool { return true },
		Credential: func(context.Context, string) (*Credential, error) { return &Credential{"a", "s"}, nil },
	})
	for at, want := range map[string]int{"http://git.example.com/x": 1, "http://127.0.0.1/x": 2} {
		before, _ := w.log()
		if _, err := fetched(t, c, Location{Kind: File, URL: at}, at); err == nil {
			t.Errorf("%s: got", at)
		}
		after, _ := w.log()
		if len(after)-len(before) != want {
			t.Errorf("%s: asked %v", at, after[len(before):])
		}
	}
}

func TestErrorsContainNoSecrets(t *testing.T) {
	w := newFixture(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, "https://u:hunter2@10.0.0.1/x?token=hunter2", http.StatusFound)
		case "/bad":
			w.Header().Set("Location", "https://u:hunter2@exa mple/%zz?hunter2")
			w.WriteHeader(http.StatusFound)
		case "/cut":
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "x")
		default:
			http.Error(w, "", http.StatusTeapot)
		}
	})
	c := w.client(t, &Options{Credential: func(context.Context, string) (*Credential, error) { return &Credential{"u", "hunter2"}, nil }})
	for _, p := range []string{"/", "/away", "/bad", "/cut", "/\x1b[31m"} {
		_, err := fetched(t, c, Location{Kind: File, URL: "https://example.com"}, (&url.URL{Scheme: "https", Host: "example.com", Path: p, RawQuery: "token=hunter2", User: url.UserPassword("u", "hunter2")}).String())
		if err == nil || strings.Contains(err.Error(), "hunter2") || strings.ContainsRune(err.Error(), 0x1b) {
			t.Errorf("%q: %v", p, err)
		}
	}
}

func TestBodyLimits(t *testing.T) {
	w := newFixture(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/said":
			w.Header().Set("Content-Length", "2147483648")
		case "/cut":
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "x")
			return
		case "/right":
			w.Write(make([]byte, 1<<20))
			return
		}
		zeros := make([]byte, 64<<10)
		for {
			if _, err := w.Write(zeros); err != nil {
				return
			}
		}
	})
	c := w.client(t, &Options{Limits: Limits{Download: 1 << 20}})
	l := Location{Kind: File, URL: "https://example.com"}
	for _, p := range []string{"/said", "/endless"} {
		got, err := fetched(t, c, l, "https://example.com"+p)
		large, ok := errors.AsType[*TooLargeError](err)
		if !ok || large.Limit != 1<<20 || len(got) > 1<<20 {
			t.Errorf("%s: %d bytes, %v", p, len(got), err)
		}
	}
	if got, err := fetched(t, c, l, "https://example.com/right"); err != nil || len(got) != 1<<20 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if _, err := fetched(t, c, l, "https://example.com/cut"); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("cut off: %v", err)
	}
}

func TestUserProxyIsUsed(t *testing.T) {
	w := newFixture(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "by proxy") })
	w.names["inside.example.com"] = []netip.Addr{netip.MustParseAddr("10.0.0.1")}
	c := w.client(t, &Options{Private: func(host string) bool { return host == "plain.example.com" }})
	proxy, err := url.Parse(w.plain.URL)
	if err != nil {
		t.Fatal(err)
	}
	c.proxy = func(*http.Request) (*url.URL, error) { return proxy, nil }
	if got, err := fetched(t, c, Location{}, "http://plain.example.com/"); err != nil || got != "by proxy" {
		t.Errorf("%q, %v", got, err)
	}
	for _, literal := range []string{"https://10.0.0.1/", "https://169.254.169.254/", "https://localhost/", "https://2130706433/", "https://127.1/", "https://①②⑦.⓪.⓪.①/"} {
		if _, err := fetched(t, c, Location{}, literal); err == nil {
			t.Errorf("%s was asked through a proxy", literal)
		} else if _, ok := errors.AsType[*AddressError](err); !ok {
			t.Errorf("%s: %v", literal, err)
		}
	}
}

// silent is a connection on which an answer begins, and nothing follows.
func silent(t *testing.T, answer string) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		t.Cleanup(func() { theirs.Close() })
		go func() {
			buf := make([]byte, 4<<10)
			if _, err := theirs.Read(buf); err == nil {
				io.WriteString(theirs, answer)
			}
		}()
		return ours, nil
	}
}

func TestStalledTransferEnds(t *testing.T) {
	for name, tt := range map[string]struct {
		answer string
		limit  time.Duration
		after  time.Duration
		want   string
	}{
		"no header":     {"", 0, headerTimeout, "timeout"},
		"half a header": {"HTTP/1.1 200 OK\r\nContent-", 0, headerTimeout, "timeout"},
		"half a body":   {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", 0, stallTimeout, "no data received for 1m0s"},
		"a time limit":  {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", 5 * time.Second, 5 * time.Second, "timeout after 5s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := New(&Options{Private: func(string) bool { return true }, Limits: Limits{Time: tt.limit}})
				c.proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
				c.dial = silent(t, tt.answer)
				c.resolve = func(context.Context, string) ([]netip.Addr, error) { return []netip.Addr{public}, nil }
				start := time.Now()
				_, err := fetched(t, c, Location{}, "http://example.com/")
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%v, want %s", err, tt.want)
				}
				if elapsed := time.Since(start); elapsed != tt.after { // of the bubble: exact
					t.Errorf("ended after %s", elapsed)
				}
			})
		})
	}
}

func TestCancelledGetEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(&Options{Private: func(string) bool { return true }})
		c.proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
		c.dial = silent(t, "")
		c.resolve = func(context.Context, string) ([]netip.Addr, error) { return []netip.Addr{public}, nil }
		why := errors.New("the person pressed a key")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(why) })
		if _, err := c.get(ctx, "http://example.com/", nil); !errors.Is(err, why) {
			t.Errorf("%v", err)
		}
	})
}
