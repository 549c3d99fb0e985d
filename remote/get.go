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

	"github.com/loadout-dev/loadout/skill"
)

const (
	maxRedirects  = 10
	maxHeader     = 64 << 10         // bytes of the header of a response
	headerTimeout = 60 * time.Second // until a response begins
	stallTimeout  = 60 * time.Second // without a byte of a body
)

// trip is one Look, Open or Latest: the place that a person named, the connections
// that were made for it, and what its host was shown.
type trip struct {
	client  *Client
	host    string // of the Location as in its URL, lower-case, with a port where that has one
	name    string // host without the port
	hides   bool   // the host may say of what is private that it is not there
	mirror  string // a host that gives archives in the name of host, or ""
	direct  *http.Transport
	proxied *http.Transport

	mu    sync.Mutex // held while the credential is asked for
	asked bool
	shown string // the Authorization header, or ""
}

type (
	tripKey    struct{} // has the *trip
	strayedKey struct{} // is there once another host than the person's was asked
	addrsKey   struct{} // has the addresses that a request may be sent to
)

// begin starts a trip to a location, which get and allowed find in the context: a
// private address that l names literally may be connected to, and the credential
// of its host is asked for. The end of the context, which is that of ctx, of
// Limits.Time or of cancel, ends what is still open.
func (c *Client) begin(ctx context.Context, l Location) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.opts.Limits.Time, &timeError{c.opts.Limits.Time})
	t := &trip{client: c, hides: l.Kind != Index}
	if u, err := url.Parse(l.URL); err == nil && l.Kind != Local {
		t.host, t.name = strings.ToLower(u.Host), hostName(u.Hostname())
	}
	t.direct, t.proxied = c.transport(), c.transport()
	t.direct.DialContext = c.dialChecked
	t.proxied.Proxy = c.proxy
	return context.WithValue(ctx, tripKey{}, t), func() {
		cancel()
		t.direct.CloseIdleConnections()
		t.proxied.CloseIdleConnections()
	}
}

// timeError is how Limits.Time ends a trip.
type timeError struct{ after time.Duration }

func (e *timeError) Error() string   { return fmt.Sprintf("it took longer than %s", e.after) }
func (e *timeError) Timeout() bool   { return true }
func (e *timeError) Is(t error) bool { return t == context.DeadlineExceeded }

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

// get fetches a URL. Each host on the way is checked by allowed, redirects are
// followed at most 10 times and never from https to http, and the person's
// credential is shown to the host of the trip alone, once that has refused. The
// body gives at most Limits.Download bytes, then a [*TooLargeError], and an error
// where none comes for a minute; the caller closes it. A status that is not 200
// is a [*StatusError]. No error has the query of a URL in it.
func (c *Client) get(ctx context.Context, from string, header http.Header) (*http.Response, error) {
	u, err := url.Parse(from)
	if err != nil || u.Host == "" {
		return nil, errors.New("get: the URL cannot be read")
	}
	end := func() {}
	t, ok := ctx.Value(tripKey{}).(*trip)
	if !ok {
		ctx, end = c.begin(ctx, Location{})
		t = ctx.Value(tripKey{}).(*trip)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	done := func() { cancel(nil); end() }
	resp, err := t.follow(ctx, u, header)
	if err == nil && t.refused(resp.StatusCode) && t.ask(ctx, resp.Request.URL) {
		resp.Body.Close()
		resp, err = t.follow(ctx, u, header)
	}
	if err == nil && resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		err = &StatusError{URL: place(resp.Request.URL), Code: resp.StatusCode}
	}
	if err == nil && resp.ContentLength > c.opts.Limits.Download {
		resp.Body.Close()
		err = &TooLargeError{place(u), c.opts.Limits.Download}
	}
	if err != nil {
		err = ended(ctx, err)
		done()
		return nil, fmt.Errorf("get %s: %w", place(u), err)
	}
	resp.Body = c.bound(ctx, cancel, resp.Body, place(u), done)
	return resp, nil
}

// refused reports whether a status may mean that a credential is missing. Many
// hosts deny that what is private exists; that there is no index somewhere is an
// answer like any other.
func (t *trip) refused(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden || status == http.StatusNotFound && t.hides
}

// follow asks for a URL and what it redirects to.
func (t *trip) follow(ctx context.Context, u *url.URL, header http.Header) (*http.Response, error) {
	for hop := 0; ; hop++ {
		if hostName(u.Hostname()) != t.name {
			ctx = context.WithValue(ctx, strayedKey{}, true)
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
			return nil, fmt.Errorf("more than %d redirects", maxRedirects)
		}
		next, err := u.Parse(resp.Header.Get("Location"))
		if err != nil || resp.Header.Get("Location") == "" || next.Host == "" {
			return nil, errors.New("a redirect to nowhere that can be read")
		}
		if u.Scheme == "https" && next.Scheme != "https" {
			return nil, fmt.Errorf("a redirect from https to %s is not followed", skill.OneLine(next.Scheme))
		}
		u = next
	}
}

