package upstream

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const maxRedirects = 5

// protocolHeaders are set by the transport; a configuration does not replace them.
var protocolHeaders = map[string]bool{
	"Accept": true, "Content-Type": true, "Content-Length": true, "Transfer-Encoding": true, "Host": true,
	"Connection": true, "Last-Event-Id": true, "Mcp-Method": true, "Mcp-Name": true,
	"Mcp-Protocol-Version": true, "Mcp-Session-Id": true,
}

// newStreamable is the transport of streamable HTTP, both eras.
func newStreamable(l *link) (mcp.Transport, error) {
	client, endpoint, err := l.client()
	if err != nil {
		return nil, err
	}
	var oauth auth.OAuthHandler
	if l.dialer.OAuth != nil {
		oauth = l.dialer.OAuth(l.config, endpoint)
		guide, _ := oauth.(Guide)
		l.mu.Lock()
		l.guide = guide
		l.mu.Unlock()
	}
	return &streamable{link: l, endpoint: endpoint, trip: client.Transport.(*roundTripper), inner: &mcp.StreamableClientTransport{
		Endpoint:     endpoint,
		HTTPClient:   client,
		OAuthHandler: oauth,
		MaxEventSize: l.dialer.maxMessage(),
	}}, nil
}

// newSSE is the transport of servers from before 2025-03-26.
func newSSE(l *link) (mcp.Transport, error) {
	client, endpoint, err := l.client()
	if err != nil {
		return nil, err
	}
	return &sse{link: l, inner: &mcp.SSEClientTransport{
		Endpoint:     endpoint,
		HTTPClient:   client,
		MaxEventSize: l.dialer.maxMessage(),
	}}, nil
}

type sse struct {
	link  *link
	inner *mcp.SSEClientTransport
}

// Connect opens the stream. The SDK ties it to ctx, which is that of connecting;
// it has to live as long as the connection.
func (s *sse) Connect(ctx context.Context) (mcp.Connection, error) {
	stream, cancel := context.WithCancelCause(s.link.ctx)
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	conn, err := s.inner.Connect(stream)
	if !stop() || err != nil {
		if err == nil {
			conn.Close()
			err = context.Cause(ctx)
		}
		cancel(nil)
		return nil, err
	}
	return conn, nil
}

// client is an HTTP client for this connection alone, and the URL without what is
// secret in it.
func (l *link) client() (*http.Client, string, error) {
	u, err := url.Parse(l.url)
	if err != nil || u.Host == "" {
		return nil, "", errors.New("its url cannot be read; correct it")
	}
	switch u.Scheme {
	case "http", "https":
	case "ws", "wss":
		u.Scheme = "http" + strings.TrimPrefix(u.Scheme, "ws")
	default:
		return nil, "", fmt.Errorf("its url begins with %q; use http, https, ws or wss", u.Scheme)
	}
	rt := &roundTripper{link: l, origin: originOf(u), headers: http.Header{}}
	for k, v := range l.config.Headers {
		if k = http.CanonicalHeaderKey(k); !protocolHeaders[k] {
			rt.headers.Set(k, v)
		}
	}
	if u.User != nil {
		pass, _ := u.User.Password()
		if rt.headers.Get("Authorization") == "" {
			rt.headers.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+pass)))
		}
		u.User = nil
	}
	client := &http.Client{CheckRedirect: rt.redirect}
	if given := l.dialer.HTTP; given != nil {
		client.Jar = given.Jar
		if given.Transport != nil && l.config.Owner == "" {
			rt.base = given.Transport
		}
	}
	if l.config.Owner != "" {
		rt.base = l.guardedTransport()
	}
	if rt.base == nil {
		rt.base = l.ownTransport()
	}
	client.Transport = rt
	return client, u.String(), nil
}

// idlePerHost is how many connections of HTTP wait for the next call; the two of
// the standard library are few for callers at once.
const idlePerHost = 32

// ownTransport is one whose idle connections end with ours.
func (l *link) ownTransport() http.RoundTripper {
	std, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport
	}
	t := std.Clone()
	t.MaxIdleConnsPerHost = idlePerHost
	l.mu.Lock()
	l.http = t
	l.mu.Unlock()
	return t
}

// A roundTripper adds the headers of the configuration for its own host and no
// other, bounds answers, and notes what became of a request.
type roundTripper struct {
	link    *link
	base    http.RoundTripper
	origin  string // scheme, host and port
	headers http.Header
	version atomic.Pointer[string] // of the older era, once it is agreed on
}

func (t *roundTripper) redirect(req *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return fmt.Errorf("more than %d redirects", maxRedirects)
	}
	if via[len(via)-1].URL.Scheme == "https" && req.URL.Scheme != "https" {
		return errors.New("a redirect from https to http is not followed")
	}
	if t.link.config.Owner != "" && originOf(req.URL) != t.origin {
		return fmt.Errorf("it redirects to %s, which is not followed for a server of %s; put that address into its configuration", originOf(req.URL), t.link.config.Owner)
	}
	return nil
}

// originOf is scheme, host and port of a URL.
func originOf(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

func (t *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	tr := trackOf(req.Context())
	ctx := req.Context()
	if tr != nil {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
			WroteHeaders: func() { tr.sent.Store(true) },
		})
	}
	req = req.Clone(ctx)
	if v := t.version.Load(); v != nil && req.Header.Get("Mcp-Protocol-Version") == "" {
		req.Header.Set("Mcp-Protocol-Version", *v)
	}
	if own := originOf(req.URL) == t.origin; own {
		for k, v := range t.headers {
			req.Header[k] = v
		}
		if _, token, _ := strings.Cut(req.Header.Get("Authorization"), " "); t.headers.Get("Authorization") == "" {
			t.link.config.tokens.add(token) // of the OAuth handler
		}
	} else {
		if req.Response == nil {
			err := fmt.Errorf("the server wants messages at another host (%s); put that address into its configuration", req.URL.Host)
			t.link.mu.Lock()
			t.link.elsewhere = err // the SDK may tell of the end that follows
			t.link.mu.Unlock()
			return nil, err
		}
		for k := range t.headers {
			req.Header.Del(k)
		}
		for _, k := range []string{"Authorization", "Cookie", "Mcp-Session-Id"} {
			req.Header.Del(k)
		}
	}
	res, err := t.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode >= 400 {
		t.link.refusal(res.StatusCode, res.Header.Get("WWW-Authenticate"))
		if tr != nil {
			tr.status.Store(int32(res.StatusCode))
			tr.session.Store(req.Header.Get("Mcp-Session-Id") != "")
		}
	}
	if res.StatusCode != http.StatusSwitchingProtocols && !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		res.Body = &bounded{ReadCloser: res.Body, left: t.link.dialer.maxMessage()}
	}
	return res, nil
}

// bounded is a body of at most so many bytes.
type bounded struct {
	io.ReadCloser
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if len(p) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	if n > b.left {
		return 0, fmt.Errorf("%w: the answer is over the limit", errTooBig)
	}
	b.left -= n
	return n, err
}
