package mcpserver

import (
	"crypto/subtle"
	"fmt"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/address"
	"github.com/loadout-dev/loadout/internal/rpcmessage"
	"github.com/loadout-dev/loadout/policy"
)

// HTTPOptions configures the streamable HTTP transport of MCP. The zero value
// serves only requests whose Host header is the address of the server on
// loopback. It must not be changed while a handler uses it.
//
// Sessions exist only in MCP versions before 2026-07-28. In later versions,
// each request is complete.
type HTTPOptions struct {
	// Token, if set, is required as a bearer token (RFC 6750) in every request
	// except to /healthz.
	Token string
	// Hosts are the host names of this server in addition to loopback, without
	// ports. If Hosts is empty and Token is set, any host is accepted. Without a
	// Token, a loopback host must have the port at which the request arrived.
	Hosts []string
	// SessionTimeout is the idle timeout of sessions; 0 means 30 minutes.
	SessionTimeout time.Duration
	// EventStore stores the events sent on the streams of sessions, so that
	// clients can resume an interrupted stream; nil stores none.
	EventStore mcp.EventStore
	// Stateless disables sessions, so that any node can answer a request. The
	// server then cannot send requests or notifications to a client between
	// the client's requests.
	Stateless bool
	// Authenticate returns the principal of a request, on whose behalf scripts
	// run and tools are called; see [Options.ToolsFor]. The text of an error is
	// sent to the client with status 401. A session belongs to the principal that
	// started it. If Authenticate is nil, all requests have the principal
	// [Options.Principal]. Authenticate must be safe for concurrent use.
	Authenticate func(*http.Request) (policy.Principal, error)
	// Mount adds handlers by [http.ServeMux] pattern, such as /mcp/p/NAME, to
	// [Server.Handler]. They are protected by the same checks.
	Mount map[string]http.Handler
}

// Handler returns an HTTP handler that serves MCP at /mcp, a health check at
// /healthz, and a text page at /. Requests to all paths are checked as in
// [HTTPOptions.Protect]. o may be nil. Handler panics if a pattern in Mount is
// invalid or conflicts with these paths.
func (s *Server) Handler(o *HTTPOptions) http.Handler {
	if o == nil {
		o = &HTTPOptions{}
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", s.Endpoint(o))
	for path, h := range o.Mount {
		mux.Handle(path, h)
	}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		prefix, _, _ := strings.Cut(r.RequestURI, "?") // StripPrefix removed the prefix from the request's URL
		fmt.Fprintf(w, "Loadout serves skills here over MCP.\n\nPoint an MCP client at http://%s%s/mcp\n", r.Host, strings.TrimSuffix(prefix, "/"))
	})
	return o.Protect(mux)
}

// Endpoint returns only the MCP endpoint, for use in another mux. It does not
// check Host, Origin or Token. Pass it only authenticated requests, or set
// [HTTPOptions.Authenticate]. o may be nil.
func (s *Server) Endpoint(o *HTTPOptions) http.Handler {
	if o == nil {
		o = &HTTPOptions{}
	}
	return o.authenticated(&statelessHandler{s: s, legacy: o.Stateless, next: o.endpoint(s.connectable, s.opts.Logger)})
}

// Endpoint returns a handler that serves an SDK server in all its protocol
// versions at one path, without the checks of [HTTPOptions.Protect]. A nil o
// means the zero value. A nil logger discards messages.
func (o *HTTPOptions) Endpoint(sdk *mcp.Server, logger *slog.Logger) http.Handler {
	if o == nil {
		o = &HTTPOptions{}
	}
	return o.authenticated(o.endpoint(func() *mcp.Server { return sdk }, logger))
}

// endpoint is Endpoint without authentication. It calls sdk for each request.
func (o *HTTPOptions) endpoint(sdk func() *mcp.Server, logger *slog.Logger) http.Handler {
	timeout := o.SessionTimeout
	if timeout == 0 {
		timeout = 30 * time.Minute
	}
	get := func(*http.Request) *mcp.Server { return sdk() }
	modern := mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{Stateless: true, DisableLocalhostProtection: true, PropagateRequestCancellation: true, Logger: logger})
	if o.Stateless {
		return modern
	}
	legacy := mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{SessionTimeout: timeout, EventStore: o.EventStore, DisableLocalhostProtection: true, Logger: logger})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isModern(r) {
			modern.ServeHTTP(w, r)
		} else {
			legacy.ServeHTTP(w, r)
		}
	})
}

