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
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/client"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/mcpserver"
)

func (a *app) mcpCommand() *cobra.Command {
	var address, compat, token string
	var budget int
	var stdio bool
	var o mcpFlags
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Serve the skills to an MCP client",
		Long: `Serve the skills over the Model Context Protocol: on standard input and output,
as clients start it, or over HTTP with --http. Both eras of the protocol and the
Skills extension (SEP-2640) are spoken on one endpoint. Changed skills are noticed
while it runs; SIGHUP reads them all again.`,
		Example: `  loadout connect claude-code                 write a client's configuration
  loadout mcp --http 127.0.0.1:8485           serve over HTTP at /mcp
  loadout mcp --skills ./skills
  loadout mcp --http 0.0.0.0:8485 --token-file token`,
		Args: want(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := exclusive(cmd, "http", "stdio"); err != nil {
				return err
			}
			flags := map[string]string{}
			for name, key := range map[string]string{"http": "mcp.address", "compat": "mcp.compat", "token-file": "mcp.token_file", "text-budget": "mcp.text_budget"} {
				if f := cmd.Flags().Lookup(name); f.Changed {
					flags[key] = f.Value.String()
				}
			}
			c, err := a.settings(flags)
			if err != nil {
				return err
			}
			if stdio {
				c.MCP.Address = ""
			}
			if c.MCP.Address == "" && cmd.Flags().Changed("token-file") {
				return fail(exitUsage, "give --http ADDR too, or leave it out", "--token-file is for clients over HTTP")
			}
			o.exposed = cmd.Flags().Changed("expose")
			return a.mcp(cmd.Context(), c, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&address, "http", "", "serve over HTTP at `ADDR`, as 127.0.0.1:8485")
	f.BoolVar(&stdio, "stdio", false, "serve on standard input and output, also where mcp.address is set")
	f.StringVar(&token, "token-file", "", "`FILE` with the token clients must send; needed beyond loopback addresses")
	f.StringVar(&compat, "compat", "", "serve the tools of an earlier system: "+compatNames())
	f.StringVar(&o.workspace, "workspace", "", "let scripts read `DIR` as /workspace, and take inputs from there")
	f.StringArrayVar(&o.files, "mcp-config", nil, "also reach the MCP servers in `FILE`, of any client's form (repeatable)")
	f.StringVar(&o.profile, "profile", "", "serve the skills and MCP servers of the profile `NAME`")
	f.StringVar(&o.expose, "expose", "meta", "show tools of MCP servers `HOW`: meta or direct")
	f.StringVar(&o.prefix, "prefix", "server", "put `WHAT` before names shown directly: server or none")
	f.BoolVar(&o.grow, "grow", false, "list the tools of a loaded skill too, for clients before 2026-07-28")
	f.IntVar(&budget, "text-budget", 0, "tell a client `N` characters of descriptions at the start; default 2000")
	complete(cmd, "compat", mcpserver.Compats()...)
	complete(cmd, "expose", "meta", "direct")
	complete(cmd, "prefix", "server", "none")
	return cmd
}

// mcpFlags are the flags of loadout mcp that are no settings.
type mcpFlags struct {
	workspace               string
	files                   []string
	profile, expose, prefix string
	exposed                 bool // expose was said
	grow                    bool
}

func (o *mcpFlags) check() error {
	for _, f := range []struct {
		name, value string
		of          []string
	}{{"--expose", o.expose, []string{"meta", "direct"}}, {"--prefix", o.prefix, []string{"server", "none"}}} {
		if !slices.Contains(f.of, f.value) {
			return fail(exitUsage, "it is one of "+strings.Join(f.of, ", "), "%s %q is unknown", f.name, f.value)
		}
	}
	return nil
}

// checkGrow refuses what leaves a list of tools nothing to grow by.
func (o *mcpFlags) checkGrow(c *config.Config) error {
	switch {
	case !o.grow:
	case c.MCP.Compat != "":
		return fail(exitUsage, "leave one of them out; mcp.compat counts as --compat", "--grow has no effect with --compat %s: that system has no tools of skills", c.MCP.Compat)
	case o.expose == "direct":
		return fail(exitUsage, "leave one of them out, or add --expose meta where the profile says direct", "--grow has no effect with --expose direct: tools are listed as they are")
	}
	return nil
}

func (a *app) mcp(ctx context.Context, c *config.Config, o mcpFlags) error {
	if err := o.check(); err != nil {
		return err
	}
	tuneMemory(a.getenv)
	httpOptions, remote, err := httpOptions(c)
	if err != nil {
		return err
	}
	workspace, err := workspaceDir(o.workspace)
	if err != nil {
		return err
	}
	p, err := a.profile(o.profile)
	if err != nil {
		return err
	}
	if p != nil && p.Expose == "direct" && !o.exposed {
		o.expose = p.Expose
	}
	if err := o.checkGrow(c); err != nil {
		return err
	}
	rt, err := a.runtimeOf(ctx, c, true, chosen(p))
	if err != nil {
		return err
	}
	defer rt.Close()
	a.noteAbsent(ctx, c, p, rt)
	if workspace != "" && rt.RunsScripts() {
		if err := rt.CheckWorkspace(workspace); err != nil {
			return err
		}
	}
	set, _, err := a.toolset(ctx, c, rt, o.files, p)
	if err != nil {
		return err
	}
	defer set.Close()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	follow := a.newFollower(rt, c, set, p)
	defer follow.start(ctx)()
	options := mcpserver.Options{Lead: lead(p), TextBudget: c.MCP.TextBudget, Compat: c.MCP.Compat, Remote: remote, Workspace: workspace, Tools: set.Set,
		Flags: a.flags(), Refresh: follow.refresh, Used: a.usedSkills(c, faceMCP), Version: buildVersion().Version, Logger: a.logger()}
	own := options // profiles at paths of their own list tools as they are
	own.Grow = o.grow
	s := mcpserver.New(rt, &own)
	defer s.Close()
	var shown exposed = s
	if o.expose == "direct" {
		d := a.exposeDirect(c, s, set, o.prefix)
		defer d.Close()
		shown = d
	}
	published := a.publish(set)
	defer published.close()
	shown = published.of(shown)
	reloading := a.reloadOnHangup(ctx, rt, func() { stop(errHangup) })
	defer func() { stop(nil); <-reloading }()
	if c.MCP.Address != "" {
		others := &profiles{a: a, c: c, options: options, http: httpOptions, files: o.files, ctx: ctx, published: published, served: map[string]*servedProfile{}}
		defer others.Close()
		httpOptions.Mount = map[string]http.Handler{profilePath: others}
		return a.serveHTTP(ctx, c.MCP.Address, rt, s, shown, httpOptions)
	}
	return a.serveStdio(ctx, rt, s, shown)
}

// tuneMemory lets garbage collection run less often than by default: a request
// allocates much, as the SDK takes 32 KiB for each thing it decodes, and keeps
// nothing. Against 100 per cent, sixteen callers get 1.3 to 1.7 times as many calls
// through, for 11 to 14 MB more while they do. The limit keeps that from adding up.
func tuneMemory(getenv func(string) string) {
	if getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	if getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(512 << 20)
	}
}

