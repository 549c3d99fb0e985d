package proxy

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/textproto"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/loadout-dev/loadout/internal/address"
)

// serveProxy handles a request sent to the proxy.
func (s *Server) serveProxy(w http.ResponseWriter, r *http.Request) {
	d := &Decision{Time: time.Now(), Method: r.Method}
	head := r.Context().Value(connKey{}).(*conn).takeHead()
	var t target
	var err error
	if r.Method == http.MethodConnect {
		t.host, t.port, err = splitAuthority(r.RequestURI)
		if err == nil && t.port == 0 {
			err = errors.New("CONNECT requires host:port")
		}
	} else {
		t, err = absoluteTarget(r, head)
	}
	if err != nil {
		s.answerInvalid(r, head)
		s.refuse(w, r, d, http.StatusBadRequest, "invalid request: "+err.Error(), "")
		return
	}
	d.Host, d.Port = t.host, t.port
	if !s.checkPolicy(w, r, d, t) {
		return
	}
	if r.Method == http.MethodConnect {
		s.tunnel(w, r, d, t)
		return
	}
	s.forward(w, r, d, t)
}

// serveInner handles a request inside a CONNECT tunnel to an allowed target.
func (s *Server) serveInner(w http.ResponseWriter, r *http.Request) {
	t := r.Context().Value(connKey{}).(*innerConn).target
	d := &Decision{Time: time.Now(), Method: r.Method, Host: t.host, Port: t.port}
	var fault string
	switch {
	case r.Method == http.MethodConnect || r.URL.Host != "" || r.URL.Scheme != "":
		fault = "proxy request inside a tunnel"
	case !t.isHost(r.Host) && (r.Host != "" || r.ProtoAtLeast(1, 1)):
		fault = "Host header does not match the tunnel"
	}
	if fault != "" && s.opts.Answer == nil {
		s.refuse(w, r, d, http.StatusBadRequest, "invalid request: "+fault, "")
		return
	}
	if s.checkPolicy(w, r, d, t) {
		s.forward(w, r, d, t)
	}
}

// absoluteTarget returns the target of a request with an absolute URL. It
// rejects ambiguous URLs.
func absoluteTarget(r *http.Request, head []byte) (target, error) {
	scheme, rest, ok := strings.Cut(r.RequestURI, "://")
	switch {
	case !ok:
		return target{}, errors.New("proxy requires an absolute URL")
	case strings.EqualFold(scheme, "https"):
		return target{}, errors.New("https requires CONNECT")
	case !strings.EqualFold(scheme, "http"):
		return target{}, errors.New("unsupported URL scheme, want http")
	}
	written := rest
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		written = rest[:i]
	}
	// Reject user information, and escapes that net/url interprets differently.
	if r.URL.User != nil || r.URL.Opaque != "" || r.URL.Host != written {
		return target{}, errors.New("invalid host in URL")
	}
	host, port, err := splitAuthority(written)
	if err != nil {
		return target{}, err
	}
	t := target{host: host, port: port}
	if port == 0 {
		t.port = t.defaultPort()
	}
	if t.port == 443 {
		return target{}, errors.New("port 443 requires https")
	}
	// A server might act on a Host header that differs from the allowed host.
	header, err := parseHeader(head)
	if err != nil {
		return target{}, errors.New("invalid request header")
	}
	if hosts := header["Host"]; len(hosts) > 1 || len(hosts) == 1 && !t.isHost(hosts[0]) {
		return target{}, errors.New("header Host does not match the URL")
	}
	return t, nil
}

// parseHeader parses a request head again, to get the fields that net/http
// removes.
func parseHeader(head []byte) (textproto.MIMEHeader, error) {
	tr := textproto.NewReader(bufio.NewReader(bytes.NewReader(head)))
	if _, err := tr.ReadLine(); err != nil {
		return nil, err
	}
	return tr.ReadMIMEHeader()
}

// checkPolicy reports whether policy allows a request. If not, it sends the
// error response.
func (s *Server) checkPolicy(w http.ResponseWriter, r *http.Request, d *Decision, t target) bool {
	if s.opts.Answer != nil {
		d.Allowed, d.Reason = true, "answered by the proxy"
		return true
	}
	rule, ok := s.findRule(t)
	switch {
	case !ok:
		s.recordDenied(t.String())
		hint := fmt.Sprintf("To allow it, the skill requests %q in its front matter (metadata.sandbox.network), and the operator adds it to sandbox.network", t.String())
		if a, err := netip.ParseAddr(t.host); err == nil && address.NonPublicReason(a.Unmap()) != "" {
			hint += ", and to sandbox.private because its address is not public"
		}
		s.refuse(w, r, d, http.StatusForbidden, "host "+t.String()+" is not allowed for this skill", hint+".")
	case r.Method == http.MethodTrace:
		// The response to TRACE would contain the request with the added
		// headers.
		s.refuse(w, r, d, http.StatusForbidden, "method TRACE is not allowed", "")
	case !s.spendQuota(0):
		s.refuse(w, r, d, http.StatusForbidden, errQuota.Error(), "")
	default:
		d.Allowed, d.Reason = true, "rule "+rule.String()
		return true
	}
	return false
}

