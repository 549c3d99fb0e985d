//lint:file-ignore SA1019 what is deprecated still passes between old peers

// Package mcpproxy puts MCP servers that others wrote behind one of ours, with
// their own tools, prompts, resources, templates and completions listed as they
// are, for clients and servers of both eras of the protocol.
//
// It changes as little as it can: schemas are not checked again, results pass
// with what the SDK's types hold of them, error codes and data are those of the
// server, and what a server asks a client (a form, its model, its roots) reaches
// the client in the way that its era has for it:
//
//	client   server   what happens
//	legacy   legacy   a connection to the server for each session of a client; requests and notices pass both ways
//	modern   modern   one shared connection; input_required results and their answers pass
//	legacy   modern   input_required results are answered by asking the client
//	modern   legacy   the call is held, its question becomes an input_required result, and the retry goes on with the call
package mcpproxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// An Upstream is a server to be listed.
type Upstream struct {
	// Name is what reports and messages call it; unique.
	Name string
	// Prefix is what names of its tools and prompts begin with, as by
	// [upstream.ToolName]; "" leaves names as they are. Where two servers without
	// a prefix have the same name, the later one's is prefixed by its Name.
	Prefix string
	// Opener connects to it.
	Opener Opener
	// Allow chooses among its tools; nil allows all. What is not allowed is
	// neither listed nor called. It is asked for each list and each call, and may
	// change its mind.
	Allow func(*mcp.Tool) bool
}

// Options adjust a server. The zero value is ready to use.
type Options struct {
	// Name, Title and Version are what the server says of itself; default: loadout.
	Name, Title, Version string
	// Instructions replace those of the upstream servers.
	Instructions string
	// AuthorizeCall is asked before each call of a tool, with the name of the upstream
	// server and the tool's own name; nil permits all. Another result than nil is
	// the answer in place of the call: one that asks gets its answers in the
	// InputResponses of another request. keep, where not nil, is applied to the
	// state of a question that the server asks then, so that the leave is known
	// again when its answer comes.
	AuthorizeCall func(ctx context.Context, req *mcp.CallToolRequest, server, tool string) (res *mcp.CallToolResult, keep func(state string) string, err error)
	// AuthorizeAccess is asked before a resource of an upstream server is read,
	// subscribed to or completed (kind "resource"), and before a prompt is got or
	// completed ("prompt"), with the server's own name for it: a prompt's name, a
	// URI, or a template of URIs. Its error is the answer in place of the server's.
	// Lists leave out what it refuses. nil permits all.
	AuthorizeAccess func(ctx context.Context, server, kind, name string) error
	// OnCall is told of each call of a tool that reached its upstream server and has
	// an answer, with the tool's own name, and how long it took; nil does nothing. It
	// must not wait.
	OnCall func(server, tool string, failed bool, took time.Duration)
	// OnError is told what is wrong with an upstream server; nil logs it. The same
	// is told again only when the server was away and is back.
	OnError func(server string, err error)
	// ConnectTimeout bounds opening a connection; default 30 s.
	ConnectTimeout time.Duration
	// ListTimeout bounds how long a list, or the greeting of a client, waits for
	// slow servers; default 10 s. Who is late is told by list_changed.
	ListTimeout time.Duration
	// AnswerTimeout is how long a call waits for the answer to its question; default 5
	// minutes. MaxHeld bounds how many calls wait at a time; default 64.
	AnswerTimeout time.Duration
	MaxPending    int
	// MaxLegacyConns bounds the connections to one upstream server of the older era
	// that are kept for clients of the newer one; default 16.
	MaxLegacyConns int
	// IdleTimeout is how long such a connection is kept unused; default 1 minute.
	IdleTimeout time.Duration
	// Logger receives what goes on; nil discards it.
	Logger *slog.Logger
}

// Server lists upstream servers. It is safe for concurrent use; close it when
// done.
type Server struct {
	opts      Options
	log       *slog.Logger
	upstreams []*upstreamServer
	sdk       *mcp.Server
	send      mcp.MethodHandler // to clients, without the SDK's checks

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	group  sync.WaitGroup

	routes  routes
	pending pendingCalls

	mu            sync.Mutex // guards what follows
	closed        bool
	clients       map[*mcp.ServerSession]*legacyClient // of the older era
	subscriptions map[*subscription]bool
	headers       map[string]string // tools with arguments in headers, known to the SDK: name → schema
}

// New returns a server of the upstream servers, in the order in which they are
// listed. It panics for two of one name and for one without an Opener.
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
			panic(fmt.Sprintf("direct: upstream %q is there twice or has no opener", u.Name))
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
		// What is told to a client is less: what its servers have.
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

// Run serves one connection until it ends or ctx does.
func (s *Server) Run(ctx context.Context, t mcp.Transport) error {
	if err := s.sdk.Run(ctx, t); err != nil {
		return fmt.Errorf("serve MCP: %w", err)
	}
	return nil
}

// SDK is the server of the SDK, for a program that serves it in its own way.
func (s *Server) SDK() *mcp.Server { return s.sdk }

// Close ends the connections to clients and to upstream servers, and waits for
// all that it started. It is safe to call twice.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
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

// goroutine runs f until it ends; Close waits for it. It reports whether there is
// still time for that.
func (s *Server) goroutine(f func()) bool {
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
	s.log.Warn("an MCP server is not in order", "server", u.Name, "error", err)
}