// httpOptions checks the address before anything is started.
func httpOptions(c *config.Config) (o *mcpserver.HTTPOptions, remote bool, err error) {
	o = &mcpserver.HTTPOptions{}
	if c.MCP.Address == "" {
		return o, false, nil
	}
	host, port, err := net.SplitHostPort(c.MCP.Address)
	if err != nil {
		if ae, ok := errors.AsType[*net.AddrError](err); ok {
			err = errors.New(ae.Err)
		}
		return nil, false, fail(exitUsage, "give an address as 127.0.0.1:8485", "serve MCP at %q: %w", c.MCP.Address, err)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return nil, false, fail(exitUsage, "give an address as 127.0.0.1:8485", "serve MCP at %q: %q is not a port", c.MCP.Address, port)
	}
	if c.MCP.TokenFile != "" {
		if o.Token, err = readToken(c.MCP.TokenFile); err != nil {
			return nil, false, err
		}
	}
	remote = !mcpserver.IsLoopback(host)
	if remote && o.Token == "" {
		return nil, false, fail(exitRefused, "give --token-file FILE, or a loopback address as 127.0.0.1:"+port,
			"serve MCP at %s: others could reach it, and it has no credentials", c.MCP.Address)
	}
	return o, remote, nil
}

func readToken(file string) (string, error) {
	const hint = "write a long random token into it: openssl rand -hex 32 > "
	b, err := readSmall(file, 64<<10)
	if err != nil {
		code, _ := missing(err, "")
		return "", fail(code, hint+quoted(file), "token file %s: %w", file, reason(err))
	}
	token := strings.TrimSpace(string(b))
	if len(token) < 16 || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return "", fail(exitUsage, hint+quoted(file), "token file %s: it is not one line of at least 16 plain characters", file)
	}
	return token, nil
}

