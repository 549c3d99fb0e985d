// Package mcpserver is a runtime as an MCP server: the tools by which any
// client finds, loads and reads skills, prompts for people, and the Skills
// extension (SEP-2640) for clients that know it.
//
// One server speaks both eras of the protocol, over stdio ([Server.Run]) and
// HTTP ([Server.Handler]). It keeps no state of a conversation: behind an MCP
// client there are no turns, and one process may serve many of them. It never
// changes a byte that it told a connection before: what is new in the catalog
// is told in the next result. Only [Options.Grow] lets a list become longer.
package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/tools"
)

// Options adjust a server. The zero value is ready to use.
type Options struct {
	// TextBudget is how many characters of catalog text the instructions and
	// the description of load_skill hold together; default 2,000.
	TextBudget int
	// Lead is said before the instructions, as by a profile; at most 8,000
	// characters of it.
	Lead string
	// Compat serves the tools of an earlier system by their old names and
	// arguments in place of our own: weknora, ba-agent or wegent.
	Compat string
	// Extend adds tools, resources and prompts of the host to the server.
	Extend func(*mcp.Server)
	// Server adjusts the SDK's server, for what Extend needs beyond adding
	// features; Instructions, Capabilities and SetCacheable are ours.
	Server *mcp.ServerOptions
	// Remote says that clients run on other machines, where paths of this
	// one mean nothing: skills then name their files by URI.
	Remote bool
	// Workspace is a directory of the person that scripts may read as
	// /workspace, and write where that was approved; "" gives none.
	Workspace string
	// Tools are those of other MCP servers, and those that skills bring; nil is
	// none. The server does not close it.
	Tools *tools.Set
	// Session is the conversation that the server is for, where it is for one alone:
	// what a person allows for a session is for that. "" is that of each connection.
	Session string
	// Person is who the server is for: for them tools are called, and what they allow
	// counts; the zero value is the person of this machine.
	Person policy.Principal
	// Answers has questions of this server answered by others too; nil is by it alone.
	Answers *Answers
	// Allow says how a person allows what err refused, where that is by no command of
	// this program; nil or "" is what err itself says.
	Allow func(err error) string
	// ToolsOnly offers neither prompts nor resources of skills, and tells nothing of the
	// catalog, for an agent of this program that has no use for that.
	ToolsOnly bool
	// Quiet says nothing, in results, of skills that came or went: who leads the
	// conversation tells of them.
	Quiet bool
	// Invoked reports whether a person brought a skill into the conversation that is
	// not for models, whose scripts may then be run; nil is that none was.
	Invoked func(*catalog.Entry) bool
	// Grow lists the tools that load_skill brings as tools of this server too, for
	// connections of the older era only, each its own. It has no effect with Compat.
	Grow bool
	// Flags are what a person adds to a command that they are told to type, so
	// that it finds the same skills; "" is nothing.
	Flags string
	// Refresh is called before each run of a script, so that what was withdrawn
	// by then counts; nil does nothing. Where it fails nothing is run.
	Refresh func(context.Context) error
	// Used is told of each use of a skill, for who counts them; nil does nothing. It is
	// called by several goroutines at once and must not wait.
	Used func(Use)
	// Version is what the server says of itself; default: of the build.
	Version string
	// Logger receives what goes on; nil discards it.
	Logger *slog.Logger
}

// Server serves a runtime. It is safe for concurrent use; close it when done.
type Server struct {
	rt      *loadout.Runtime
	opts    Options
	log     *slog.Logger
	sdk     *mcp.Server
	texts   texts
	current atomic.Pointer[view]
	cancel  func() // of the subscription
	entries entryCache
	// approvals asks people about calls of other servers' tools.
	approvals *approvals
	growth    *growth // nil without Options.Grow
	// loadTool is the name of the tool that loads skills, whose description
	// carries the catalog text.
	loadTool string

	mu      sync.Mutex // guards what the SDK's server has been given
	offered map[string]*offer
}

// New returns a server of the runtime. It panics for an unknown Compat, which
// a program is expected to check with [Compats].
func New(rt *loadout.Runtime, opts *Options) *Server {
	s := &Server{rt: rt, loadTool: "load_skill", offered: map[string]*offer{}}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.TextBudget == 0 {
		s.opts.TextBudget = 2000
	}
	if s.opts.Version == "" {
		s.opts.Version = buildVersion()
	}
	s.log = s.opts.Logger
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.opts.Compat != "" {
		s.loadTool = compatTool(s.opts.Compat)
	}
	if s.opts.Person == (policy.Principal{}) {
		s.opts.Person = policy.Local()
	}
	s.approvals = newApprovals(s.opts.Answers)
	s.sdk = mcp.NewServer(&mcp.Implementation{Name: "loadout", Title: "Loadout", Version: s.opts.Version}, s.sdkOptions())
	s.addTools()
	s.addScriptTool()
	s.addUpstreamTools()
	s.addSkillMethods()
	if s.opts.Extend != nil {
		s.opts.Extend(s.sdk)
	}
	if s.opts.Grow && s.opts.Tools != nil && s.opts.Compat == "" {
		s.growth = s.newGrowth()
	}
	s.sdk.AddReceivingMiddleware(s.middleware)
	s.cancel = rt.Catalog().Subscribe(func(_, now *catalog.Snapshot) { s.sync(now) })
	s.sync(rt.Catalog().Snapshot())
	return s
}

