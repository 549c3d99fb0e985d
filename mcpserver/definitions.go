package mcpserver

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// definitions is an SDK server with the tools, methods and resource templates
// of this package. Its handlers find the [Server] in the context; see
// [serverOf].
//
// Shared definitions answer only stateless calls and have no connections.
type definitions struct {
	sdk  *mcp.Server
	next mcp.MethodHandler // handles requests after the middleware of their Server

	mu       sync.Mutex                    // guards the fields below
	sessions map[string]*mcp.ServerSession // sessions for stateless calls, by protocol version
	closed   bool
	users    int // number of servers that share it; guarded by shared.mu
}

// features holds the properties of a server that determine its definitions.
type features struct {
	version        string
	logger         *slog.Logger
	tools, scripts bool
}

// shared holds the definitions that servers with the same features share, because a
// hub has a server for each user.
var shared struct {
	mu  sync.Mutex
	all map[features]*definitions
}

// features returns the features of the server. ok is false if its definitions
// cannot be shared.
func (s *Server) features() (f features, ok bool) {
	f = features{s.opts.Version, s.opts.Logger, s.hasTools(), s.rt.RunsScripts()}
	return f, s.opts.Compat == "" && s.opts.Extend == nil && s.opts.Server == nil && !s.opts.Grow
}

// definitions returns the definitions for stateless calls.
func (s *Server) definitions() *definitions {
	f, ok := s.features()
	if !ok {
		return s.lasting.Load()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shared == nil {
		s.shared = s.acquireShared(f)
	}
	return s.shared
}

func (s *Server) acquireShared(f features) *definitions {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	d := shared.all[f]
	if d == nil {
		d = s.newDefinitions()
		s.addLoadTool(d.sdk)
		d.sdk.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler { d.next = next; return next })
		if shared.all == nil {
			shared.all = map[features]*definitions{}
		}
		shared.all[f] = d
	}
	d.users++
	return d
}

// releaseShared ends the server's use of shared definitions, and closes them if no
// other server uses them.
func (s *Server) releaseShared() {
	s.mu.Lock()
	d := s.shared
	s.shared = nil
	s.mu.Unlock()
	if d == nil {
		return
	}
	f, _ := s.features()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if d.users--; d.users == 0 {
		delete(shared.all, f)
		d.close() // of connections on which nothing is sent
	}
}

// newDefinitions returns definitions with the server's features, but without the
// tool that loads skills. They keep no reference to the server.
func (s *Server) newDefinitions() *definitions {
	d := &definitions{sdk: mcp.NewServer(s.impl, s.sdkOptions())}
	s.addTools(d.sdk)
	s.addScriptTool(d.sdk)
	s.addUpstreamTools(d.sdk)
	addSkillMethods(d.sdk)
	return d
}

// newConnectionDefinitions returns definitions for the connections of the
// server.
func (s *Server) newConnectionDefinitions() *definitions {
	d := s.newDefinitions()
	if s.opts.Extend != nil {
		s.opts.Extend(d.sdk)
	}
	if s.opts.Grow && s.opts.Tools != nil && s.opts.Compat == "" {
		s.growth = s.newGrowth(d.sdk)
	}
	d.sdk.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler { d.next = next; return s.handle })
	d.sdk.AddSendingMiddleware(cancelUndecided)
	return d
}

// connectable returns the SDK server for the server's connections and for
// requests that statelessHandler leaves to the SDK, such as initialize. It
// takes about 6 KB, so connectable creates it on first use.
func (s *Server) connectable() *mcp.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.lasting.Load()
	if d == nil {
		d = s.newConnectionDefinitions()
		s.hasLoadTool = s.addLoadTool(d.sdk)
		s.lasting.Store(d)
	}
	return d.sdk
}

// sessions yields the sessions of the server's connections.
func (s *Server) sessions() iter.Seq[*mcp.ServerSession] {
	if d := s.lasting.Load(); d != nil {
		return d.sdk.Sessions()
	}
	return func(func(*mcp.ServerSession) bool) {}
}

// newHandler returns dispatch, wrapped in the server's middleware.
func (s *Server) newHandler() mcp.MethodHandler {
	h := s.middleware(s.serveSkills(s.dispatch))
	if s.opts.Middleware != nil {
		h = s.opts.Middleware(h)
	}
	return h
}

// dispatch handles a request with the definitions that its session uses.
func (s *Server) dispatch(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
	d := s.lasting.Load()
	if ss, ok := req.GetSession().(*mcp.ServerSession); ok && isStatelessSession(ss) {
		d = s.definitions()
	}
	return d.next(context.WithValue(ctx, serverKey{}, s), method, req)
}

// serverKey is the key of a [Server] in a context.
type serverKey struct{}

// serverOf returns the server that handles the request in ctx.
func serverOf(ctx context.Context) *Server { return ctx.Value(serverKey{}).(*Server) }

// session returns the session that represents the clients of all stateless
// requests with the given protocol version. The SDK's handlers need a session.
// Nothing is sent or received on its connection.
func (d *definitions) session(version string) (*mcp.ServerSession, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, errors.New("server is closed")
	}
	if ss := d.sessions[version]; ss != nil {
		return ss, nil
	}
	state := &mcp.ServerSessionState{InitializeParams: statelessParams[version], InitializedParams: &mcp.InitializedParams{}, LogLevel: "info"}
	ss, err := d.sdk.Connect(context.Background(), idleTransport{}, &mcp.ServerSessionOptions{State: state})
	if err != nil {
		return nil, err
	}
	if d.sessions == nil {
		d.sessions = map[string]*mcp.ServerSession{}
	}
	d.sessions[version] = ss
	return ss, nil
}

// close closes all connections.
func (d *definitions) close() error {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	var errs []error
	for ss := range d.sdk.Sessions() {
		errs = append(errs, ss.Close())
	}
	return errors.Join(errs...)
}
