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

// HTTPOptions configure the HTTP handler. The zero value serves loopback
// addresses only.
type HTTPOptions struct {
	// Token, if set, is required in every request as a bearer token.
	Token string
	// Hosts are host names of this server besides loopback. If empty and Token
	// is set, any host is accepted.
	Hosts []string
	// SessionTimeout ends idle sessions of the older era; default 30 minutes.
	SessionTimeout time.Duration
	// EventStore stores sent events of the older era's streams, so that a
	// client can resume a lost one; nil stores none.
	EventStore mcp.EventStore
	// Stateless keeps no sessions for the older era either, so that any node
	// can answer a request. Servers then cannot ask or notify such clients
	// between requests.
	Stateless bool
	// Authenticate returns the principal of a request, for which scripts run
	// and tools are called (see [Options.ToolsFor]). An error is answered with
	// 401 and its text. A session of the older era belongs to the principal
	// that started it. With nil, all requests are of [Options.Principal]. It is
	// called by several goroutines at once.
	Authenticate func(*http.Request) (policy.Principal, error)
	// Mount adds handlers by path, such as /mcp/p/NAME, behind the same checks.
	Mount map[string]http.Handler
}

// Handler returns an HTTP handler with the MCP endpoint of both eras at /mcp,
// /healthz, and a page at /. It refuses requests for other hosts and from other
// origins on every path, so that a web page cannot reach the server through DNS
// rebinding.
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
		prefix, _, _ := strings.Cut(r.RequestURI, "?") // the URL of the request lacks what StripPrefix removed
		fmt.Fprintf(w, "Loadout serves skills here over MCP.\n\nPoint an MCP client at http://%s%s/mcp\n", r.Host, strings.TrimSuffix(prefix, "/"))
	})
	return o.Protect(mux)
}

// Endpoint returns the MCP endpoint of both eras alone, for a mux of your own.
// It does not check Host, Origin or Token: pass only authenticated requests to
// it, or set [HTTPOptions.Authenticate].
func (s *Server) Endpoint(o *HTTPOptions) http.Handler {
	return o.Endpoint(s.sdk, s.opts.Logger)
}

// Endpoint serves an SDK server in both eras at one path, without the checks of
// [HTTPOptions.Protect]. A nil o is the zero value; a nil logger discards.
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

// isModern reports whether a request is of the modern era, whose clients send
// the version with each request and no session ID.
func isModern(r *http.Request) bool {
	return r.Header.Get("MCP-Protocol-Version") >= modernVersion && r.Header.Get("Mcp-Session-Id") == ""
}

// Protect refuses requests with a foreign Host or Origin, and those without the
// token.
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

// origin reports whether an Origin is the server itself, or any port of
// loopback.
func (o *HTTPOptions) origin(origin, host string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false
	}
	return strings.EqualFold(u.Host, host) || address.IsLoopback(u.Hostname()) || o.host(u.Hostname()) && len(o.Hosts) > 0
}
