// Package mcpserver serves a runtime as an MCP server: tools that find, load
// and read skills, a prompt for each skill that users may invoke, and the
// Skills extension (SEP-2640).
//
// One server speaks both eras of the protocol, over stdio ([Server.Run]) and
// HTTP ([Server.Handler], [Server.Endpoint]). It keeps no conversation state:
// MCP clients expose no turns, and one process may serve many chats. It never
// changes bytes that it sent to a connection before; catalog changes are
// reported in the next tool result. Only [Options.Grow] lets a list become
// longer. Start reading at [New].
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
	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/tools"
)

// Options configure a server. The zero value is ready to use.
type Options struct {
	// TextBudget is the size of the catalog text in characters, for the
	// instructions and the description of load_skill together; default 2,000.
	TextBudget int
	// Preamble precedes the instructions, for example the text of a profile; at
	// most 8,000 characters are used.
	Preamble string
	// Compat serves the tools of an earlier system with their old names and
	// arguments instead of ours: weknora, ba-agent or wegent.
	Compat string
	// Extend adds tools, resources and prompts of the embedding program.
	Extend func(*mcp.Server)
	// Server configures the SDK's server for what Extend needs. The server sets
	// Instructions, Capabilities and SetCacheable itself.
	Server *mcp.ServerOptions
	// Remote says that clients run on other machines, where local paths mean
	// nothing. Skills then name their files by URI.
	Remote bool
	// Workspace is a directory of the user that scripts may read as /workspace,
	// and write if a grant allows it; "" mounts none.
	Workspace string
	// Tools are those of other MCP servers and of skills; nil for none. The
	// server does not close it.
	Tools *tools.Set
	// ToolsFor returns the tools of a principal named by
	// [HTTPOptions.Authenticate], nil for none. Tools is not used for such a
	// principal, as a set belongs to one. It is called for each request, by
	// several goroutines at once, and must return the same set while the
	// principal has connections. The server does not close the set.
	ToolsFor func(policy.Principal) *tools.Set
	// Session is the ID of the conversation if the server is for one alone:
	// grants for a session apply to it. With "", each connection is a session.
	Session string
	// Principal makes the requests that name no other (see
	// [HTTPOptions.Authenticate]); the zero value is the local user.
	Principal policy.Principal
	// SharedAnswers lets other servers accept answers to questions of this one;
	// nil lets none.
	SharedAnswers *SharedAnswers
	// HowToApprove returns how a user approves what err refused. For the code of
	// a skill it completes a sentence that begins with "The user can". With nil
	// or "", the hint of the refusal says it.
	HowToApprove func(err error) string
	// HowToRevoke returns the command by which a user revokes the permission
	// for a tool. If it is nil, texts do not name one.
	HowToRevoke func(tool string) string
	// ToolsOnly serves neither prompts nor resources of skills, and no catalog
	// text, for an agent of this program.
	ToolsOnly bool
	// WithoutNotices omits notices about new and removed skills from results,
	// if the owner of the conversation reports them.
	WithoutNotices bool
	// InvokedByUser reports whether the user loaded a skill that models may not
	// load; its scripts may then run. With nil none was.
	InvokedByUser func(*catalog.Entry) bool
	// Grow also lists the tools that load_skill provides as tools of this
	// server, per connection and for the older era only. Compat disables it.
	Grow bool
	// Refresh is called before each run of a script and each tool call, to
	// apply revocations. An error prevents the run. Nil does nothing.
	Refresh func(context.Context) error
	// OnUse receives each use of a skill. It is called by several goroutines at
	// once and must not block. Nil ignores uses.
	OnUse func(Use)
	// Version is the version that the server reports; default: the build's.
	Version string
	// Logger receives background events; nil discards them.
	Logger *slog.Logger
}

