package remote

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/internal/printable"
)

const (
	maxRedirects  = 10
	maxHeader     = 64 << 10         // maximum size of a response header, in bytes
	headerTimeout = 60 * time.Second // maximum time until the response header arrives
	stallTimeout  = 60 * time.Second // maximum time between two reads of a body
)

// httpSession holds the state of a single call to Open, OpenSkill or Latest:
// the location's host, the connections, and the credential for the host.
type httpSession struct {
	client  *Client
	host    string // host of the Location's URL, in lower case, with the port if the URL has one
	name    string // host without the port
	index   bool   // whether the location is an [Index]
	mirror  string // host that serves archives for host, or ""
	direct  *http.Transport
	proxied *http.Transport

	mu              sync.Mutex // held while the credential is looked up
	credentialTried bool
	authorization   string // Authorization header, or ""
}

type (
	sessionKey struct{} // holds the *httpSession
	// otherHostKey is set after a request to a host other than the location's.
	otherHostKey struct{}
	addressesKey struct{} // holds the addresses that a request may connect to
)

// startSession returns a context with a new session for l. The session may
// connect to a private address that l contains literally, and may look up the
// credential for l's host. The session ends when ctx is done, after
// Limits.Time, or when the returned function is called.
func (c *Client) startSession(ctx context.Context, l Location) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.opts.Limits.Time, &timeoutError{c.opts.Limits.Time})
	t := &httpSession{client: c, index: l.Kind == Index}
	if u, err := url.Parse(l.URL); err == nil && l.Kind != Local {
		t.host, t.name = strings.ToLower(u.Host), hostName(u.Hostname())
	}
	t.direct, t.proxied = c.transport(), c.transport()
	t.direct.DialContext = c.dialChecked
	t.proxied.Proxy = c.proxy
	return context.WithValue(ctx, sessionKey{}, t), func() {
		cancel()
		t.direct.CloseIdleConnections()
		t.proxied.CloseIdleConnections()
	}
}

// timeoutError is the cancellation cause if an operation exceeds Limits.Time.
type timeoutError struct{ after time.Duration }

func (e *timeoutError) Error() string   { return fmt.Sprintf("timeout after %s", e.after) }
func (e *timeoutError) Timeout() bool   { return true }
func (e *timeoutError) Is(t error) bool { return t == context.DeadlineExceeded }

func (c *Client) transport() *http.Transport {
	return &http.Transport{
		TLSClientConfig:        c.tls.Clone(),
		TLSHandshakeTimeout:    15 * time.Second,
		ResponseHeaderTimeout:  headerTimeout,
		MaxResponseHeaderBytes: maxHeader,
		DisableCompression:     true,
		MaxIdleConnsPerHost:    2,
	}
}

// get fetches a URL. It checks each host and follows up to 10 redirects, but
// never from https to http. It sends the user's credential only to the host of
// the session, and only after the host rejected a request without it. The body
// returns a [*TooLargeError] after Limits.Download bytes, and an error after a
// minute without data. The caller must close the body. For a status other than
// 200, the error is a [*StatusError]. No error contains the query of a URL.
func (c *Client) get(ctx context.Context, from string, header http.Header) (*http.Response, error) {
	u, err := url.Parse(from)
	if err != nil || u.Host == "" {
		return nil, errors.New("get: invalid URL")
	}
	end := func() {}
	t, ok := ctx.Value(sessionKey{}).(*httpSession)
	if !ok {
		ctx, end = c.startSession(ctx, Location{})
		t = ctx.Value(sessionKey{}).(*httpSession)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	done := func() { cancel(nil); end() }
	resp, err := t.follow(ctx, u, header)
	if err == nil && t.mayNeedCredential(resp.StatusCode) && t.findCredential(ctx, resp.Request.URL) {
		resp.Body.Close()
		resp, err = t.follow(ctx, u, header)
	}
	if err == nil && resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		err = &StatusError{URL: cleanAddress(resp.Request.URL), Code: resp.StatusCode}
	}
	if err == nil && resp.ContentLength > c.opts.Limits.Download {
		resp.Body.Close()
		err = &TooLargeError{cleanAddress(u), c.opts.Limits.Download}
	}
	if err != nil {
		err = contextError(ctx, err)
		done()
		return nil, fmt.Errorf("get %s: %w", cleanAddress(u), err)
	}
	resp.Body = c.limitBody(ctx, cancel, resp.Body, cleanAddress(u), done)
	return resp, nil
}

