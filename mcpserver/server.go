// Package mcpserver serves a runtime as an MCP server: tools that find, load
// and read skills, a prompt for each skill that users may invoke, and the
// Skills extension (SEP-2640).
//
// A server supports MCP 2026-07-28 and the earlier versions that the SDK
// supports, over stdio ([Server.Run]) and HTTP ([Server.Handler],
// [Server.Endpoint]). It keeps no conversation state, because MCP clients expose
// no turns and one process may serve many chats.
// Text that was sent to a connection never changes; catalog changes are
// reported in the next tool result. Only with [Options.Grow] can a tool list
// become longer. Start with [New].
package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/sources"
	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/internal/toolresult"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/session"
	"github.com/loadout-dev/loadout/tools"
)

// Options configures a server. The zero value is ready to use. New copies it.
// Its functions, except Extend, must be safe for concurrent use.
type Options struct {
	// TextBudget is the maximum size of the list of skills, in characters. The
	// list is in the instructions, in the description of load_skill, or in
	// both, depending on which of them the client shows; 0 means 2,000 for
	// unknown clients, and up to 16,000 for clients that are known to show that
	// much.
	TextBudget int
	// ClientHome and ClientProject are the home directory and the project of
	// the clients, if these run on this machine. The server does not list
	// skills there that a client is known to list itself, but the client can
	// search for them and load them. "" means that all skills are listed. The
	// project is the working directory, from which the repository is
	// determined.
	ClientHome, ClientProject string
	// ClientGetenv returns environment variables of the clients, like os.Getenv,
	// because some move the directories that a client reads. It may be nil.
	ClientGetenv func(string) string
	// FirstSkills returns the keys of the skills that come first in a list of
	// skills that is too long: see [catalog.FormatOptions]. For requests
	// without a long-lived connection, it is called at most once an hour,
	// unless ok is false. It may be nil.
	FirstSkills func() (keys []string, ok bool)
	// Preamble precedes the instructions, for example the text of a profile.
	// It is truncated to 8,000 characters.
	Preamble string
	// Compat serves the tools of an earlier system under their original names
	// instead of the current ones: weknora, ba-agent or wegent; "" means none.
	Compat string
	// Extend adds the embedding program's tools, resources and prompts. New
	// calls it once. It may be nil.
	Extend func(*mcp.Server)
	// Middleware wraps the handling of each request. New calls it once. It must
	// not change the tools in a result, which servers share. It may be nil.
	Middleware mcp.Middleware
	// Server configures the SDK's server, for example for Extend. New copies
	// it and overwrites Instructions, SetCacheable and, except for logging,
	// Capabilities. It may be nil.
	Server *mcp.ServerOptions
	// Remote means that clients run on other machines and cannot use local
	// paths. Skills then refer to their files by URI.
	Remote bool
	// SetRoots is called with the local directories that a client names as its
	// projects (roots/list), after it connects and when they change. Each call
	// replaces the directories of the one before. At most 16 directories are
	// passed; they are absolute, but need not exist. The caller decides whether to
	// add the skills in them to the catalog. SetRoots must return when ctx is done.
	// Calls for one connection do not overlap. It is for a server with one client:
	// only connections of [Server.Run] with a protocol version before 2026-07-28
	// are asked. It may be nil.
	SetRoots func(ctx context.Context, dirs []string) error
	// RootsWait is how long the first list of tools of a connection waits for the
	// client's roots and SetRoots, so that the description of load_skill has the
	// skills in them; default one second. If it is negative, the list does not
	// wait. Skills that are found later are reported like other changes of the
	// catalog.
	RootsWait time.Duration
	// Workspace is a user's directory that scripts can read as /workspace, and
	// write to if a grant allows it; "" mounts none.
	Workspace string
	// ActiveSkills returns the skills of the conversation, as
	// [session.Session.SkillsInContext] does. Files of a skill of an MCP server are used
	// only in the loaded version. While the conversation has the text of such a
	// skill, scripts run only if the skill is approved. If ActiveSkills is nil,
	// clients must name the version in each call, because a server does not know
	// which skills its clients have loaded.
	ActiveSkills func() []session.ActiveSkill
	// ApproveChanges asks the user about held changes of a script: see
	// [loadout.Run]. If it is nil, clients with elicitation and a protocol
	// version before 2026-07-28 are asked.
	ApproveChanges func(ctx context.Context, changes []loadout.HeldChange) (bool, error)
	// Tools holds the tools of other MCP servers and of skills; nil means
	// none. The server does not close the set.
	Tools *tools.Set
	// ToolsFor returns the tools of a principal returned by
	// [HTTPOptions.Authenticate], or nil for none. It replaces Tools for such
	// a principal, because a set belongs to one principal. It is called for
	// each request. It must return the same set as long as the principal has
	// connections. The server does not close the set.
	ToolsFor func(policy.Principal) *tools.Set
	// Session is the conversation ID if the server is for a single
	// conversation. Grants for that session then apply. If it is "", each
	// connection is a session for tool calls.
	Session string
	// Principal is the principal of tool calls in requests that were not
	// authenticated (see [HTTPOptions.Authenticate]). The zero value means the
	// local user. Scripts in such requests have the runtime's principal.
	Principal policy.Principal
	// SharedAnswers lets other servers accept answers to this server's
	// approval questions; nil disables this.
	SharedAnswers *SharedAnswers
	// HowToApprove returns text that says how the user can approve the
	// operation whose refusal err reports, for example with a command. The text
	// either completes "The user can", with which the message then begins, or
	// starts with "to". err may be a [*tools.NotReadOnlyError]. If HowToApprove
	// is nil or returns "", the hint in the refusal is used.
	HowToApprove func(err error) string
	// ReviewSkill returns a question for the user, or nil if the skill is
	// approved or has nothing to approve. The server asks it, through a client
	// that can ask, before the skill is loaded or run. If ReviewSkill is nil,
	// the user is not asked.
	ReviewSkill func(ctx context.Context, skill string) (*SkillReview, error)
	// HowToRevoke returns the command with which the user can revoke the
	// permission for a tool. If it is nil, messages do not name a command.
	HowToRevoke func(tool string) string
	// ToolsOnly disables skill prompts, skill resources and the catalog text,
	// for an agent in the same program.
	ToolsOnly bool
	// WithoutNotices omits notices about added, changed and removed skills from
	// results. Set it if the caller reports them itself.
	WithoutNotices bool
	// InvokedByUser reports whether the user loaded a skill that models are
	// not allowed to load. Its scripts may then run. Nil means that the user
	// loaded none.
	InvokedByUser func(*catalog.Entry) bool
	// Grow adds the tools that load_skill provides to the connection's tool
	// list: at most 256, and 1 MiB of JSON. It needs Tools, and applies only to
	// connections with a protocol version before 2026-07-28. Compat disables
	// it.
	Grow bool
	// Refresh is called before each script run and each tool call, to apply
	// revocations. It may create Workspace. If it returns an error, the run or
	// call is refused and the client gets the error. It may be nil.
	Refresh func(context.Context) error
	// OnUse is called for each use of a skill. It must not block. It may be
	// nil.
	OnUse func(Use)
	// Version is the version that the server reports. "" means the version of
	// the program's main module, or "devel" if that is unknown.
	Version string
	// Logger receives log messages from background work; nil discards them.
	Logger *slog.Logger
}

