package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/address"
	"github.com/loadout-dev/loadout/internal/clientconfig"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/configfile"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/fileerror"
	"github.com/loadout-dev/loadout/internal/presence"
	"github.com/loadout-dev/loadout/internal/setup"
	"github.com/loadout-dev/loadout/internal/stdio"
	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/internal/usage"
	"github.com/loadout-dev/loadout/mcpserver"
)

// mcpSettings maps flags of the mcp command to configuration keys.
var mcpSettings = map[string]string{"http": "mcp.address", "compat": "mcp.compat", "token-file": "mcp.token_file", "text-budget": "mcp.text_budget"}

func (a *app) mcpCommand() *cobra.Command {
	var address, compat, token string
	var budget int
	var onStdio bool
	var o mcpFlags
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Serve skills and MCP servers to an MCP client",
		Long: `Serve skills and the tools of your MCP servers over the Model Context Protocol: on
standard input and output, for clients that start it, or over HTTP with --http. One endpoint
supports MCP 2026-07-28 and earlier versions, and the Skills extension (SEP-2640).
Changes to skills take effect while it runs; SIGHUP reloads all skills.`,
		Example: `  loadout connect claude-code                 configure a client
  loadout mcp --http 127.0.0.1:8485           serve over HTTP at /mcp
  loadout mcp --skills ./skills
  loadout mcp --http 0.0.0.0:8485 --token-file token`,
		Args: argCount(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkExclusive(cmd, "http", "stdio"); err != nil {
				return err
			}
			a.ByClient = true
			c, err := a.loadConfigWithFlags(cmd, mcpSettings)
			if err != nil {
				return err
			}
			if onStdio {
				c.MCP.Address = ""
			}
			if c.MCP.Address == "" && cmd.Flags().Changed("token-file") {
				return exit.Errorf(exit.Usage, "add --http ADDR, or omit --token-file", "--token-file needs --http")
			}
			o.exposed = cmd.Flags().Changed("expose")
			return a.runMCP(cmd.Context(), c, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&address, "http", "", "serve over HTTP at `ADDR`, such as 127.0.0.1:8485")
	f.BoolVar(&onStdio, "stdio", false, "serve on standard input and output, even if mcp.address is set")
	f.StringVar(&token, "token-file", "", "`FILE` with the token for clients; required unless the address is loopback")
	f.StringVar(&compat, "compat", "", "serve the tools of an earlier `SYSTEM`: "+compatNames())
	f.StringVar(&o.workspace, "workspace", "", "let scripts read `DIR` as /workspace and take inputs from it")
	f.StringArrayVar(&o.files, "mcp-config", nil, "add the MCP servers in `FILE`, in the format of any client (repeatable)")
	f.StringVar(&o.profile, "profile", "", "serve the skills and MCP servers of the profile `NAME`")
	f.StringVar(&o.expose, "expose", "meta", "expose tools of MCP servers in `MODE`: meta or direct")
	f.StringVar(&o.prefix, "prefix", "server", "`PREFIX` of directly exposed tools: server or none")
	f.BoolVar(&o.grow, "grow", false, "also list the tools of loaded skills (MCP versions before 2026-07-28)")
	f.IntVar(&budget, "text-budget", 0, "limit the initial list of skills to `N` characters; default: by client")
	completeFlag(cmd, "compat", toolname.CompatSystems()...)
	completeFlag(cmd, "expose", "meta", "direct")
	completeFlag(cmd, "prefix", "server", "none")
	return cmd
}

// skillWait is the maximum time that the server waits for skill directories
// before it responds to a client. Clients give up after a few seconds.
const skillWait = 400 * time.Millisecond

// mcpFlags holds the flags of the mcp command that are not settings.
type mcpFlags struct {
	workspace               string
	files                   []string
	profile, expose, prefix string
	exposed                 bool // whether --expose was given
	grow                    bool
}

func (o *mcpFlags) validate() error {
	for _, f := range []struct {
		name, value string
		of          []string
	}{{"--expose", o.expose, []string{"meta", "direct"}}, {"--prefix", o.prefix, []string{"server", "none"}}} {
		if !slices.Contains(f.of, f.value) {
			return exit.Errorf(exit.Usage, "use one of "+strings.Join(f.of, ", "), "%s: unknown value %q", f.name, f.value)
		}
	}
	return nil
}

// checkGrow returns an error if --grow has no effect because of another option.
func (o *mcpFlags) checkGrow(c *config.Config) error {
	switch {
	case !o.grow:
	case c.MCP.Compat != "":
		return exit.Errorf(exit.Usage, "omit one of them; mcp.compat counts as --compat", "--grow has no effect with --compat %s: that system does not support tools of skills", c.MCP.Compat)
	case o.expose == "direct":
		return exit.Errorf(exit.Usage, "omit one of them, or add --expose meta if the profile says direct", "--grow has no effect with --expose direct: all tools are listed")
	}
	return nil
}

func (a *app) runMCP(ctx context.Context, c *config.Config, o mcpFlags) error {
	if err := o.validate(); err != nil {
		return err
	}
	tuneMemory(a.Getenv)
	httpOptions, remote, err := newHTTPOptions(c)
	if err != nil {
		return err
	}
	workspace, err := setup.ResolveWorkspace(o.workspace)
	if err != nil {
		return err
	}
	p, err := a.FindProfile(o.profile)
	if err != nil {
		return err
	}
	if p != nil && p.Expose == "direct" && !o.exposed {
		o.expose = p.Expose
	}
	if err := o.checkGrow(c); err != nil {
		return err
	}
	a.SkillWait, a.ServerFiles = skillWait, o.files
	ctx, stop := context.WithCancelCause(ctx)
	a.UsageLog = a.NewUsageLog()
	defer a.UsageLog.Close()
	a.Backends = &setup.Backends{}
	defer a.Backends.Close()
	defer stop(nil)
	var rt *loadout.Runtime
	var roots *setup.Roots
	if c.MCP.Address == "" && o.expose != "direct" { // one client, on this machine
		rt, roots, err = a.NewRuntimeWithRoots(ctx, c, setup.ProfileSkills(p))
	} else {
		rt, err = a.NewRuntimeWith(ctx, c, true, setup.ProfileSkills(p))
	}
	if err != nil {
		return err
	}
	defer rt.Close()
	a.NoteMissingSkills(ctx, c, p, rt)
	if workspace != "" && rt.RunsScripts() {
		if err := rt.CheckWorkspace(workspace); err != nil {
			return err
		}
	}
	set, _, err := a.NewToolset(ctx, c, rt, o.files, p)
	if err != nil {
		return err
	}
	defer set.Close()
	follow := a.NewConfigWatcher(rt, c, set, p)
	defer follow.Start(ctx)()
	options := mcpserver.Options{Preamble: setup.ProfilePrompt(p), TextBudget: c.MCP.TextBudget, Compat: c.MCP.Compat, Remote: remote, Workspace: workspace, Tools: set.Set,
		HowToApprove: a.howToApprove(ctx), HowToRevoke: setup.RevokeCommand, Refresh: follow.Refresh, OnUse: a.RecordSkillUse(c, usage.InterfaceMCP), Version: setup.ReadVersion().Version, Logger: a.Logger()}
	if c.Sandbox.Enabled {
		options.Middleware = a.prepareSandbox(ctx)
	}
	own := options // profiles with their own path list their tools directly
	own.Grow = o.grow
	if roots != nil {
		own.SetRoots, own.RootsWait = roots.Set, roots.Wait()
	}
	if !remote { // the order tells what this user uses
		order := a.SkillOrder(ctx, c, rt.Catalog().Snapshot)
		own.FirstSkills = func() ([]string, bool) { return order(), true }
	}
	if c.MCP.Address == "" { // started by the client
		own.ClientHome, own.ClientProject, own.ClientGetenv = a.Home(), a.ConfigInput().WorkDir, a.Getenv
	}
	if !remote { // users elsewhere do not approve code on this machine
		own.ReviewSkill = a.SkillReviewer(rt, c, a.plainReview())
	}
	s := mcpserver.New(rt, &own)
	defer s.Close()
	var shown mcpEndpoint = s
	if o.expose == "direct" {
		d := a.newDirectServer(c, s, set, o.prefix)
		defer d.Close()
		shown = d
	}
	var callers []int
	if c.MCP.Address == "" && !console.IsTerminal(a.Stdin) { // started by a client, not typed
		callers = presence.Callers(os.Getpid(), nil)
	}
	published := a.publishState(set, callers)
	defer published.close()
	shown = published.wrap(shown)
	reloading := a.reloadOnHangup(ctx, rt, func() { stop(errHangup) })
	defer func() { stop(nil); <-reloading }()
	if c.MCP.Address != "" {
		others := &profileServer{a: a, c: c, options: options, http: httpOptions, files: o.files, ctx: ctx, published: published, served: map[string]*servedProfile{}}
		defer others.Close()
		httpOptions.Mount = map[string]http.Handler{profilePath: others}
		return a.serveHTTP(ctx, c.MCP.Address, rt, s, shown, httpOptions)
	}
	return a.serveStdio(ctx, rt, s, shown)
}

// prepareSandbox returns middleware that tests the sandbox in the background
// after the first list of tools, because scripts may follow.
func (a *app) prepareSandbox(ctx context.Context) mcp.Middleware {
	var once sync.Once
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(reqCtx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			res, err := next(reqCtx, method, req)
			if method == "tools/list" && err == nil {
				once.Do(func() { a.Backends.Prepare(ctx) })
			}
			return res, err
		}
	}
}

