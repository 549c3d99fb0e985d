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

// protocolHeaders contains the headers that the transport sets. A configuration
// cannot override them.
var protocolHeaders = map[string]bool{
	"Accept": true, "Content-Type": true, "Content-Length": true, "Transfer-Encoding": true, "Host": true,
	"Connection": true, "Last-Event-Id": true, "Mcp-Method": true, "Mcp-Name": true,
	"Mcp-Protocol-Version": true, "Mcp-Session-Id": true,
}

// newStreamable returns a streamable HTTP transport for both eras.
func newStreamable(l *link) (mcp.Transport, error) {
	client, endpoint, err := l.httpClient()
	if err != nil {
		return nil, err
	}
	var oauth auth.OAuthHandler
	if l.dialer.OAuth != nil {
		oauth = l.dialer.OAuth(l.config, endpoint)
		guide, _ := oauth.(NextStepper)
		l.mu.Lock()
		l.oauthHandler = guide
		l.mu.Unlock()
	}
	return &streamableTransport{link: l, endpoint: endpoint, trip: client.Transport.(*roundTripper), inner: &mcp.StreamableClientTransport{
		Endpoint:     endpoint,
		HTTPClient:   client,
		OAuthHandler: oauth,
		MaxEventSize: l.dialer.maxMessage(),
	}}, nil
}

// newSSE returns an HTTP+SSE transport, for servers with protocol versions
// before 2025-03-26.
func newSSE(l *link) (mcp.Transport, error) {
	client, endpoint, err := l.httpClient()
	if err != nil {
		return nil, err
	}
	return &sseTransport{link: l, inner: &mcp.SSEClientTransport{
		Endpoint:     endpoint,
		HTTPClient:   client,
		MaxEventSize: l.dialer.maxMessage(),
	}}, nil
}

type sseTransport struct {
	link  *link
	inner *mcp.SSEClientTransport
}

// Connect opens the stream. The SDK ties the stream to the context, so Connect
// passes a context that ends with the connection.
func (s *sseTransport) Connect(ctx context.Context) (mcp.Connection, error) {
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

// httpClient returns an HTTP client for this connection, and the server's URL
// without user information.
func (l *link) httpClient() (*http.Client, string, error) {
	u, err := url.Parse(l.url)
	if err != nil || u.Host == "" {
		return nil, "", errors.New("invalid url")
	}
	switch u.Scheme {
	case "http", "https":
	case "ws", "wss":
		u.Scheme = "http" + strings.TrimPrefix(u.Scheme, "ws")
	default:
		return nil, "", fmt.Errorf("unsupported url scheme %q; use http, https, ws or wss", u.Scheme)
	}
	rt := &roundTripper{link: l, origin: urlOrigin(u), headers: http.Header{}}
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
	client := &http.Client{CheckRedirect: rt.checkRedirect}
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

// idlePerHost is the maximum number of idle HTTP connections per host. The
// default of two is too low for concurrent callers.
const idlePerHost = 32

// ownTransport returns a transport for this connection only, so that closing
// the connection closes its idle connections.
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

// A roundTripper adds the configured headers to requests to the server's own
// origin, limits the size of responses, and records the outcome of requests.
type roundTripper struct {
	link    *link
	base    http.RoundTripper
	origin  string // scheme, host and port
	headers http.Header
	version atomic.Pointer[string] // negotiated version of a legacy server
}

func (t *roundTripper) checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return fmt.Errorf("too many redirects (limit %d)", maxRedirects)
	}
	if via[len(via)-1].URL.Scheme == "https" && req.URL.Scheme != "https" {
		return errors.New("redirect from https to http refused")
	}
	if t.link.config.Owner != "" && urlOrigin(req.URL) != t.origin {
		return fmt.Errorf("redirect to %s refused for a server provided by %s; use that address in the server's configuration", urlOrigin(req.URL), t.link.config.Owner)
	}
	return nil
}

// urlOrigin returns the scheme, host and port of a URL.
func urlOrigin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

func (t *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	tr := trackFromContext(req.Context())
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
	if own := urlOrigin(req.URL) == t.origin; own {
		for k, v := range t.headers {
			req.Header[k] = v
		}
		if _, token, _ := strings.Cut(req.Header.Get("Authorization"), " "); t.headers.Get("Authorization") == "" {
			t.link.config.tokens.add(token) // from the OAuth handler
		}
	} else {
		if req.Response == nil {
			err := fmt.Errorf("server directs messages to another host (%s); use that address in the server's configuration", req.URL.Host)
			t.link.mu.Lock()
			t.link.otherHostErr = err // the SDK may report only that the connection ended
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
		t.link.setRefusal(res.StatusCode, res.Header.Get("WWW-Authenticate"))
		if tr != nil {
			tr.status.Store(int32(res.StatusCode))
			tr.session.Store(req.Header.Get("Mcp-Session-Id") != "")
		}
	}
	if res.StatusCode != http.StatusSwitchingProtocols && !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		res.Body = &limitedBody{ReadCloser: res.Body, left: t.link.dialer.maxMessage()}
	}
	return res, nil
}

// limitedBody is a response body with a size limit. Reading beyond the limit
// returns an error that wraps errTooBig.
type limitedBody struct {
	io.ReadCloser
	left int
}

func (b *limitedBody) Read(p []byte) (int, error) {
	if len(p) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	if n > b.left {
		return 0, fmt.Errorf("%w: response exceeds the limit", errTooBig)
	}
	b.left -= n
	return n, err
}
