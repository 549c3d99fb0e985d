//lint:file-ignore SA1019 legacy clients and servers still use deprecated features

// Package mcpproxy serves several MCP servers as a single server, with all
// their tools, prompts, resources, templates and completions. It supports
// clients and servers that use the legacy protocol or the modern one (version
// 2026-07-28 and later). Start reading at [Server].
//
// It changes messages as little as possible: it does not validate schemas
// again, it forwards results as far as the SDK's types preserve them, and it
// keeps the servers' error codes and data. Input requests from a server
// (elicitation, sampling, roots) are converted to the client's protocol:
//
//	client   server   what happens
//	legacy   legacy   one connection to the server per client session; requests and notifications pass through both ways
//	modern   modern   one shared connection; input_required results and the responses to them pass through
//	legacy   modern   input_required results are handled by sending requests to the client
//	modern   legacy   the call stays open, its input request becomes an input_required result, and the retry continues the call
package mcpproxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/toolresult"
)

// An Upstream describes a server to expose to clients.
type Upstream struct {
	// Name is the unique name of the server. It is used in messages and to
	// resolve name conflicts.
	Name string
	// Prefix is added to the names of tools and prompts; see
	// [upstream.ToolName]. If a name is already in use, it is prefixed with
	// Name instead.
	Prefix string
	// Opener connects to the server.
	Opener Opener
	// Allow reports whether clients are allowed to list and call a tool; nil
	// allows all tools. It is called for each list and each call, and its
	// result may change.
	Allow func(*mcp.Tool) bool
}

// Options configures a [Server]. The zero value is ready to use.
type Options struct {
	// Name, Title and Version describe the server to clients; default: loadout.
	Name, Title, Version string
	// Instructions replaces the instructions of the upstream servers.
	Instructions string
	// AuthorizeCall is called before each tool call with the name of the
	// upstream server and the tool's own name; nil permits all calls. A non-nil
	// result is returned instead of calling the tool. If that result requests
	// input, AuthorizeCall is called again with the InputResponses. If keep is
	// not nil, it wraps the request state when the server requests input, so
	// that the retry keeps its permission.
	AuthorizeCall func(ctx context.Context, req *mcp.CallToolRequest, server, tool string) (res *mcp.CallToolResult, keep func(state string) string, err error)
	// AuthorizeAccess is called before a resource is read, subscribed to or
	// completed (kind "resource"), and before a prompt is read or completed
	// (kind "prompt"). name is the server's own name, URI or URI template. If
	// it returns an error, the request fails with that error, and lists omit
	// the item. If AuthorizeAccess is nil, all access is permitted.
	AuthorizeAccess func(ctx context.Context, server, kind, name string) error
	// OnCall, if set, is called after each completed tool call, with the tool's
	// own name and the duration. It must not block.
	OnCall func(server, tool string, failed bool, elapsed time.Duration)
	// OnError is called with errors from upstream servers; nil logs them. The
	// same error is reported again only after the server was unreachable in
	// between.
	OnError func(server string, err error)
	// ConnectTimeout is the timeout for opening a connection; default 30 s.
	ConnectTimeout time.Duration
	// ListTimeout is how long lists and client initialization wait for slow
	// servers; default 10 s. Clients receive list_changed when a slow server
	// has connected.
	ListTimeout time.Duration
	// AnswerTimeout is how long a call waits for requested input; default 5
	// minutes. MaxPending is the maximum number of waiting calls; default 64.
	AnswerTimeout time.Duration
	MaxPending    int
	// MaxLegacyConns is the maximum number of connections to each legacy server
	// for modern clients; default 16.
	MaxLegacyConns int
	// IdleTimeout is how long an idle connection to a legacy server stays open
	// for modern clients; default 1 minute.
	IdleTimeout time.Duration
	// Logger receives log messages; nil discards them.
	Logger *slog.Logger
}

// A Server exposes upstream servers to clients as a single server. It is safe
// for concurrent use. The caller must call Close.
type Server struct {
	opts      Options
	log       *slog.Logger
	upstreams []*upstreamServer
	sdk       *mcp.Server
	send      mcp.MethodHandler // sends to clients without the SDK's checks

	ctx    context.Context // cancelled by Close
	cancel context.CancelFunc
	group  sync.WaitGroup

	routes  routes
	pending pendingCalls
	memory  toolresult.Memory

	mu            sync.Mutex // guards the fields below
	closed        bool
	clients       map[*mcp.ServerSession]*legacyClient // legacy clients
	subscriptions map[*subscription]bool
	headers       map[string]string // JSON schemas of tools with arguments in headers, by tool name
}