// tuneMemory makes the garbage collector run less often than by default. A
// request allocates much memory but retains none: the SDK takes 32 KiB for each
// message that it decodes. Compared with a GOGC of 100, sixteen concurrent
// callers complete 1.3 to 1.7 times as many calls with 11 to 14 MB more memory.
// A memory limit caps the total.
func tuneMemory(getenv func(string) string) {
	if getenv("GOGC") == "" {
		setGCPercent(400)
	}
	if getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(512 << 20)
	}
}

// newHTTPOptions checks the HTTP address before anything is started. It returns
// the server's options and whether other machines can reach the address.
func newHTTPOptions(c *config.Config) (o *mcpserver.HTTPOptions, remote bool, err error) {
	o = &mcpserver.HTTPOptions{}
	if c.MCP.Address == "" {
		return o, false, nil
	}
	host, port, err := net.SplitHostPort(c.MCP.Address)
	if err != nil {
		if ae, ok := errors.AsType[*net.AddrError](err); ok {
			err = errors.New(ae.Err)
		}
		return nil, false, exit.Errorf(exit.Usage, "give an address as 127.0.0.1:8485", "serve MCP at %q: %w", c.MCP.Address, err)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return nil, false, exit.Errorf(exit.Usage, "give an address as 127.0.0.1:8485", "serve MCP at %q: %q is not a port", c.MCP.Address, port)
	}
	if c.MCP.TokenFile != "" {
		if o.Token, err = readToken(c.MCP.TokenFile); err != nil {
			return nil, false, err
		}
	}
	remote = !address.IsLoopback(host)
	if remote && o.Token == "" {
		return nil, false, exit.Errorf(exit.Refused, "give --token-file FILE, or a loopback address such as 127.0.0.1:"+port,
			"serve MCP at %s: other machines could reach it without credentials", c.MCP.Address)
	}
	return o, remote, nil
}