// Server serves a runtime. It is safe for concurrent use; the caller closes it.
type Server struct {
	rt      *loadout.Runtime
	opts    Options
	log     *slog.Logger
	sdk     *mcp.Server
	texts   catalogTexts
	current atomic.Pointer[view]
	cancel  func() // ends the subscription to the catalog
	entries entryCache
	// approvals asks users about calls of other servers' tools.
	approvals *approvals
	growth    *toolGrowth // nil without Options.Grow
	// loadTool is the name of the tool that loads skills; its description
	// carries the catalog text.
	loadTool string

	mu      sync.Mutex // guards what the SDK's server was given
	offered map[string]*offer
}

// New returns a server of the runtime; nil opts are the zero value. It panics
// for an unknown Compat, which callers check with [CompatSystems].
func New(rt *loadout.Runtime, opts *Options) *Server {
	s := &Server{rt: rt, loadTool: toolname.LoadSkill, offered: map[string]*offer{}}
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
	if s.opts.Principal == (policy.Principal{}) {
		s.opts.Principal = policy.LocalUser()
	}
	s.approvals = newApprovals(s.opts.SharedAnswers)
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
		o.Logger = slog.New(quietHandler{s.log.Handler()})
	}
	return &o
}

// Freshness of lists. Changes are announced, so this only bounds how far a
// client that does not listen lags behind. Lists are private to a user. Files
// and the entry of one skill are not cached: a client that finds a wrong digest
// asks again and must not get its own cached answer.
const (
	cacheMillis = 30_000
	cacheScope  = "private"
)

// Run serves one connection until the connection or ctx ends.
func (s *Server) Run(ctx context.Context, t mcp.Transport) error {
	if err := s.sdk.Run(ctx, t); err != nil {
		return fmt.Errorf("serve MCP: %w", err)
	}
	return nil
}

// Close ends all connections, detaches the server from its runtime, and waits
// for running requests. It is safe to call twice.
func (s *Server) Close() error {
	s.cancel()
	var errs []error
	for ss := range s.sdk.Sessions() {
		errs = append(errs, ss.Close())
	}
	return errors.Join(errs...)
}

// sync updates the lists of the SDK's server to the snapshot, which announces
// changes to clients. An older snapshot than the current one is ignored.
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
	if before == nil || s.catalogTextOf(before) != s.catalogTextOf(v) {
		// The description is part of the list of tools; adding the tool again
		// makes the SDK announce a change.
		s.addLoadTool(s.catalogTextOf(v))
	}
	s.texts.dropEnded(s)
}

func (s *Server) view() *view { return s.current.Load() }

// buildVersion returns the module version of the build, or "devel".
func buildVersion() string {
	if bi, ok := debug.ReadBuildInfo(); ok && bi.Main.Version != "" && bi.Main.Version != "(devel)" {
		return bi.Main.Version
	}
	return "devel"
}

// middleware gives each connection the catalog text that it got first, and
// appends catalog changes to tool results.
func (s *Server) middleware(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		growStack(len(method))
		ctx = withRequestPrincipal(ctx, req)
		if call, ok := req.GetParams().(*mcp.CallToolParamsRaw); ok {
			if err := s.normalizeArguments(call); err != nil {
				return errorResult(err.Error()), nil
			}
		}
		res, err := next(ctx, method, req)
		if err != nil {
			return res, err
		}
		switch r := res.(type) {
		case *mcp.InitializeResult:
			r.Instructions = s.texts.get(s, req).instructions
		case *mcp.DiscoverResult:
			r.Instructions = s.texts.get(s, req).instructions
		case *mcp.ListToolsResult:
			s.setDescription(r, s.texts.get(s, req))
		case *mcp.CallToolResult:
			if r.NeedsInput() { // a question has no content
				break
			}
			if news := s.texts.changesSince(s, req); news != "" {
				call, _ := req.GetParams().(*mcp.CallToolParamsRaw)
				return withNotice(r, news, call != nil && s.isOurTool(call.Name)), nil
			}
		}
		return res, nil
	}
}

// growStack grows the goroutine's stack for a request while it is nearly empty.
// The SDK starts a goroutine for each request; growing its stack step by step
// took a tenth of the time of a call.
//
//go:noinline
func growStack(i int) byte {
	var room [16 << 10]byte
	return room[i%len(room)]
}
