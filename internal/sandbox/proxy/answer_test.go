package proxy_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/loadout-dev/loadout/internal/sandbox/proxy"
)

// A proxy that answers requests itself connects to nothing, and passes the whole
// content of requests on, also of encrypted ones and of other protocols.
func TestAnswerReachesNoHost(t *testing.T) {
	var mu sync.Mutex
	var all []proxy.Request
	w := start(t, proxy.Options{
		Answer: func(r proxy.Request) []byte {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, r)
			return []byte("answer")
		},
		Dial: func(context.Context, string, string) (net.Conn, error) {
			t.Error("connected")
			return nil, errors.New("no")
		},
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			t.Error("resolved a name")
			return nil, errors.New("no")
		},
	}, "", nil)
	for _, url := range []string{"http://a.test/x", "https://b.test/y", "https://10.0.0.1:8443/z"} {
		resp, err := w.client(t, w.trust(t)).Post(url, "text/plain", strings.NewReader("body of "+url))
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(resp.Body); string(body) != "answer" || err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %s %q %v", url, resp.Status, body, err)
		}
		resp.Body.Close()
	}
	c, _ := w.connect(t, "c.test:9999")
	io.WriteString(c, "\x00\x01 another protocol")
	c.Close()
	w.send(t, "GET http://user@d.test/ HTTP/1.1\r\nHost: d.test\r\n\r\n")
	w.log() // waits for all connections
	want := []struct{ host, data string }{{"a.test", "body of http://a.test/x"}, {"b.test", "body of https://b.test/y"}, {"10.0.0.1", "body of https://10.0.0.1:8443/z"}, {"c.test", "another protocol"}, {"d.test", "user@d.test"}}
	for _, tt := range want {
		found := false
		for _, r := range all {
			found = found || r.Host == tt.host && strings.Contains(string(r.Data), tt.data)
		}
		if !found {
			t.Errorf("no request to %s with %q in %+v", tt.host, tt.data, all)
		}
	}
}
