// Package proxy is the one way out of a sandbox: an HTTP proxy that lets code of a
// skill reach the hosts on a list and nothing else.
//
// A sandbox has a network of its own with nothing in it but loopback. Its first
// process listens there and hands the listener to us; [Server.Serve] answers on it.
// There is one [Server] for each sandbox, so who may use it is settled by who can
// reach it, and no credential is needed. [Env] tells the usual programs of it.
//
// The proxy takes plain HTTP with an absolute address, and CONNECT. A host is
// normalised once ([NormalizeHost]), looked up on the list, resolved here, and the
// address that was checked is the one that is dialled. Inside a CONNECT the server
// name of the TLS handshake must be the host that was asked for, and what is no TLS
// is refused on port 443 and served as HTTP, for that host alone, on port 80.
//
// A script need not hold the secrets it uses: an [Injection] adds a header to the
// requests for a host. For this the proxy reads what goes to that host, with a
// certificate authority that exists in memory only, is trusted in the sandbox only
// and is limited to these hosts ([Server.CA]). All other TLS passes unread.
//
// What this cannot do: whoever may write to an allowed host can send it data, and
// many hosts serve many people; inside TLS that is not read, an allowed host behind
// a shared front can be asked for another by its Host header; and a host that echoes
// the header it was sent tells the script the secret.
package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	maxHeader     = 64 << 10  // of a request
	maxRespHeader = 256 << 10 // of a response
	maxDenied     = 100
	headerTimeout = 10 * time.Second
)

// Options configure a [Server]. The zero value allows nothing.
type Options struct {
	Allow   []string       // rules as ParseRule reads them
	Private []netip.Prefix // addresses allowed although they are not public
	Secrets []Injection

	// Log receives every decision once the request or tunnel has ended. It is
	// called from several goroutines, and must not call the Server.
	Log func(Decision)

	MaxConns    int           // connections of scripts at once; others wait. 0: 64
	MaxBytes    int64         // to and from hosts, in all. 0: 1 GiB, below 0: any
	IdleTimeout time.Duration // ends a connection on which nothing moves. 0: 2 minutes

	Roots *x509.CertPool // for hosts with secrets. nil: those of the system

	// For tests. Dial receives an address that was checked.
	Dial    func(ctx context.Context, network, address string) (net.Conn, error)
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
}

// Decision is the outcome of one request or tunnel. It holds nothing of what was
// sent: no path, no header.
type Decision struct {
	Time    time.Time // the beginning
	Host    string    // normalised; empty if the request named none that is valid
	Port    uint16
	Method  string
	Allowed bool
	Reason  string   // the rule that allowed it, or why it was refused or failed
	Secrets []string // names of the injections that were applied
	Bytes   int64    // to and from the host; of a request the bodies, of a tunnel all
}

// Server is the proxy of one sandbox. Its methods may be called concurrently.
type Server struct {
	opts    Options
	rules   []Rule
	private []netip.Prefix
	secrets []injection
	ca      *authority // nil without secrets
	idle    time.Duration
	places  chan struct{}
	max     int64
	used    atomic.Int64

	ctx       context.Context // ends with Close
	cancel    context.CancelFunc
	outer     *http.Server // of the sandbox's listener
	inner     *http.Server // of what is inside a CONNECT
	transport *http.Transport
	quiet     *log.Logger
	wg        sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	closed bool
	conns  map[*conn]bool
	denied map[string]bool
	more   bool // denied is full
}

