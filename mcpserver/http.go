package mcpserver

import (
	"crypto/subtle"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/address"
	"github.com/loadout-dev/loadout/policy"
)

// HTTPOptions configures the HTTP handler. The zero value serves only loopback
// addresses.
type HTTPOptions struct {
	// Token, if set, is required in every request as a bearer token.
	Token string
	// Hosts are the host names of this server in addition to loopback. If
	// Hosts is empty and Token is set, any host is accepted.
	Hosts []string
	// SessionTimeout is the idle timeout of sessions of the older era; default
	// 30 minutes.
	SessionTimeout time.Duration
	// EventStore stores the events sent on streams of the older era, so that
	// clients can resume an interrupted stream; nil stores none.
	EventStore mcp.EventStore
	// Stateless disables sessions for the older era too, so that any node can
	// answer a request. The server then cannot send requests or notifications
	// to such clients between their requests.
	Stateless bool
	// Authenticate returns the principal of a request, for which scripts run
	// and tools are called; see [Options.ToolsFor]. An error is reported to
	// the client with status 401. A session of the older era belongs to the
	// principal that started it. If Authenticate is nil, all requests have the
	// principal [Options.Principal]. It must be safe for concurrent use.
	Authenticate func(*http.Request) (policy.Principal, error)
	// Mount adds handlers by path, such as /mcp/p/NAME. They are protected by
	// the same checks.
	Mount map[string]http.Handler
}

// Handler returns an HTTP handler that serves MCP for both eras at /mcp, a
// health check at /healthz, and a page at /. On every path, it refuses requests
// for other hosts and from other origins, so that web pages cannot reach the
// server through DNS rebinding.
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

// Endpoint returns only the MCP endpoint of both eras, for use in another mux.
// It does not check Host, Origin or Token. Pass it only authenticated requests,
// or set [HTTPOptions.Authenticate].
func (s *Server) Endpoint(o *HTTPOptions) http.Handler {
	return o.Endpoint(s.sdk, s.opts.Logger)
}

// Endpoint returns a handler that serves an SDK server in both eras at one
// path, without the checks of [HTTPOptions.Protect]. A nil o means the zero
// value. A nil logger discards messages.
func (o *HTTPOptions) Endpoint(sdk *mcp.Server, logger *slog.Logger) http.Handler {
	if o == nil {
		o = &HTTPOptions{}
	}
	timeout := o.SessionTimeout
	if timeout == 0 {
		timeout = 30 * time.Minute
	}
	get := func(*http.Request) *mcp.Server { return sdk }
	modern := mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{Stateless: true, DisableLocalhostProtection: true, PropagateRequestCancellation: true, Logger: logger})
	if o.Stateless {
		return o.authenticated(modern)
	}
	legacy := mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{SessionTimeout: timeout, EventStore: o.EventStore, DisableLocalhostProtection: true, Logger: logger})
	return o.authenticated(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isModern(r) {
			modern.ServeHTTP(w, r)
		} else {
			legacy.ServeHTTP(w, r)
		}
	}))
}

// isModern reports whether a request is of the modern era. Its clients send the
// protocol version with each request and no session ID.
func isModern(r *http.Request) bool {
	return r.Header.Get("MCP-Protocol-Version") >= modernVersion && r.Header.Get("Mcp-Session-Id") == ""
}

// Protect returns a handler that refuses requests with a foreign Host or
// Origin, or without the token.
func (o *HTTPOptions) Protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !o.host(r.Host) {
			http.Error(w, fmt.Sprintf("forbidden host %q: not a name of this server", r.Host), http.StatusForbidden)
			return
		}
		if origin := r.Header.Get("Origin"); origin != "" && !o.origin(origin, r.Host) {
			http.Error(w, fmt.Sprintf("forbidden origin %s", origin), http.StatusForbidden)
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

func (o *HTTPOptions) host(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.Trim(strings.ToLower(host), "[]")
	if address.IsLoopback(host) {
		return true
	}
	for _, h := range o.Hosts {
		if strings.EqualFold(h, host) {
			return true
		}
	}
	return o.Token != "" && len(o.Hosts) == 0
}

// origin reports whether an Origin header names this server or any port on
// loopback.
func (o *HTTPOptions) origin(origin, host string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false
	}
	return strings.EqualFold(u.Host, host) || address.IsLoopback(u.Hostname()) || o.host(u.Hostname()) && len(o.Hosts) > 0
}