func readToken(file string) (string, error) {
	const hint = "write a long random token into it: openssl rand -hex 32 > "
	b, err := configfile.ReadFile(file, 64<<10)
	if err != nil {
		code, _ := exit.FileHint(err, "")
		return "", exit.Errorf(code, hint+console.ShellQuote(file), "token file %s: %w", file, fileerror.Cause(err))
	}
	token := strings.TrimSpace(string(b))
	if len(token) < 16 || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return "", exit.Errorf(exit.Usage, hint+console.ShellQuote(file), "token file %s: want one line of at least 16 printable ASCII characters", file)
	}
	return token, nil
}

// indexDelay is the time for which the catalog must be unchanged before its
// search index is updated, so that one update covers many changed files.
const indexDelay = 2 * time.Second

// reloadOnHangup starts a goroutine that builds and saves the search index, and
// updates it a moment after each change of the catalog. On SIGHUP, the
// goroutine reloads all sources. If the signal means that the terminal was
// closed, it calls stop and exits. It also exits when ctx is done. It closes
// the returned channel when it exits.
func (a *app) reloadOnHangup(ctx context.Context, rt *loadout.Runtime, stop func()) <-chan struct{} {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	done := make(chan struct{})
	terminals := a.countTerminals()
	changed := time.NewTimer(time.Hour)
	changed.Stop()
	unsubscribe := rt.Catalog().Subscribe(func(_, _ *catalog.Snapshot) { changed.Reset(indexDelay) })
	go func() {
		defer close(done)
		defer signal.Stop(hup)
		defer unsubscribe()
		if err := rt.Catalog().Warm(ctx); err != nil {
			return // ctx ended
		}
		debug.FreeOSMemory() // release the memory used for reading and indexing
		for {
			select {
			case <-ctx.Done():
				return
			case <-changed.C:
				if err := rt.Catalog().Warm(ctx); err != nil {
					return // ctx ended
				}
			case <-hup:
				if a.countTerminals() < terminals {
					stop()
					return
				}
				if err := rt.Catalog().Reload(ctx); err == nil {
					a.Note("reloaded %s", console.Pluralize(len(rt.Catalog().Snapshot().Skills()), "skill"))
				}
			}
		}
	}()
	return done
}