// Server serves a runtime over MCP. It is safe for concurrent use and serves
// any number of connections. Create it with [New]. The caller must close it
// before the runtime and the tool sets.
type Server struct {
	rt      *loadout.Runtime
	opts    Options
	log     *slog.Logger
	impl    *mcp.Implementation
	handle  mcp.MethodHandler // handles each request; see newHandler
	texts   catalogTexts
	current atomic.Pointer[view]
	cancel  func() // ends the subscription to the catalog
	entries entryCache
	// clientProject is Options.ClientProject and its parents up to the root of its
	// repository; nil if it is not known.
	clientProject []string
	// approvals asks users to approve calls to other servers' tools.
	approvals *approvals
	growth    *toolGrowth // nil without Options.Grow
	// loadTool is the name of the tool that loads skills. Its description
	// contains the catalog text.
	loadTool string

	stateless  statelessCalls
	rootsTasks rootsTasks
	memory     toolresult.Memory

	mu          sync.Mutex                  // guards the fields below, and changes to current
	lasting     atomic.Pointer[definitions] // definitions for connections; nil until they are needed
	hasLoadTool bool                        // whether the tool that loads skills is registered there
	shared      *definitions                // definitions for stateless calls; nil until the first one
}

// New returns a server for the runtime. The server follows changes to the
// runtime's catalog and does not close the runtime. opts may be nil. New panics
// if Compat is unknown.
func New(rt *loadout.Runtime, opts *Options) *Server {
	s := &Server{rt: rt, loadTool: toolname.LoadSkill}
	if opts != nil {
		s.opts = *opts
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
	if s.opts.ClientHome != "" && s.opts.ClientProject != "" {
		s.clientProject = sources.ProjectDirs(s.opts.ClientProject)
	}
	s.approvals = newApprovals(s.opts.SharedAnswers)
	s.impl = &mcp.Implementation{Name: "loadout", Title: "Loadout", Version: s.opts.Version}
	s.handle = s.newHandler()
	if _, shared := s.features(); !shared {
		s.lasting.Store(s.newConnectionDefinitions())
	}
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
		//lint:ignore SA1019 hosts may still serve clients of earlier protocol versions
		caps.Logging = s.opts.Server.Capabilities.Logging
	}
	caps.AddExtension(extensionID, map[string]any{"directoryRead": true})
	o.Capabilities = caps
	o.SetCacheable = setCacheable
	o.SchemaCache = schemas
	if o.Logger == nil {
		o.Logger = slog.New(quietHandler{s.log.Handler()})
	}
	return &o
}