// New returns a server for the given upstream servers. Lists contain the items
// of the servers in the order of upstreams. opts may be nil. New panics if two
// upstream servers have the same name or an Opener is nil.
func New(upstreams []Upstream, opts *Options) *Server {
	s := &Server{clients: map[*mcp.ServerSession]*legacyClient{}, subscriptions: map[*subscription]bool{}, headers: map[string]string{}}
	if opts != nil {
		s.opts = *opts
	}
	s.opts.setDefaults()
	s.log = s.opts.Logger
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.pending.init(s.opts.MaxPending, s.opts.AnswerTimeout)
	names := map[string]bool{}
	for _, u := range upstreams {
		if names[u.Name] || u.Opener == nil {
			panic(fmt.Sprintf("mcpproxy: upstream %q has a duplicate name or no opener", u.Name))
		}
		names[u.Name] = true
		s.upstreams = append(s.upstreams, newUpstreamServer(s, u))
	}
	s.sdk = mcp.NewServer(&mcp.Implementation{Name: s.opts.Name, Title: s.opts.Title, Version: s.opts.Version}, s.sdkOptions())
	s.sdk.AddReceivingMiddleware(s.receive)
	s.sdk.AddSendingMiddleware(s.interceptSend)
	return s
}

func (o *Options) setDefaults() {
	for _, d := range []struct {
		v *time.Duration
		d time.Duration
	}{{&o.ConnectTimeout, 30 * time.Second}, {&o.ListTimeout, 10 * time.Second}, {&o.AnswerTimeout, 5 * time.Minute}, {&o.IdleTimeout, time.Minute}} {
		if *d.v <= 0 {
			*d.v = d.d
		}
	}
	if o.MaxPending <= 0 {
		o.MaxPending = 64
	}
	if o.MaxLegacyConns <= 0 {
		o.MaxLegacyConns = 16
	}
	if o.Name == "" {
		o.Name, o.Title = "loadout", "Loadout"
	}
	if o.Version == "" {
		o.Version = "devel"
	}
}

func (s *Server) sdkOptions() *mcp.ServerOptions {
	return &mcp.ServerOptions{
		Logger: s.opts.Logger,
		// mergeServers replaces these with the servers' capabilities.
		Capabilities: &mcp.ServerCapabilities{
			Tools:       &mcp.ToolCapabilities{ListChanged: true},
			Prompts:     &mcp.PromptCapabilities{ListChanged: true},
			Resources:   &mcp.ResourceCapabilities{ListChanged: true, Subscribe: true},
			Completions: &mcp.CompletionCapabilities{},
			Logging:     &mcp.LoggingCapabilities{},
		},
		SubscribeHandler: func(ctx context.Context, req *mcp.SubscribeRequest) error {
			return s.subscribe(ctx, req.Session, req.Params.URI, true)
		},
		UnsubscribeHandler: func(ctx context.Context, req *mcp.UnsubscribeRequest) error {
			return s.subscribe(ctx, req.Session, req.Params.URI, false)
		},
		RootsListChangedHandler: func(_ context.Context, req *mcp.RootsListChangedRequest) {
			s.forwardRootsChange(req.Session)
		},
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationServerRequest) {
			s.forwardClientProgress(req.Session, req.Params)
		},
	}
}

// Run serves a connection until it ends or ctx is done.
func (s *Server) Run(ctx context.Context, t mcp.Transport) error {
	if err := s.sdk.Run(ctx, t); err != nil {
		return fmt.Errorf("serve MCP: %w", err)
	}
	return nil
}

// Close closes all connections and waits for all goroutines to finish. It may
// be called more than once.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	defer s.memory.Close()
	s.pending.close()
	var errs []error
	for ss := range s.sdk.Sessions() {
		errs = append(errs, ss.Close())
	}
	for _, u := range s.upstreams {
		u.close()
	}
	s.group.Wait()
	return errors.Join(errs...)
}

// startGoroutine runs f in a goroutine that Close waits for. It returns false
// if the server is closed.
func (s *Server) startGoroutine(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.group.Go(f)
	return true
}

func (s *Server) reportError(u *upstreamServer, err error) {
	if !u.isNewReport(err.Error()) {
		return
	}
	if s.opts.OnError != nil {
		s.opts.OnError(u.Name, err)
		return
	}
	s.log.Warn("MCP server failed", "server", u.Name, "error", err)
}