// New returns a server that is not serving yet. The error joins all faults in the
// options, one [*RuleError] for each bad entry of Allow.
func New(opts Options) (*Server, error) {
	s := &Server{
		opts:    opts,
		private: slices.Clone(opts.Private),
		idle:    opts.IdleTimeout,
		max:     opts.MaxBytes,
		conns:   map[*conn]bool{},
		denied:  map[string]bool{},
		quiet:   log.New(io.Discard, "", 0),
	}
	var faults []error
	for _, entry := range opts.Allow {
		r, err := ParseRule(entry)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		s.rules = append(s.rules, r)
	}
	for _, in := range opts.Secrets {
		parsed, err := in.parse()
		if err != nil {
			faults = append(faults, err)
			continue
		}
		s.secrets = append(s.secrets, parsed)
	}
	if len(s.secrets) > 0 && len(faults) == 0 {
		ca, err := newAuthority(s.secrets)
		if err != nil {
			return nil, err
		}
		s.ca = ca
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	if s.idle <= 0 {
		s.idle = 2 * time.Minute
	}
	if s.max == 0 {
		s.max = 1 << 30
	}
	conns := opts.MaxConns
	if conns <= 0 {
		conns = 64
	}
	s.places = make(chan struct{}, conns)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.outer = s.newHTTP(s.serveProxy)
	// net/http drops the Host header of a request with an absolute address, and
	// we compare the two: the head of a connection is recorded, and each has one
	// request. The way to it is loopback, and connections to hosts are kept.
	s.outer.SetKeepAlivesEnabled(false)
	s.inner = s.newHTTP(s.serveInner)
	s.transport = &http.Transport{
		DialContext:            s.dialTransport,
		TLSClientConfig:        &tls.Config{RootCAs: opts.Roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    headerTimeout,
		DisableCompression:     true,
		MaxIdleConnsPerHost:    4,
		MaxConnsPerHost:        conns,
		IdleConnTimeout:        30 * time.Second,
		MaxResponseHeaderBytes: maxRespHeader,
	}
	return s, nil
}

type connKey struct{}

func (s *Server) newHTTP(handle http.HandlerFunc) *http.Server {
	return &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !s.begin() {
				panic(http.ErrAbortHandler)
			}
			defer s.wg.Done()
			handle(w, r)
		}),
		DisableGeneralOptionsHandler: true,
		ReadHeaderTimeout:            min(headerTimeout, s.idle),
		IdleTimeout:                  s.idle,
		MaxHeaderBytes:               maxHeader,
		ErrorLog:                     s.quiet,
		BaseContext:                  func(net.Listener) context.Context { return s.ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, c)
		},
	}
}

// Serve answers on a listener until [Server.Close], and then returns nil. It closes
// the listener. It may be called for several.
func (s *Server) Serve(l net.Listener) error {
	if !s.begin() {
		l.Close()
		return nil
	}
	defer s.wg.Done()
	err := s.outer.Serve(&listener{Listener: l, server: s})
	if s.ctx.Err() != nil {
		return nil
	}
	return err
}

// Close ends every connection and returns when all work has ended and all decisions
// are logged. It may be called again.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	open := slices.Collect(maps.Keys(s.conns))
	s.mu.Unlock()
	s.cancel()
	s.outer.Close()
	s.inner.Close()
	for _, c := range open {
		c.Close()
	}
	s.transport.CloseIdleConnections()
	s.wg.Wait()
	return nil
}

// Denied lists, sorted and once each, as host:port, what was refused: candidates for
// the list, or a reason to look at the skill. It keeps 100 and then says "and more".
func (s *Server) Denied() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.Sorted(maps.Keys(s.denied))
	if s.more {
		list = append(list, "and more")
	}
	return list
}

// begin claims that work is under way, for Close to wait for, unless it is too late.
func (s *Server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.wg.Add(1)
	}
	return !s.closed
}

func (s *Server) track(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.conns[c] = true
	}
	return !s.closed
}

func (s *Server) untrack(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// spend takes n bytes from what is left, and reports whether there was as much.
func (s *Server) spend(n int64) bool {
	used := s.used.Add(n)
	return s.max < 0 || used <= s.max
}

// rule is the first that covers a target.
func (s *Server) rule(t target) (Rule, bool) {
	for _, r := range s.rules {
		if r.Match(t.host, t.port) {
			return r, true
		}
	}
	return Rule{}, false
}

func (s *Server) log(d *Decision) {
	if s.opts.Log != nil {
		s.opts.Log(*d)
	}
}

func (s *Server) deny(hostPort string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.denied[hostPort]:
	case len(s.denied) >= maxDenied:
		s.more = true
	default:
		s.denied[hostPort] = true
	}
}

// Env is the environment that makes programs use a proxy at host:port. It is read
// by curl, wget, git, pip, requests, httpx, urllib, npm, cargo, Go, Ruby and, from 24 on,
// Node. What ignores it reaches nothing. Loopback is not sent here: it is the
// sandbox's own, where a test may have a server of its own.
func Env(address string) map[string]string {
	url := "http://" + address
	const direct = "localhost,127.0.0.1,::1"
	return map[string]string{
		// curl reads only the lower case of the first, for good reason (httpoxy).
		"http_proxy": url, "HTTP_PROXY": url,
		"https_proxy": url, "HTTPS_PROXY": url,
		"all_proxy": url, "ALL_PROXY": url,
		"no_proxy": direct, "NO_PROXY": direct,
		"NODE_USE_ENV_PROXY": "1",
	}
}
