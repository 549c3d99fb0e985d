// Package proxy implements the HTTP proxy that is the only way out of a
// sandbox. It allows connections only to the hosts of an allowlist.
//
// A sandbox has its own network with only a loopback interface. Its first
// process listens there and passes the listener to [Server.Serve] outside the
// sandbox. Each sandbox has its own [Server], so the server needs no
// credentials. [Env] returns the proxy variables for common programs.
//
// The proxy accepts plain HTTP requests with absolute URLs, and CONNECT. It
// normalizes the host once ([NormalizeHost]), compares it with the allowlist,
// resolves it, and connects to an address that it has checked. Inside a CONNECT
// tunnel, the server name in the TLS handshake must be the requested host. Data
// other than TLS is refused on port 443. On port 80 it is served as HTTP for
// the requested host.
//
// Scripts do not need to know secrets: an [Injection] adds a header to requests
// to a host. The proxy then decrypts requests to that host with a certificate
// authority that exists only in memory, is trusted only in the sandbox, and is
// limited to such hosts ([Server.CA]). Other TLS connections are not decrypted.
//
// The proxy has limits. Code can send data to any allowed host that accepts it,
// and many hosts serve many users. If TLS is not decrypted, a front end that
// serves several hosts can be asked for a different host in the Host header. A
// host that echoes request headers reveals an injected secret.
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
	maxHeader     = 64 << 10  // bytes of a request header
	maxRespHeader = 256 << 10 // bytes of a response header
	maxDenied     = 100
	headerTimeout = 10 * time.Second
)

// Options configures a [Server]. The zero value allows no host.
type Options struct {
	Allow   []string       // rules for ParseRule
	Private []netip.Prefix // allowed non-public addresses
	Secrets []Injection

	// Answer, if set, receives all requests, and returns the content of the
	// response. The server then connects to no host, resolves no name, and
	// decrypts TLS to all hosts; the other options do not restrict which. Answer
	// may be called concurrently.
	Answer func(Request) []byte

	// Log is called with each decision after the request or tunnel has ended.
	// It may be called concurrently and must not call methods of the Server.
	Log func(Decision)

	MaxConns    int           // maximum concurrent connections of scripts; more wait. 0 means 64
	MaxBytes    int64         // maximum total bytes to and from hosts. 0 means 1 GiB; negative means unlimited
	IdleTimeout time.Duration // time after which idle connections are closed; 0 means 2 minutes

	Roots *x509.CertPool // root certificates for hosts with secrets; nil means the system's

	// Dial connects to a checked address. It is replaced in tests.
	Dial    func(ctx context.Context, network, address string) (net.Conn, error)
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
}

// Decision describes the outcome of a request or a tunnel. It contains no path
// or header.
type Decision struct {
	Time    time.Time // start time
	Host    string    // normalized; "" if the request has no valid host
	Port    uint16
	Method  string
	Allowed bool
	Reason  string   // rule that allowed the request, or why it was refused or failed
	Secrets []string // names of the secrets that were added
	Bytes   int64    // bytes to and from the host: bodies of requests, or all data in a tunnel
}

// Server is the HTTP proxy of a sandbox. Its methods are safe for concurrent
// use.
type Server struct {
	opts    Options
	rules   []Rule
	private []netip.Prefix
	secrets []injection
	ca      *authority // nil if there are no secrets
	idle    time.Duration
	slots   chan struct{}
	max     int64
	used    atomic.Int64

	ctx       context.Context // cancelled by Close
	cancel    context.CancelFunc
	outer     *http.Server // serves the listener of the sandbox
	inner     *http.Server // serves requests inside CONNECT tunnels
	transport *http.Transport
	quiet     *log.Logger
	wg        sync.WaitGroup

	mu     sync.Mutex // guards the following fields
	closed bool
	conns  map[*conn]bool
	denied map[string]bool
	more   bool // whether denied is full
}

// New returns a server, which the caller starts with Serve. The error joins all
// problems of the options, with a [*RuleError] for each invalid entry of Allow.
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
	if (len(s.secrets) > 0 || opts.Answer != nil) && len(faults) == 0 {
		ca, err := newAuthority(s.secrets, opts.Answer != nil)
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
	s.slots = make(chan struct{}, conns)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.outer = s.newHTTP(s.serveProxy)
	// The server compares the Host header of a request with its URL, but
	// net/http drops the header if the URL is absolute. So the server records
	// the head of each connection, and a connection serves only one request.
	// This is cheap over loopback, and connections to hosts are reused.
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
			if !s.startWork() {
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

// Serve accepts connections until [Server.Close] is called, and then returns
// nil. It closes the listener. Serve may be called for several listeners.
func (s *Server) Serve(l net.Listener) error {
	if !s.startWork() {
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

// Close closes all connections and waits until all decisions are logged. It may
// be called more than once.
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

// Denied returns the refused targets as host:port, sorted and without
// duplicates. It returns up to 100 targets, followed by "and more" if there are
// more.
func (s *Server) Denied() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.Sorted(maps.Keys(s.denied))
	if s.more {
		list = append(list, "and more")
	}
	return list
}

// startWork registers work for which Close waits. It returns false after Close.
func (s *Server) startWork() bool {
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

// spendQuota subtracts n bytes from the remaining quota. It returns false if
// the quota is exceeded.
func (s *Server) spendQuota(n int64) bool {
	used := s.used.Add(n)
	return s.max < 0 || used <= s.max
}

// findRule returns the first rule that matches a target, and whether there is a
// match.
func (s *Server) findRule(t target) (Rule, bool) {
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

func (s *Server) recordDenied(hostPort string) {
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

// Env returns the environment variables that make programs use a proxy at
// address (host:port). They are used by curl, wget, git, pip, requests, httpx,
// urllib, npm, cargo, Go, Ruby and Node 24. Programs that ignore them cannot
// connect. Loopback addresses are excluded, because tests may run servers
// there.
func Env(address string) map[string]string {
	url := "http://" + address
	const direct = "localhost,127.0.0.1,::1"
	return map[string]string{
		// curl reads only the lower-case name, because of httpoxy.
		"http_proxy": url, "HTTP_PROXY": url,
		"https_proxy": url, "HTTPS_PROXY": url,
		"all_proxy": url, "ALL_PROXY": url,
		"no_proxy": direct, "NO_PROXY": direct,
		"NODE_USE_ENV_PROXY": "1",
	}
}