// setCacheable sets the cache fields of a result that has none.
func setCacheable(_ context.Context, req mcp.Request, c *mcp.Cacheable) {
	if c.TTLMs != 0 || c.CacheScope != "" {
		return
	}
	c.TTLMs, c.CacheScope = cacheMillis, cacheScope
	if _, file := req.(*mcp.ReadResourceRequest); file {
		c.TTLMs = 0
	}
}

// Cache lifetimes of lists. Because changes are announced, the lifetimes limit
// only how long a client that does not listen can be out of date. Lists are
// private to a user. Files and entries of individual skills are not cached. A
// client that finds a wrong digest requests them again and must not get a
// cached response.
const (
	cacheMillis = 30_000
	cacheScope  = "private"
)

// Run serves a connection until it is closed or ctx is done, and closes it. It
// returns nil if the client closed the connection. If ctx is done, the error
// wraps ctx.Err(). Run may be called concurrently, once for each connection.
func (s *Server) Run(ctx context.Context, t mcp.Transport) error {
	defer context.AfterFunc(ctx, s.rootsTasks.interrupt)() // it would delay the end by up to rootsTimeout
	if err := s.connectable().Run(ctx, t); err != nil {
		return fmt.Errorf("serve MCP: %w", err)
	}
	return nil
}

// Close detaches the server from its runtime, waits for running requests to
// finish and closes all connections. It may be called more than once. Its error
// joins those of the connections. It does not stop an HTTP server that uses the
// handlers; shut that down first.
func (s *Server) Close() error {
	s.cancel()
	defer s.memory.Close()
	s.rootsTasks.close() // closing a connection waits for the answer to roots/list
	s.stateless.close()
	s.releaseShared()
	if d := s.lasting.Load(); d != nil {
		return d.close()
	}
	return nil
}

// sync makes a snapshot the current one, and notifies clients of changed lists.
// Snapshots older than the current one are ignored.
func (s *Server) sync(snap *catalog.Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.current.Load()
	if before != nil && before.snap.Version >= snap.Version {
		return
	}
	v := &view{snap: snap}
	s.current.Store(v)
	// The description of the tool is set in each list: see setDescription.
	// Adding the tool again makes the SDK send a notification.
	if d := s.lasting.Load(); d != nil {
		connected := s.hasConnections()
		if !s.hasLoadTool || connected && s.texts.haveChanged(s, before, v) {
			s.hasLoadTool = s.addLoadTool(d.sdk)
		}
		if before != nil && !s.opts.ToolsOnly && connected {
			s.notifyLists(d.sdk, before.snap, snap)
		}
	}
	s.texts.dropEnded(s)
}