// countTerminals returns the number of standard streams that are currently
// terminals.
func (a *app) countTerminals() int {
	n := 0
	for _, f := range []any{a.Stdin, a.Stdout, a.Stderr} {
		if console.IsTerminal(f) {
			n++
		}
	}
	return n
}

func (a *app) serveStdio(ctx context.Context, rt *loadout.Runtime, s *mcpserver.Server, shown mcpEndpoint) error {
	if console.IsTerminal(a.Stdin) {
		fmt.Fprintf(a.Stderr, `%s

This is an MCP server on standard input and output, waiting for a client.
  Let a client start it:  loadout connect CLIENT%s
      CLIENT: %s
  Serve over HTTP:        loadout mcp --http 127.0.0.1:8485%s
  Exit:                   Ctrl-C
`, a.formatSummary(rt, s), a.SkillFlags(), strings.Join(clientconfig.Names(), ", "), a.SkillFlags())
	}
	err := shown.Run(ctx, &stdio.Transport{In: a.Stdin, Out: a.Stdout})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err == nil, errors.Is(err, io.EOF), errors.Is(err, os.ErrClosed), errors.Is(err, syscall.EPIPE):
		return nil // the client disconnected
	}
	return err
}

func (a *app) formatSummary(rt *loadout.Runtime, s *mcpserver.Server) string {
	snap := rt.Catalog().Snapshot()
	origins := map[string]int{}
	var order []string
	for _, e := range snap.Skills() {
		if origins[e.Origin] == 0 {
			order = append(order, e.Origin)
		}
		origins[e.Origin]++
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Loadout serves %s%s.", console.Pluralize(len(snap.Skills()), "skill"), formatOrigins(order, origins))
	if snap.Disabled {
		b.WriteString(" Skills are disabled (skills.enabled); see: loadout config show")
	}
	if n := len(snap.Problems()); n > 0 {
		fmt.Fprintf(&b, "\n%s about skills: loadout doctor%s", console.Pluralize(n, "finding"), a.SkillFlags())
	}
	n := 0
	for range s.NotServed() {
		n++
	}
	if n > 0 {
		fmt.Fprintf(&b, "\n%s available through tools only, not as MCP skill resources; for the reasons: loadout doctor%s",
			map[bool]string{true: "1 skill is", false: console.Pluralize(n, "skill") + " are"}[n == 1], a.SkillFlags())
	}
	return b.String()
}

// formatOrigins formats the number of skills per origin, for up to five
// origins.
func formatOrigins(order []string, count map[string]int) string {
	const most = 5
	switch {
	case len(order) == 0:
		return ""
	case len(order) == 1:
		return " from " + order[0]
	}
	var parts []string
	for _, o := range order[:min(len(order), most)] {
		parts = append(parts, fmt.Sprintf("%d from %s", count[o], o))
	}
	if rest := len(order) - most; rest > 0 {
		parts = append(parts, "the others from "+console.Pluralize(rest, "more location"))
	}
	return ": " + strings.Join(parts, ", ")
}

func (a *app) serveHTTP(ctx context.Context, address string, rt *loadout.Runtime, s *mcpserver.Server, shown mcpEndpoint, o *mcpserver.HTTPOptions) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		if oe, ok := errors.AsType[*net.OpError](err); ok {
			err = oe.Err
		}
		return exit.Errorf(exit.Failure, "if it is in use, use another port; --http 127.0.0.1:0 picks a free one", "serve MCP at %s: %w", address, err)
	}
	// Long-lived streams of clients end only with this context.
	requests, drop := context.WithCancel(context.WithoutCancel(ctx))
	defer drop()
	srv := &http.Server{Handler: shown.Handler(o), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return requests }, ErrorLog: a.errorLog()}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(listener) }()
	a.printGreeting("http://"+clientAddress(listener.Addr())+"/mcp", rt, s, o.Token != "")
	select {
	case err := <-ended:
		return fmt.Errorf("serve MCP: %w", err)
	case <-ctx.Done():
	}
	// Requests in progress get a moment to finish; streams do not.
	bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	time.AfterFunc(200*time.Millisecond, drop)
	if err := srv.Shutdown(bye); err != nil {
		srv.Close()
	}
	<-ended
	return context.Cause(ctx)
}

