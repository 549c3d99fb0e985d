package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/mcpserver"
)

func (a *app) mcpCommand() *cobra.Command {
	var address, compat, token string
	var budget int
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Serve the skills to an MCP client",
		Long: `Serve the skills over the Model Context Protocol: on standard input and output,
as clients start it, or over HTTP with --http. Both eras of the protocol and the
Skills extension (SEP-2640) are spoken on one endpoint.`,
		Example: `  loadout connect claude-code                 write a client's configuration
  loadout mcp --http 127.0.0.1:8485           serve over HTTP at /mcp
  loadout mcp --skills ./skills
  loadout mcp --http 0.0.0.0:8485 --token-file token`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
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
			return a.mcp(cmd.Context(), c)
		},
	}
	f := cmd.Flags()
	f.StringVar(&address, "http", "", "serve over HTTP at `ADDR`, as 127.0.0.1:8485")
	f.StringVar(&token, "token-file", "", "`FILE` with the token that clients must send; needed for other than loopback addresses")
	f.StringVar(&compat, "compat", "", "serve the tools of an earlier system: "+compatNames())
	f.IntVar(&budget, "text-budget", 0, "characters of skill descriptions told to a client at the start")
	return cmd
}

func (a *app) mcp(ctx context.Context, c *config.Config) error {
	tuneMemory(a.getenv)
	httpOptions, remote, err := httpOptions(c)
	if err != nil {
		return err
	}
	rt, err := a.runtime(ctx, c, true)
	if err != nil {
		return err
	}
	defer rt.Close()
	s := mcpserver.New(rt, &mcpserver.Options{TextBudget: c.MCP.TextBudget, Compat: c.MCP.Compat, Remote: remote,
		Version: buildVersion().Version, Logger: a.logger()})
	defer s.Close()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	reloading := a.reloadOnHangup(ctx, rt)
	defer func() { stop(); <-reloading }()
	if c.MCP.Address != "" {
		return a.serveHTTP(ctx, c.MCP.Address, rt, s, httpOptions)
	}
	return a.serveStdio(ctx, rt, s)
}

// tuneMemory lets garbage collection run less often than by default: a request
// allocates much and keeps nothing. The limit keeps that from adding up.
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
		return nil, false, fail(exitUsage, "give an address as 127.0.0.1:8485", "serve MCP at %q: %w", c.MCP.Address, err)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return nil, false, fail(exitUsage, "give an address as 127.0.0.1:8485", "serve MCP at %q: %s is no port", c.MCP.Address, port)
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
	b, err := os.ReadFile(file)
	if err != nil {
		return "", fail(exitNotFound, "write a long random token into it", "read token file %s: %w", file, reason(err))
	}
	token := strings.TrimSpace(string(b))
	if len(token) < 16 || strings.ContainsAny(token, " \t\r\n") {
		return "", fail(exitUsage, "write one line of at least 16 characters into it", "token file %s: it holds no usable token", file)
	}
	return token, nil
}

// reloadOnHangup reads all sources again on SIGHUP until ctx ends; the channel
// it returns is closed then.
func (a *app) reloadOnHangup(ctx context.Context, rt *loadout.Runtime) <-chan struct{} {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer signal.Stop(hup)
		if err := rt.Catalog().Warm(ctx); err != nil {
			return // ctx ended
		}
		for {
			select {
			case <-ctx.Done():
				return
			case <-hup:
				if err := rt.Catalog().Reload(ctx); err == nil {
					a.note("read %d skills again", len(rt.Catalog().Snapshot().Skills()))
				}
			}
		}
	}()
	return done
}

func (a *app) serveStdio(ctx context.Context, rt *loadout.Runtime, s *mcpserver.Server) error {
	if isTerminal(a.stdin) {
		fmt.Fprintf(a.stderr, "%s\nThis is an MCP server on standard input and output: it waits for a client.\n"+
			"To let a client start it:   loadout connect claude-code (or claude-desktop, cursor, vscode, codex, gemini)\n"+
			"To serve over HTTP:         loadout mcp --http 127.0.0.1:8485\n"+
			"To end it:                  Ctrl-C\n", a.summary(rt, s))
	}
	// Closing standard input is how the loop that reads it ends on a signal.
	in, out := a.stdin, a.stdout
	transport := &mcp.IOTransport{Reader: readCloser(in), Writer: writeCloser(out)}
	err := s.Run(ctx, transport)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil && isHangup(err) {
		return nil
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
	fmt.Fprintf(&b, "Loadout serves %d skills", len(snap.Skills()))
	for i, o := range order {
		sep := ": "
		if i > 0 {
			sep = ", "
		}
		fmt.Fprintf(&b, "%s%d from %s", sep, origins[o], o)
	}
	b.WriteString(".")
	if snap.Disabled {
		b.WriteString(" Skills are switched off (skills.enabled).")
	}
	if n := len(snap.Problems()); n > 0 {
		fmt.Fprintf(&b, "\n%d findings about skills: loadout doctor shows them.", n)
	}
	if n := len(s.Unserved()); n > 0 {
		fmt.Fprintf(&b, "\n%d skills are served by the tools only, not as MCP skill resources: loadout doctor says why.", n)
	}
	return b.String()
}

func (a *app) serveHTTP(ctx context.Context, address string, rt *loadout.Runtime, s *mcpserver.Server, o *mcpserver.HTTPOptions) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fail(exitFound, "is it in use? try another port, as --http 127.0.0.1:0 for any", "serve MCP: %w", err)
	}
	url := "http://" + listener.Addr().String() + "/mcp"
	a.greet(url, rt, s, o.Token != "")
	srv := &http.Server{Handler: s.Handler(o), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(listener) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve MCP: %w", err)
	case <-ctx.Done():
	}
	// Streams that clients hold open never end by themselves.
	bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if err := srv.Shutdown(bye); err != nil {
		srv.Close()
	}
	<-ended
	return context.Cause(ctx)
}

// greet says what is served and how to connect.
func (a *app) greet(url string, rt *loadout.Runtime, s *mcpserver.Server, token bool) {
	if a.json {
		_ = a.printJSON(map[string]any{"url": url, "skills": len(rt.Catalog().Snapshot().Skills()), "problems": len(rt.Catalog().Snapshot().Problems())})
		return
	}
	fmt.Fprintf(a.stdout, "%s\n\n", a.summary(rt, s))
	const most = 12
	skills := rt.Catalog().Snapshot().Skills()
	var rows [][]string
	for _, e := range skills[:min(len(skills), most)] {
		rows = append(rows, []string{"  " + e.Name, e.Description})
	}
	a.table(rows)
	if n := len(skills) - most; n > 0 {
		fmt.Fprintf(a.stdout, "  … and %d more: loadout list\n", n)
	}
	entry := map[string]any{"type": "http", "url": url}
	if token {
		entry["headers"] = map[string]string{"Authorization": "Bearer <your token>"}
	}
	js, err := json.MarshalIndent(map[string]any{"mcpServers": map[string]any{"loadout": entry}}, "  ", "  ")
	if err != nil {
		return
	}
	fmt.Fprintf(a.stdout, "\nMCP endpoint: %s\n\nFor a client that reads mcpServers:\n\n  %s\n\nClaude Code:  claude mcp add --transport http loadout %s\nOthers:       loadout connect cursor|vscode|codex|gemini --url %s\n\nCtrl-C ends it.\n",
		a.bold(url), js, url, url)
}

func isHangup(err error) bool {
	return errors.Is(err, os.ErrClosed) || errors.Is(err, syscall.EPIPE) || strings.Contains(err.Error(), "EOF") || strings.Contains(err.Error(), "closing")
}