// mayNeedCredential reports whether a status may mean that a credential is
// required. Many hosts respond with "not found" for private resources. For an
// index, "not found" is a valid response.
func (t *httpSession) mayNeedCredential(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden || status == http.StatusNotFound && !t.index
}

// follow requests a URL, following redirects.
func (t *httpSession) follow(ctx context.Context, u *url.URL, header http.Header) (*http.Response, error) {
	for hop := 0; ; hop++ {
		if hostName(u.Hostname()) != t.name {
			ctx = context.WithValue(ctx, otherHostKey{}, true)
		}
		resp, err := t.request(ctx, u, header)
		if err != nil {
			return nil, err
		}
		switch resp.StatusCode {
		default:
			return resp, nil
		case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		}
		resp.Body.Close()
		if hop == maxRedirects {
			return nil, fmt.Errorf("too many redirects (limit %d)", maxRedirects)
		}
		next, err := u.Parse(resp.Header.Get("Location"))
		if err != nil || resp.Header.Get("Location") == "" || next.Host == "" {
			return nil, errors.New("invalid redirect URL")
		}
		if u.Scheme == "https" && next.Scheme != "https" {
			return nil, fmt.Errorf("redirect from https to %s not followed", printable.OneLine(next.Scheme))
		}
		u = next
	}
}

// request checks the host and sends a request.
func (t *httpSession) request(ctx context.Context, u *url.URL, header http.Header) (*http.Response, error) {
	u = &url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath, RawQuery: u.RawQuery} // omits user and fragment
	req := &http.Request{Method: http.MethodGet, URL: u, Host: u.Host, Header: http.Header{}, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	maps.Copy(req.Header, header)
	req.Header.Set("Accept-Encoding", "identity") // prevents responses that expand when read
	req.Header.Set("User-Agent", "loadout")
	req.Header.Del("Authorization")
	if t.isLocationURL(u) {
		if shown := t.authorizationHeader(); shown != "" {
			req.Header.Set("Authorization", shown)
		}
	}
	carrier, ctx, err := t.transportFor(ctx, u)
	if err != nil {
		return nil, err
	}
	return carrier.RoundTrip(req.WithContext(ctx))
}

// transportFor checks the host of a URL and returns the transport for it. The
// returned context contains the checked addresses.
func (t *httpSession) transportFor(ctx context.Context, u *url.URL) (*http.Transport, context.Context, error) {
	host := hostName(u.Hostname())
	switch {
	case u.Scheme == "https":
	case u.Scheme == "http" && (isLocalhost(host) || t.client.isPrivateAllowed(host)):
	case u.Scheme == "http":
		return nil, nil, fmt.Errorf("%s requires https: data sent over http can be modified in transit", host)
	default:
		return nil, nil, fmt.Errorf("unsupported URL scheme %q", u.Scheme)
	}
	through, err := t.client.proxy(&http.Request{URL: u})
	if err != nil {
		return nil, nil, errors.New("invalid proxy URL in the environment")
	}
	if through != nil {
		// The user's proxy resolves the name.
		if err := checkHostSpelling(host); err != nil {
			return nil, nil, err
		}
		a, err := netip.ParseAddr(host)
		if err != nil && isLocalhost(host) {
			a, err = netip.AddrFrom4([4]byte{127, 0, 0, 1}), nil
		}
		if err == nil {
			if err := t.client.checkAddress(ctx, host, a); err != nil {
				return nil, nil, err
			}
		}
		return t.proxied, ctx, nil
	}
	addrs, err := t.client.allowedAddresses(ctx, host)
	if err != nil {
		return nil, nil, err
	}
	return t.direct, context.WithValue(ctx, addressesKey{}, addrs), nil
}

