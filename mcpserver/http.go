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
)

// HTTPOptions adjust the HTTP handler. The zero value is for loopback.
type HTTPOptions struct {
	// Token, where set, must come with every request as a bearer token.
	Token string
	// Hosts are names under which the server may be reached besides
	// loopback ones; with a token, any name is accepted where this is empty.
	Hosts []string
	// SessionTimeout ends idle sessions of the older era; default 30 minutes.
	SessionTimeout time.Duration
	// EventStore keeps what was sent on streams of the older era, for a client
	// that lost one and comes back; nil keeps nothing.
	EventStore mcp.EventStore
	// Stateless keeps no sessions for clients of the older era either, so that any of
	// several nodes answers any request; nothing is asked or told of them in between.
	Stateless bool
	// Mount are further handlers by their path, as /mcp/p/NAME, behind the same
	// checks.
	Mount map[string]http.Handler
}

// Handler returns the server as an HTTP handler: the MCP endpoint of both
// eras at /mcp, /healthz, and a page that says so at /. Requests whose Host or
// Origin is not the server's own are refused on every path, so that a page in
// a browser cannot reach it by a name that it made point here.
func (s *Server) Handler(o *HTTPOptions) http.Handler {
	if o == nil {
		o = &HTTPOptions{}
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", o.Endpoint(s.sdk, s.opts.Logger))
	for path, h := range o.Mount {
		mux.Handle(path, h)
	}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprintf(w, "Loadout serves skills here over MCP.\n\nPoint an MCP client at http://%s/mcp\n", r.Host)
	})
	return o.Protect(mux)
}

// Endpoint serves both eras of a server of the SDK at one address, without the
// checks of [HTTPOptions.Protect]. A nil o is the zero value, a nil logger
// discards.
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

// isModern tells the eras apart: a client of the modern one names it in every
// request, and keeps no session.
func isModern(r *http.Request) bool {
	return r.Header.Get("MCP-Protocol-Version") >= modernVersion && r.Header.Get("Mcp-Session-Id") == ""
}

// Protect refuses requests that are not meant for this server: those whose Host
// or Origin is another's, and those without the token.
func (o *HTTPOptions) Protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !o.host(r.Host) {
			http.Error(w, fmt.Sprintf("refused: %q is not a name of this server", r.Host), http.StatusForbidden)
			return
		}
		if origin := r.Header.Get("Origin"); origin != "" && !o.origin(origin, r.Host) {
			http.Error(w, fmt.Sprintf("refused: requests from pages of %s are not accepted", origin), http.StatusForbidden)
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
	if IsLoopback(host) {
		return true
	}
	for _, h := range o.Hosts {
		if strings.EqualFold(h, host) {
			return true
		}
	}
	return o.Token != "" && len(o.Hosts) == 0
}

// origin accepts pages of the server itself, and with loopback of any port.
func (o *HTTPOptions) origin(origin, host string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false
	}
	return strings.EqualFold(u.Host, host) || IsLoopback(u.Hostname()) || o.host(u.Hostname()) && len(o.Hosts) > 0
}

// IsLoopback reports whether a host name or address stays on this machine.
func IsLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