// readSmall reads a regular file of bounded size; a pipe or a device could
// wait or go on for ever.
func readSmall(file string, most int64) ([]byte, error) {
	fi, err := os.Stat(file)
	switch {
	case err != nil:
		return nil, err
	case fi.IsDir():
		return nil, errors.New("it is a directory")
	case !fi.Mode().IsRegular():
		return nil, errors.New("it is not a regular file")
	case fi.Size() > most:
		return nil, fmt.Errorf("it has more than %d bytes", most)
	}
	return os.ReadFile(file)
}

// reloadOnHangup reads all sources again on SIGHUP until ctx ends; the channel
// it returns is closed then. The hang-up of the terminal it runs on ends the
// program, by stop.
func (a *app) reloadOnHangup(ctx context.Context, rt *loadout.Runtime, stop func()) <-chan struct{} {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	done := make(chan struct{})
	terminals := a.terminals()
	go func() {
		defer close(done)
		defer signal.Stop(hup)
		if err := rt.Catalog().Warm(ctx); err != nil {
			return // ctx ended
		}
		debug.FreeOSMemory() // what reading and indexing took is not needed again
		for {
			select {
			case <-ctx.Done():
				return
			case <-hup:
				if a.terminals() < terminals {
					stop()
					return
				}
				if err := rt.Catalog().Reload(ctx); err == nil {
					a.note("read %s again", counted(len(rt.Catalog().Snapshot().Skills()), "skill"))
				}
			}
		}
	}()
	return done
}

// terminals counts the streams that are terminals now.
func (a *app) terminals() int {
	n := 0
	for _, f := range []any{a.stdin, a.stdout, a.stderr} {
		if isTerminal(f) {
			n++
		}
	}
	return n
}

func (a *app) serveStdio(ctx context.Context, rt *loadout.Runtime, s *mcpserver.Server, shown exposed) error {
	if isTerminal(a.stdin) {
		fmt.Fprintf(a.stderr, `%s

This is an MCP server on standard input and output: it waits for a client.
  To let a client start it:  loadout connect CLIENT%s
      CLIENT: %s
  To serve over HTTP:        loadout mcp --http 127.0.0.1:8485%s
  To end it:                 Ctrl-C
`, a.summary(rt, s), a.flags(), strings.Join(client.Names(), ", "), a.flags())
	}
	err := shown.Run(ctx, &lines{in: a.stdin, out: a.stdout})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err == nil, errors.Is(err, io.EOF), errors.Is(err, os.ErrClosed), errors.Is(err, syscall.EPIPE):
		return nil // the client has gone
	}
	return err
}

func (a *app) summary(rt *loadout.Runtime, s *mcpserver.Server) string {
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
	fmt.Fprintf(&b, "Loadout serves %s%s.", counted(len(snap.Skills()), "skill"), fromWhere(order, origins))
	if snap.Disabled {
		b.WriteString(" Skills are switched off (skills.enabled); see: loadout config show")
	}
	if n := len(snap.Problems()); n > 0 {
		fmt.Fprintf(&b, "\n%s about skills: loadout doctor%s", counted(n, "finding"), a.flags())
	}
	if n := len(s.Unserved()); n > 0 {
		fmt.Fprintf(&b, "\n%s served by the tools only, not as MCP skill resources; for the reasons: loadout doctor%s",
			map[bool]string{true: "1 skill is", false: counted(n, "skill") + " are"}[n == 1], a.flags())
	}
	return b.String()
}