// isLocationURL reports whether the host of a URL is the location's, so that
// the user's credential may be sent to it.
func (t *httpSession) isLocationURL(u *url.URL) bool {
	if t.host == "" || u.Scheme != "https" && !isLocalhost(hostName(u.Hostname())) {
		return false
	}
	host := strings.ToLower(u.Host)
	return host == t.host || t.mirror != "" && host == t.mirror
}

func (t *httpSession) authorizationHeader() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.authorization
}

// findCredential looks up the credential for the session's host after u
// rejected a request. It reports whether it found one. Only the first call
// looks up the credential; further calls return false.
func (t *httpSession) findCredential(ctx context.Context, u *url.URL) bool {
	if !t.isLocationURL(u) || !t.client.mayAuthenticate(u) {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.credentialTried {
		return false
	}
	t.credentialTried = true
	cred, err := t.credential(ctx, u)
	if err != nil || cred == nil { // without a credential, the caller reports the refusal
		return false
	}
	t.authorization = "Bearer " + cred.Password
	if cred.User != "" {
		t.authorization = "Basic " + base64.StdEncoding.EncodeToString([]byte(cred.User+":"+cred.Password))
	}
	return true
}

// credential returns the credential for the session's host after the host
// rejected a request for u.
func (t *httpSession) credential(ctx context.Context, u *url.URL) (*Credential, error) {
	if f := t.client.opts.IndexCredential; f != nil && t.index {
		if cred, err := f(ctx, u); cred != nil || err != nil {
			return cred, err
		}
	}
	return t.client.credential(ctx, t.host)
}

// cleanAddress formats a URL for errors, without user, password, query or
// fragment.
func cleanAddress(u *url.URL) string {
	return printable.OneLine((&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String())
}

// contextError returns the context's cause if ctx is done, because err is then
// probably a consequence of that. Otherwise it returns err.
func contextError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// errStalled is the cancellation cause if no data arrives for stallTimeout.
var errStalled = fmt.Errorf("no data received for %s", stallTimeout)

// body is a response body with a size limit and a timeout between reads.
type body struct {
	io.ReadCloser
	ctx   context.Context
	what  string
	limit int64
	left  int64
	stall *time.Timer
	done  func()
}

func (c *Client) limitBody(ctx context.Context, cancel context.CancelCauseFunc, r io.ReadCloser, what string, done func()) *body {
	limit := c.opts.Limits.Download
	return &body{r, ctx, what, limit, limit, time.AfterFunc(stallTimeout, func() { cancel(errStalled) }), done}
}

func (b *body) Read(p []byte) (int, error) {
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	if int64(n) > b.left {
		n, b.left = int(b.left), 0
		return n, &TooLargeError{b.what, b.limit}
	}
	b.left -= int64(n)
	if err != nil && err != io.EOF {
		return n, fmt.Errorf("get %s: %w", b.what, contextError(b.ctx, err))
	}
	b.stall.Reset(stallTimeout)
	return n, err
}

func (b *body) Close() error {
	b.stall.Stop()
	err := b.ReadCloser.Close()
	b.done()
	return err
}

// dialChecked connects to one of the addresses checked for the request. It
// never resolves the name again, because the result could differ.
func (c *Client) dialChecked(ctx context.Context, network, address string) (net.Conn, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	addrs, _ := ctx.Value(addressesKey{}).([]netip.Addr)
	err = errors.New("no allowed address")
	for _, a := range addrs {
		// Leave time for the next address if this address does not respond.
		one, cancel := context.WithTimeout(ctx, 10*time.Second)
		var conn net.Conn
		conn, err = c.dial(one, network, net.JoinHostPort(a.String(), port))
		cancel()
		if err == nil {
			return conn, nil
		}
	}
	return nil, err
}

// progress reports progress up to ten times a second, and always when the
// operation is complete.
func (c *Client) progress(p Progress) {
	if c.opts.Progress == nil {
		return
	}
	c.progressMu.Lock()
	defer c.progressMu.Unlock()
	if now := time.Now(); p.Done == p.Total || now.Sub(c.lastProgress) >= 100*time.Millisecond {
		c.lastProgress = now
		c.opts.Progress(p)
	}
}