func (s *Server) sdkOptions() *mcp.ServerOptions {
	o := mcp.ServerOptions{}
	if s.opts.Server != nil {
		o = *s.opts.Server
	}
	caps := &mcp.ServerCapabilities{
		Tools:     &mcp.ToolCapabilities{ListChanged: true},
		Prompts:   &mcp.PromptCapabilities{ListChanged: true},
		Resources: &mcp.ResourceCapabilities{ListChanged: true},
	}
	if s.opts.Server != nil && s.opts.Server.Capabilities != nil {
		//lint:ignore SA1019 hosts may still serve clients of the older era
		caps.Logging = s.opts.Server.Capabilities.Logging
	}
	caps.AddExtension(extensionID, map[string]any{"directoryRead": true})
	o.Capabilities = caps
	o.SetCacheable = func(_ context.Context, req mcp.Request, c *mcp.Cacheable) {
		if c.TTLMs == 0 && c.CacheScope == "" {
			c.TTLMs, c.CacheScope = cacheMillis, cacheScope
			if _, file := req.(*mcp.ReadResourceRequest); file {
				c.TTLMs = 0
			}
		}
	}
	if o.Logger == nil {
		o.Logger = slog.New(calm{s.log.Handler()})
	}
	return &o
}

// Freshness of lists: changes are announced, so this only bounds how long a
// client that does not listen is behind. What a person has is theirs. Files and
// the entry of one skill are as they are now: a client that finds a digest
// wrong asks again, and must not be answered out of its own cache.
const (
	cacheMillis = 30_000
	cacheScope  = "private"
)

// Run serves one connection until it ends or ctx does.
func (s *Server) Run(ctx context.Context, t mcp.Transport) error {
	if err := s.sdk.Run(ctx, t); err != nil {
		return fmt.Errorf("serve MCP: %w", err)
	}
	return nil
}

// Close ends the connections that are left, of clients that said no goodbye
// too, and detaches the server from its runtime. It waits for requests under
// way. It is safe to call twice.
func (s *Server) Close() error {
	s.cancel()
	var errs []error
	for ss := range s.sdk.Sessions() {
		errs = append(errs, ss.Close())
	}
	return errors.Join(errs...)
}

// sync gives the SDK's server what the snapshot has, so that lists are
// complete and clients are told of changes. What comes late is passed over.
func (s *Server) sync(snap *catalog.Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.current.Load()
	if before != nil && before.snap.Version >= snap.Version {
		return
	}
	v := &view{snap: snap}
	if !s.opts.ToolsOnly {
		v = newView(snap)
	}
	s.current.Store(v)
	if !s.opts.ToolsOnly {
		s.syncOffers(v)
	}
	if before == nil || s.toldOf(before) != s.toldOf(v) {
		// Its description is part of the list of tools; adding the tool again
		// is how the SDK is told to announce a change.
		s.addLoadTool(s.toldOf(v))
	}
	s.texts.drop(s)
}

func (s *Server) view() *view { return s.current.Load() }

// buildVersion is the version of the module the program was built from.
func buildVersion() string {
	if bi, ok := debug.ReadBuildInfo(); ok && bi.Main.Version != "" && bi.Main.Version != "(devel)" {
		return bi.Main.Version
	}
	return "devel"
}

// middleware gives every connection the catalog text it was first told, and
// what is new with the next result of a tool.
func (s *Server) middleware(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		growStack(len(method))
		if call, ok := req.GetParams().(*mcp.CallToolParamsRaw); ok {
			if err := s.lenient(call); err != nil {
				return failed(err.Error()), nil
			}
		}
		res, err := next(ctx, method, req)
		if err != nil {
			return res, err
		}
		switch r := res.(type) {
		case *mcp.InitializeResult:
			r.Instructions = s.texts.of(s, req).instructions
		case *mcp.DiscoverResult:
			r.Instructions = s.texts.of(s, req).instructions
		case *mcp.ListToolsResult:
			s.describe(r, s.texts.of(s, req))
		case *mcp.CallToolResult:
			if r.NeedsInput() { // a question has no content
				break
			}
			if news := s.texts.news(s, req); news != "" {
				call, _ := req.GetParams().(*mcp.CallToolParamsRaw)
				return withNews(r, news, call != nil && s.ours(call.Name)), nil
			}
		}
		return res, nil
	}
}

// growStack makes the stack of a goroutine large enough for a request while there
// is little on it. The SDK begins a goroutine for each: grown step by step, with
// all that lies on it, it was a tenth of the time of a call.
//
//go:noinline
func growStack(i int) byte {
	var room [16 << 10]byte
	return room[i%len(room)]
}