// isModern reports whether a request has protocol version 2026-07-28 or later.
// Its clients send the version with each request and no session ID.
func isModern(r *http.Request) bool {
	return r.Header.Get("MCP-Protocol-Version") >= rpcmessage.ModernVersion && r.Header.Get("Mcp-Session-Id") == ""
}

// Protect returns a handler that refuses requests with a foreign Host or Origin
// (status 403), or without the token (status 401). The first two checks prevent
// web pages from reaching the server through DNS rebinding. Without a token, an
// Origin must be the server itself: the scheme http with the server's address
// or localhost, and its port, or a name in [HTTPOptions.Hosts]. Protect then
// also refuses requests that a browser marks as cross-site (status 403), and
// bodies whose type is not application/json (status 415), which browsers send
// without asking the server first. With a token, pages of other servers on
// loopback are accepted too. o must not be nil.
//
// The port of the server is that of [http.LocalAddrContextKey]. If the context
// of a request has no such address, any port is accepted.
func (o *HTTPOptions) Protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ip, port := localAddress(r)
		if !o.allowsHost(r.Host, port) {
			http.Error(w, fmt.Sprintf("forbidden host %q: not an address of this server; to accept it, require a token", r.Host), http.StatusForbidden)
			return
		}
		if origin := r.Header.Get("Origin"); origin != "" && !o.allowsOrigin(origin, r.Host, ip, port) {
			http.Error(w, fmt.Sprintf("forbidden origin %s: not a page of this server; to accept pages of other local servers, require a token", origin), http.StatusForbidden)
			return
		}
		if o.Token == "" && r.Header.Get("Sec-Fetch-Site") == "cross-site" {
			http.Error(w, "forbidden request from a page on another site; to accept pages of other local servers, require a token", http.StatusForbidden)
			return
		}
		if o.Token == "" && r.Method == http.MethodPost && !isJSON(r) {
			http.Error(w, fmt.Sprintf("unsupported content type %q: send application/json", r.Header.Get("Content-Type")), http.StatusUnsupportedMediaType)
			return
		}
		if o.Token != "" && r.URL.Path != "/healthz" {
			kind, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
			if !strings.EqualFold(kind, "Bearer") || subtle.ConstantTimeCompare([]byte(given), []byte(o.Token)) != 1 {
				w.Header().Set("WWW-Authenticate", `Bearer realm="loadout"`)
				http.Error(w, "unauthorized: send the server's token as a bearer token", http.StatusUnauthorized)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// allowsHost reports whether a Host header names this server. port is the
// server's port, or "" if it is unknown.
func (o *HTTPOptions) allowsHost(hostport, port string) bool {
	host, given := splitHostPort(hostport, "80")
	if address.IsLoopback(host) {
		return o.Token != "" || port == "" || given == port
	}
	for _, h := range o.Hosts {
		if strings.EqualFold(h, host) {
			return true
		}
	}
	return o.Token != "" && len(o.Hosts) == 0
}

// isJSON reports whether a request's Content-Type is JSON.
func isJSON(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && kind == "application/json"
}

// allowsOrigin reports whether an Origin header names this server or, if a
// token is required, any server on loopback. ip and port are the server's
// address, or "" if it is unknown.
func (o *HTTPOptions) allowsOrigin(origin, host, ip, port string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" || !strings.EqualFold(origin, u.Scheme+"://"+u.Host) || u.Scheme != "http" && u.Scheme != "https" {
		return false
	}
	name, given := splitHostPort(u.Host, map[string]string{"http": "80", "https": "443"}[u.Scheme])
	if !address.IsLoopback(name) {
		return strings.EqualFold(u.Host, host) || len(o.Hosts) > 0 && o.allowsHost(u.Host, port)
	}
	if o.Token != "" {
		return true
	}
	own := strings.EqualFold(u.Host, host) || port != "" && given == port && (name == ip || name == "localhost")
	return u.Scheme == "http" && own
}

// splitHostPort splits an address into a lower-case host and a port. If the
// address has no port, it returns defaultPort.
func splitHostPort(hostport, defaultPort string) (host, port string) {
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		host, port = hostport, defaultPort
	}
	return strings.Trim(strings.ToLower(host), "[]"), port
}

// localAddress returns the IP address and the port at which the server received a
// request, or "" if they are unknown.
func localAddress(r *http.Request) (ip, port string) {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return "", ""
	}
	ip, port, err := net.SplitHostPort(local.String())
	if err != nil {
		return "", ""
	}
	return ip, port
}