// refuse logs a refusal and sends the response. Scripts may print the text, so
// the text must contain nothing from the script except a normalized host.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, d *Decision, status int, text, hint string) {
	d.Allowed = false
	if d.Reason == "" {
		d.Reason = text
	}
	s.log(d)
	writeAnswer(w, r, status, text, hint)
}

func writeAnswer(w http.ResponseWriter, r *http.Request, status int, text, hint string) {
	body := "loadout: " + text + "\n"
	if hint != "" {
		body += hint + "\n"
	}
	if r.Method == http.MethodConnect {
		// Most programs show at most the reason phrase when CONNECT is refused,
		// and net/http would replace that phrase.
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		fmt.Fprintf(c, "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
			status, text, len(body), body)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	io.WriteString(w, body)
}

// forward sends a request to its target and returns the response. If a script
// follows a redirect, it sends a new request, which is checked again.
func (s *Server) forward(w http.ResponseWriter, r *http.Request, d *Decision, t target) {
	if s.opts.Answer != nil {
		s.answer(w, r, d, t)
		return
	}
	var sent, received atomic.Int64
	defer func() { // in a deferred call, because copying a body may panic
		d.Bytes = sent.Load() + received.Load()
		s.log(d)
	}()
	if u := r.Header.Get("Upgrade"); u != "" && !strings.EqualFold(u, "websocket") {
		r.Header.Del("Upgrade") // an HTTP/2 connection could carry more requests
	}
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = &countingReader{ReadCloser: r.Body, n: &sent}
	}
	add := s.injections(t)
	proxy := &httputil.ReverseProxy{
		Transport:     s.transport,
		FlushInterval: -1,
		ErrorLog:      s.quiet,
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Scheme = "http"
			if t.tls {
				p.Out.URL.Scheme = "https"
			}
			p.Out.URL.Host = t.String()
			p.Out.URL.RawQuery = p.In.URL.RawQuery // do not normalize the query
			p.Out.Host = t.hostHeader()
			for _, in := range add {
				p.Out.Header.Set(in.header, in.value)
				d.Secrets = append(d.Secrets, in.name)
			}
		},
		ModifyResponse: func(resp *http.Response) error {
			if resp.StatusCode != http.StatusSwitchingProtocols {
				resp.Body = &countingReader{ReadCloser: resp.Body, n: &received}
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			s.fail(w, r, d, t, err)
		},
	}
	proxy.ServeHTTP(w, r)
}

type countingReader struct {
	io.ReadCloser
	n *atomic.Int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// fail responds that an allowed host could not be reached. The caller logs the
// outcome. The response contains only fixed text, because net/http errors may
// quote a response with a secret.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, d *Decision, t target, err error) {
	var (
		no    *refusal
		dns   *net.DNSError
		cert  *tls.CertificateVerificationError
		errno syscall.Errno
	)
	status, text, hint := http.StatusBadGateway, "cannot reach "+t.String(), ""
	switch {
	case errors.As(err, &no):
		d.Allowed, d.Reason = false, no.reason
		s.recordDenied(t.String())
		status, text = http.StatusForbidden, "host "+t.String()+" is not allowed for this skill: its address is not public"
		hint = "To allow it, the operator adds its address to sandbox.private."
	case errors.Is(err, errQuota):
		d.Allowed, d.Reason = false, errQuota.Error()
		status, text = http.StatusForbidden, errQuota.Error()
	case r.Context().Err() != nil:
		text = "script disconnected"
	case errors.As(err, &dns) && dns.IsNotFound:
		text = "host not found: " + t.host
	case errors.As(err, &cert):
		text += ": invalid certificate"
	case errors.As(err, &errno):
		text += ": " + errno.Error()
	case isTimeout(err):
		status, text = http.StatusGatewayTimeout, text+": timeout"
	}
	if d.Allowed {
		d.Reason = text
	}
	writeAnswer(w, r, status, text, hint)
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}