// request asks for one URL, after its host was checked.
func (t *trip) request(ctx context.Context, u *url.URL, header http.Header) (*http.Response, error) {
	u = &url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath, RawQuery: u.RawQuery} // no user, no fragment
	req := &http.Request{Method: http.MethodGet, URL: u, Host: u.Host, Header: http.Header{}, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	maps.Copy(req.Header, header)
	req.Header.Set("Accept-Encoding", "identity") // nothing that grows as it is read
	req.Header.Set("User-Agent", "loadout")
	req.Header.Del("Authorization")
	if t.own(u) {
		if shown := t.credential(); shown != "" {
			req.Header.Set("Authorization", shown)
		}
	}
	carrier, ctx, err := t.carrier(ctx, u)
	if err != nil {
		return nil, err
	}
	return carrier.RoundTrip(req.WithContext(ctx))
}

// carrier checks the host of a URL, and returns what asks it. The addresses that
// were checked are in the context.
func (t *trip) carrier(ctx context.Context, u *url.URL) (*http.Transport, context.Context, error) {
	host := hostName(u.Hostname())
	switch {
	case u.Scheme == "https":
	case u.Scheme == "http" && (isLocalhost(host) || t.client.private(host)):
	case u.Scheme == "http":
		return nil, nil, fmt.Errorf("%s is asked by https only: what comes by http, anybody on the way can change", host)
	default:
		return nil, nil, fmt.Errorf("a URL with the scheme %q is not asked", u.Scheme)
	}
	through, err := t.client.proxy(&http.Request{URL: u})
	if err != nil {
		return nil, nil, errors.New("the address of the proxy in the environment cannot be read")
	}
	if through != nil {
		// What a name means, the proxy of the person decides.
		if err := spelled(host); err != nil {
			return nil, nil, err
		}
		a, err := netip.ParseAddr(host)
		if err != nil && isLocalhost(host) {
			a, err = netip.AddrFrom4([4]byte{127, 0, 0, 1}), nil
		}
		if err == nil {
			if err := t.client.reachable(ctx, host, a); err != nil {
				return nil, nil, err
			}
		}
		return t.proxied, ctx, nil
	}
	addrs, err := t.client.allowed(ctx, host)
	if err != nil {
		return nil, nil, err
	}
	return t.direct, context.WithValue(ctx, addrsKey{}, addrs), nil
}

// own reports whether a URL is one of the place that the person named, so that it
// may be shown the person's credential.
func (t *trip) own(u *url.URL) bool {
	if t.host == "" || u.Scheme != "https" && !isLocalhost(hostName(u.Hostname())) {
		return false
	}
	host := strings.ToLower(u.Host)
	return host == t.host || t.mirror != "" && host == t.mirror
}

func (t *trip) credential() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.shown
}

// ask gets the credential of the trip's host once, where u is a URL of it that
// refused, and reports whether there is one to try with.
func (t *trip) ask(ctx context.Context, u *url.URL) bool {
	if !t.own(u) || !t.client.shows(u) {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.asked {
		return false
	}
	t.asked = true
	cred, err := t.client.credential(ctx, t.host)
	if err != nil || cred == nil { // no credential: the refusal is what there is to tell
		return false
	}
	t.shown = "Bearer " + cred.Password
	if cred.User != "" {
		t.shown = "Basic " + base64.StdEncoding.EncodeToString([]byte(cred.User+":"+cred.Password))
	}
	return true
}

// place is a URL as errors have it: without user, password, query and fragment.
func place(u *url.URL) string {
	return skill.OneLine((&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String())
}

// ended is err, or why the context ended where that is the reason for it.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// errStalled ends a body that gives nothing.
var errStalled = fmt.Errorf("nothing came for %s", stallTimeout)

// body is that of a response, with bounds.
type body struct {
	io.ReadCloser
	ctx   context.Context
	what  string
	limit int64
	left  int64
	stall *time.Timer
	done  func()
}

func (c *Client) bound(ctx context.Context, cancel context.CancelCauseFunc, r io.ReadCloser, what string, done func()) *body {
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
		return n, fmt.Errorf("get %s: %w", b.what, ended(b.ctx, err))
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

// dialChecked connects to one of the addresses that were checked for the request,
// never to a name: what that means cannot change between check and use.
func (c *Client) dialChecked(ctx context.Context, network, address string) (net.Conn, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	addrs, _ := ctx.Value(addrsKey{}).([]netip.Addr)
	err = errors.New("no address of it was checked")
	for _, a := range addrs {
		// One address that does not answer leaves time for the next.
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

// progress tells how far a long work is: the end of it, and else not more often
// than anybody can see.
func (c *Client) progress(p Progress) {
	if c.opts.Progress == nil {
		return
	}
	c.telling.Lock()
	defer c.telling.Unlock()
	if now := time.Now(); p.Done == p.Total || now.Sub(c.told) >= 100*time.Millisecond {
		c.told = now
		c.opts.Progress(p)
	}
}