// errorLog returns the logger for broken HTTP connections. It discards messages
// unless --verbose is given.
func (a *app) errorLog() *log.Logger {
	if l := a.Logger(); l != nil {
		return slog.NewLogLogger(l.Handler(), slog.LevelInfo)
	}
	return log.New(io.Discard, "", 0)
}

// clientAddress returns the address that clients connect to. For a listener on
// all interfaces it uses the host name.
func clientAddress(at net.Addr) string {
	tcp, ok := at.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return at.String()
	}
	name, err := os.Hostname()
	if err != nil {
		name = "localhost"
	}
	return net.JoinHostPort(name, strconv.Itoa(tcp.Port))
}

// printGreeting prints the number of served skills and how to connect to url.
func (a *app) printGreeting(url string, rt *loadout.Runtime, s *mcpserver.Server, token bool) {
	snap := rt.Catalog().Snapshot()
	if a.JSON {
		_ = a.PrintJSON(map[string]any{"url": url, "skills": len(snap.Skills()), "problems": len(snap.Problems())})
		return
	}
	fmt.Fprintf(a.Stdout, "%s\n\n", a.formatSummary(rt, s))
	const most = 12
	var rows [][]string
	for _, e := range snap.Skills()[:min(len(snap.Skills()), most)] {
		rows = append(rows, []string{e.Name, e.Description})
	}
	a.PrintTable("  ", rows)
	if n := len(snap.Skills()) - most; n > 0 {
		fmt.Fprintf(a.Stdout, "  … and %d more: loadout list%s\n", n, a.SkillFlags())
	}
	entry := map[string]any{"type": "http", "url": url}
	header := ""
	if token {
		entry["headers"] = map[string]string{"Authorization": "Bearer YOUR-TOKEN"}
		header = " --header 'Authorization: Bearer YOUR-TOKEN'"
	}
	js, err := console.EncodeJSON(map[string]any{"mcpServers": map[string]any{"loadout": entry}})
	if err != nil {
		return
	}
	fmt.Fprintf(a.Stdout, "\nMCP endpoint: %s\n\nFor a client that reads mcpServers:\n\n", a.Bold(url))
	for line := range strings.Lines(string(js)) {
		fmt.Fprintf(a.Stdout, "  %s", line)
	}
	fmt.Fprintf(a.Stdout, "\nClaude Code:  claude mcp add --transport http loadout %s%s\n", url, header)
	if !token { // clients differ in how they store tokens
		fmt.Fprintf(a.Stdout, "Others:       loadout connect CLIENT --url %s\n              (CLIENT is one of %s)\n", url, strings.Join(remoteClients(), ", "))
	}
	fmt.Fprintln(a.Stdout, "\nPress Ctrl-C to exit.")
}

// remoteClients returns the names of clients that can connect to a server by
// URL.
func remoteClients() []string {
	var names []string
	for _, c := range clientconfig.All() {
		if c.Remote {
			names = append(names, c.Name)
		}
	}
	return names
}

// errHangup is returned when the controlling terminal was closed.
var errHangup = fmt.Errorf("terminal closed: %w", context.Canceled)