// fromWhere says how many skills come from which origin.
func fromWhere(order []string, count map[string]int) string {
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
		parts = append(parts, "the others from "+counted(rest, "more place"))
	}
	return ": " + strings.Join(parts, ", ")
}

func (a *app) serveHTTP(ctx context.Context, address string, rt *loadout.Runtime, s *mcpserver.Server, shown exposed, o *mcpserver.HTTPOptions) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		if oe, ok := errors.AsType[*net.OpError](err); ok {
			err = oe.Err
		}
		return fail(exitFound, "if it is in use, take another port; --http 127.0.0.1:0 takes any", "serve MCP at %s: %w", address, err)
	}
	// Streams that clients hold open end with this context only.
	requests, drop := context.WithCancel(context.WithoutCancel(ctx))
	defer drop()
	srv := &http.Server{Handler: shown.Handler(o), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return requests }, ErrorLog: a.errorLog()}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(listener) }()
	a.greet("http://"+reachable(listener.Addr())+"/mcp", rt, s, o.Token != "")
	select {
	case err := <-ended:
		return fmt.Errorf("serve MCP: %w", err)
	case <-ctx.Done():
	}
	// What is being answered gets a moment to end, streams do not.
	bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	time.AfterFunc(200*time.Millisecond, drop)
	if err := srv.Shutdown(bye); err != nil {
		srv.Close()
	}
	<-ended
	return context.Cause(ctx)
}

// errorLog is where an HTTP server tells of broken connections: nowhere,
// unless more was asked for.
func (a *app) errorLog() *log.Logger {
	if l := a.logger(); l != nil {
		return slog.NewLogLogger(l.Handler(), slog.LevelInfo)
	}
	return log.New(io.Discard, "", 0)
}

// reachable is an address as clients write it: a server at all addresses of
// this machine is reached by its name.
func reachable(at net.Addr) string {
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

// greet says what is served and how to connect.
func (a *app) greet(url string, rt *loadout.Runtime, s *mcpserver.Server, token bool) {
	snap := rt.Catalog().Snapshot()
	if a.json {
		_ = a.printJSON(map[string]any{"url": url, "skills": len(snap.Skills()), "problems": len(snap.Problems())})
		return
	}
	fmt.Fprintf(a.stdout, "%s\n\n", a.summary(rt, s))
	const most = 12
	var rows [][]string
	for _, e := range snap.Skills()[:min(len(snap.Skills()), most)] {
		rows = append(rows, []string{e.Name, e.Description})
	}
	a.table("  ", rows)
	if n := len(snap.Skills()) - most; n > 0 {
		fmt.Fprintf(a.stdout, "  … and %d more: loadout list%s\n", n, a.flags())
	}
	entry := map[string]any{"type": "http", "url": url}
	header := ""
	if token {
		entry["headers"] = map[string]string{"Authorization": "Bearer YOUR-TOKEN"}
		header = " --header 'Authorization: Bearer YOUR-TOKEN'"
	}
	js, err := encodeJSON(map[string]any{"mcpServers": map[string]any{"loadout": entry}})
	if err != nil {
		return
	}
	fmt.Fprintf(a.stdout, "\nMCP endpoint: %s\n\nFor a client that reads mcpServers:\n\n", a.bold(url))
	for line := range strings.Lines(string(js)) {
		fmt.Fprintf(a.stdout, "  %s", line)
	}
	fmt.Fprintf(a.stdout, "\nClaude Code:  claude mcp add --transport http loadout %s%s\n", url, header)
	if !token { // the other clients keep a token each in a way of its own
		fmt.Fprintf(a.stdout, "Others:       loadout connect CLIENT --url %s\n              (CLIENT is one of %s)\n", url, strings.Join(remoteClients(), ", "))
	}
	fmt.Fprintln(a.stdout, "\nCtrl-C ends it.")
}

// remoteClients are the clients whose configuration can name a server by URL.
func remoteClients() []string {
	var names []string
	for _, c := range client.All() {
		if c.Remote {
			names = append(names, c.Name)
		}
	}
	return names
}

// errHangup says that the terminal this runs on has gone.
var errHangup = fmt.Errorf("the terminal has gone: %w", context.Canceled)