// hasConnections reports whether a client is connected.
func (s *Server) hasConnections() bool {
	for ss := range s.sessions() {
		if !isStatelessSession(ss) {
			return true
		}
	}
	return false
}

func (s *Server) view() *view { return s.current.Load() }

// buildVersion returns the module version in the build info, or "devel".
func buildVersion() string {
	if bi, ok := debug.ReadBuildInfo(); ok && bi.Main.Version != "" && bi.Main.Version != "(devel)" {
		return bi.Main.Version
	}
	return "devel"
}

// middleware ensures that each connection keeps its initial catalog text and
// variant of the tools, and appends catalog changes to tool results.
func (s *Server) middleware(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		growStack(len(method))
		ctx = withRequestPrincipal(ctx, req)
		if call, ok := req.GetParams().(*mcp.CallToolParamsRaw); ok {
			if err := s.normalizeArguments(call); err != nil {
				return errorResult(err.Error()), nil
			}
			if slices.Contains(textTools, call.Name) && s.texts.isTextOnly(s, req) {
				ctx = withTextOnly(ctx)
			}
		}
		if call, ok := req.(*mcp.CallToolRequest); ok {
			routed, answer := s.callByName(ctx, call)
			if answer != nil {
				return answer, nil
			}
			req = routed
		}
		if method == "tools/list" {
			s.waitForRoots(ctx, req)
		}
		var delivered *[]*session.Skill
		before := s.view().snap
		if !s.opts.WithoutNotices && longLivedSession(req) != nil {
			ctx, delivered = withDelivered(ctx)
		}
		res, err := next(ctx, method, req)
		if err != nil {
			return res, cleanError(err)
		}
		if method == "notifications/initialized" || method == "notifications/roots/list_changed" {
			s.askRoots(req)
		}
		if delivered != nil {
			s.texts.rememberLoads(req, before, *delivered)
		}
		switch r := res.(type) {
		case *mcp.InitializeResult:
			r.Instructions = s.texts.get(s, req).instructions
		case *mcp.DiscoverResult:
			r.Instructions = s.texts.get(s, req).instructions
		case *mcp.ListToolsResult:
			s.setDescription(r, s.texts.forTools(s, req))
			setServers(r, s.texts.serversFor(ctx, s, req))
			if s.texts.isTextOnly(s, req) {
				s.removeTextSchemas(r)
			}
		case *mcp.CallToolResult:
			if r.NeedsInput() { // a result that requests input has no content
				break
			}
			if delivered != nil {
				if changes := s.texts.changesSince(ctx, s, req); changes != "" {
					r = withNotice(r, changes)
				}
			}
			return toolresult.New(r), nil
		}
		return res, nil
	}
}

// cleanError returns err, or an equivalent error with a clean message if the
// message contains hidden characters or delimiters.
func cleanError(err error) error {
	text := untrusted.ErrorText(err).ForModelLines()
	if text == err.Error() {
		return err
	}
	if wire, ok := errors.AsType[*jsonrpc.Error](err); ok {
		clean := *wire
		clean.Message = untrusted.New(wire.Message).ForModelLines()
		return &clean
	}
	return &cleanedError{text, err}
}

// cleanedError is an error with a clean message.
type cleanedError struct {
	text string
	err  error
}

func (e *cleanedError) Error() string { return e.text }
func (e *cleanedError) Unwrap() error { return e.err }

// growStack grows the stack of a request's goroutine while the stack is nearly
// empty. The SDK starts a goroutine for each request, and growing its stack
// step by step took a tenth of the time of a call.
//
//go:noinline
func growStack(i int) byte {
	var room [16 << 10]byte
	return room[i%len(room)]
}
