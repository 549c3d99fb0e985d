package main

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/serverstate"
	"github.com/loadout-dev/loadout/internal/setup"
	"github.com/loadout-dev/loadout/internal/spawn"
	"github.com/loadout-dev/loadout/internal/terminal"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/tools"
)

// serverInfo describes a server in the output of servers --json.
type serverInfo struct {
	Name      string         `json:"name"`
	Transport string         `json:"transport"`
	State     upstream.State `json:"state"`
	Era       string         `json:"era"`
	Tools     int            `json:"tools"`
	Error     string         `json:"error"`
	LatencyMS float64        `json:"latency_ms"`
	File      string         `json:"file"`
	ListedAt  *time.Time     `json:"listed_at,omitempty"` // when its tools were last listed
	Problem   string         `json:"problem,omitempty"`   // problem with its tools
}

type serversOutput struct {
	Servers  []serverInfo          `json:"servers"`
	Problems []string              `json:"problems"`
	Running  []serverstate.Process `json:"running"` // servers of running processes
}

// serverTool describes a tool in the output of servers test --json.
type serverTool struct {
	Name        string `json:"name"`
	Tool        string `json:"tool"` // name of the tool at its server
	Description string `json:"description"`
}

type serverTest struct {
	serverInfo
	Dir      string       `json:"dir,omitempty"` // working directory of its command
	ToolList []serverTool `json:"tool_list"`
	Stderr   string       `json:"stderr,omitempty"`
}

func (a *app) serversCommand() *cobra.Command {
	var files []string
	var offline bool
	cmd := &cobra.Command{
		Use:   "servers",
		Short: "List MCP servers and test their connections",
		Long: `List your MCP servers, and connect to each one to list its tools. Servers are read from
servers.yaml next to your configuration file, and from the files and directories in the
settings servers.files and servers.dirs, in the format of any client:

  mcpServers:
    files:  {command: npx, args: [-y, "@modelcontextprotocol/server-filesystem", /data]}
    search: {url: "https://mcp.example.com/mcp", headers: {Authorization: "Bearer ${SEARCH_TOKEN}"}}

READY: connected. DEGRADED: does not respond, but its tools are known. DEAD: cannot
connect. NOT_CONFIGURED: a variable has no value. Each server has its own start
timeout: two minutes with npx, uvx and similar programs. Servers of approved skills are
not listed; show one with loadout servers test SKILL_SERVER.`,
		Example: "  loadout servers\n  loadout servers --mcp-config servers.json --json\n  loadout servers test files",
		Args:    argCount(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.listServers(cmd.Context(), files, offline)
		},
	}
	cmd.PersistentFlags().StringArrayVar(&files, "mcp-config", nil, "add the MCP servers in `FILE`, in the format of any client (repeatable)")
	cmd.Flags().BoolVar(&offline, "offline", false, "list the servers and their known tools without connecting")
	cmd.AddCommand(a.loginCommands(&files)...)
	a.profileFlag(cmd.PersistentFlags())
	cmd.AddCommand(&cobra.Command{
		Use:     "test NAME",
		Short:   "Connect to an MCP server and show its tools and errors",
		Example: "  loadout servers test files",
		Args:    argCount(1, 1, "NAME"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.testServer(cmd.Context(), args[0], files) },
	})
	cmd.AddCommand(&cobra.Command{
		Use:   "accept NAME",
		Short: "Accept changed tool definitions of an MCP server",
		Long: `Accept the current tool definitions of an MCP server. A changed description can mislead
a model. Therefore, if a skill provides the server or the server has "pin: strict", tools
whose definition changed are blocked until you accept them. The command fails if an agent
runs it, or if it has no controlling terminal.`,
		Example: "  loadout servers accept files",
		Args:    argCount(1, 1, "NAME"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.acceptServer(cmd.Context(), args[0], files) },
	})
	return cmd
}

func (a *app) acceptServer(ctx context.Context, name string, files []string) error {
	return a.withServers(ctx, files, false, "", func(set *setup.Toolset, _ map[string]string, _ []string) error {
		if err := checkServerExists(set, name); err != nil {
			return err
		}
		args := append([]string{"servers", "accept", name}, a.SkillArgs()...)
		if a.ProfileName != "" {
			args = append(args, "--profile", a.ProfileName)
		}
		for _, f := range files {
			args = append(args, "--mcp-config", f)
		}
		presence, err := a.RequireUser(ctx, "", args...)
		if err != nil {
			return err
		}
		yes, err := a.ConfirmUser(ctx, setup.Confirmation{Question: fmt.Sprintf("Accept the current tools of %s?", plain(name)), Args: args})
		if err == nil && !yes {
			err = exit.Errorf(exit.Refused, "see the tools: loadout servers test "+console.ShellQuote(name), "tools of %s not accepted", name)
		}
		if err != nil {
			return err
		}
		changed, err := set.Accept(ctx, name)
		if err != nil {
			return exit.Errorf(exit.Failure, "test the server: loadout servers test "+name, "accept the tools of %s: %w", name, err)
		}
		if err := a.Record(ctx, policy.Record{Action: "accept", Name: name, Details: map[string]string{"tools": strings.Join(changed, " "), "presence": presence}}); err != nil {
			return err
		}
		if a.JSON {
			return a.PrintJSON(map[string]any{"name": name, "changed": append([]string{}, changed...)})
		}
		for _, s := range set.Servers() {
			if s.Name != name || s.Listing == nil {
				continue
			}
			for _, t := range s.Listing.Tools {
				if slices.Contains(changed, t.Name) {
					fmt.Fprintf(a.Stdout, "%s has a new description:\n  %s\n", a.Bold(plain(t.Name)), plain(strings.Join(strings.Fields(t.Description), " ")))
				}
			}
		}
		fmt.Fprintf(a.Stdout, "Accepted the current tools of %s; %s changed.\n", name, console.Pluralize(len(changed), "tool"))
		return nil
	})
}

// connectAllTimeout is the deadline for connecting to all servers. Usually each
// server's own start timeout expires first.
const connectAllTimeout = time.Hour

// withServers calls fn with the user's servers. If connect is set, it first
// connects to the named server, or to all servers if name is empty.
func (a *app) withServers(ctx context.Context, files []string, connect bool, name string, fn func(set *setup.Toolset, wrong map[string]string, findings []string) error) error {
	c, err := a.LoadConfig(nil)
	if err != nil {
		return err
	}
	p, err := a.FindProfile(a.ProfileName)
	if err != nil {
		return err
	}
	rt, err := a.NewRuntimeWith(ctx, c, false, setup.ProfileSkills(p))
	if err != nil {
		return err
	}
	defer rt.Close()
	a.NoteMissingSkills(ctx, c, p, rt)
	set, findings, err := a.NewToolsetWith(ctx, c, rt, setup.ToolsetOptions{Files: files, Profile: p, Deadline: connectAllTimeout})
	if err != nil {
		return err
	}
	defer set.Close()
	var wrong map[string]string
	if connect {
		done := a.ShowProgress("connecting")
		wrong = set.Connect(ctx, name)
		done()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return fn(set, wrong, findings)
}

func (a *app) listServers(ctx context.Context, files []string, offline bool) error {
	return a.withServers(ctx, files, !offline, "", func(set *setup.Toolset, wrong map[string]string, findings []string) error {
		out := serversOutput{Servers: []serverInfo{}, Problems: append([]string{}, findings...), Running: a.runningProcesses()}
		for _, s := range set.Servers() {
			out.Servers = append(out.Servers, newServerInfo(s, wrong))
		}
		if a.JSON {
			return a.PrintJSON(out)
		}
		if len(out.Servers) == 0 {
			none := "No MCP servers yet. Import those of a client with: loadout import CLIENT\nor write them into a file, see: loadout servers --help"
			if a.ProfileName != "" {
				none = "Profile " + plain(a.ProfileName) + " has no available MCP servers. To list all: loadout servers" + a.SkillFlags()
			}
			fmt.Fprintln(a.Stdout, none)
			a.printRunning(out.Running)
			return nil
		}
		rows := [][]string{{"NAME", "TRANSPORT", "STATE", "ERA", "TOOLS", "LATENCY", "ERROR"}}
		for _, s := range out.Servers {
			rows = append(rows, []string{s.Name, s.Transport, string(s.State), s.Era, strconv.Itoa(s.Tools), formatMilliseconds(s.LatencyMS), plain(cmp.Or(s.Error, s.Problem))})
		}
		a.printServerTable("", rows)
		a.printRunning(out.Running)
		return nil
	})
}

// printServerTable prints rows whose last column is an error. On a terminal, it
// prints the errors below the table.
func (a *app) printServerTable(indent string, rows [][]string) {
	if a.TerminalWidth() == 0 {
		a.PrintTable(indent, rows)
		return
	}
	var b strings.Builder
	short := make([][]string, len(rows))
	for i, r := range rows {
		last := len(r) - 1
		short[i] = r[:last]
		if i > 0 && r[last] != "" {
			fmt.Fprintf(&b, "\n%s%s\n", indent, a.Bold(plain(r[0])))
			a.WriteWrapped(&b, indent+"  ", r[last], console.NoStyle)
		}
	}
	a.PrintTable(indent, short)
	fmt.Fprint(a.Stdout, b.String())
}

// formatMilliseconds formats a latency for users. It returns "" if ms is not
// positive.
func formatMilliseconds(ms float64) string {
	if ms <= 0 {
		return ""
	}
	return strconv.FormatFloat(ms, 'f', 1, 64) + " ms"
}

// newServerInfo describes a server. wrong maps server names to connection
// errors.
func newServerInfo(s tools.Server, wrong map[string]string) serverInfo {
	i := serverInfo{Name: s.Name, Transport: cmp.Or(s.Transport, serverTransport(s.Config)), State: s.State, Era: s.Era, Tools: s.Tools, Error: s.Error, LatencyMS: float64(s.Latency.Microseconds()) / 1000,
		File: s.Config.File, Problem: s.Problem}
	if i.Error == "" && i.Problem == "" {
		i.Error = wrong[s.Name]
	}
	if more := timeoutHint(s.Config, i.Error); more != "" && wrong != nil {
		i.Error += "; " + more
	}
	if s.Listing != nil {
		at := s.Listing.At
		i.ListedAt = &at
		if s.State == upstream.Init {
			i.Tools = len(s.Listing.Tools)
		}
	}
	return i
}

// timeoutHint returns the next step for a server that timed out while it may
// still be installing packages, and "" for any other failure.
func timeoutHint(c *upstream.Config, failure string) string {
	if !strings.Contains(failure, "no connection within ") || !spawn.MayInstall(c) {
		return ""
	}
	return "its package may still be installing: try again, or raise servers.deadline or its connectTimeout"
}

// serverTransport returns the transport that a server's configuration selects.
func serverTransport(c *upstream.Config) string {
	switch {
	case c.Type != "":
		return c.Type
	case c.Command != "":
		return upstream.Stdio
	}
	return upstream.HTTP
}

func (a *app) testServer(ctx context.Context, name string, files []string) error {
	return a.withServers(ctx, files, true, name, func(set *setup.Toolset, wrong map[string]string, _ []string) error {
		if err := checkServerExists(set, name); err != nil {
			return err
		}
		all := set.Servers()
		s := all[slices.IndexFunc(all, func(s tools.Server) bool { return s.Name == name })]
		t := serverTest{serverInfo: newServerInfo(s, wrong), ToolList: []serverTool{}, Stderr: s.Stderr}
		if r := set.ResolvedConfig(s.Name); r != nil && r.Command != "" && r.Owner == "" {
			t.Dir = cmp.Or(r.Dir, ".")
			if abs, err := filepath.Abs(t.Dir); err == nil {
				t.Dir = abs
			}
		}
		if s.Listing != nil {
			for _, d := range s.Listing.Tools {
				if slices.Contains(s.Quarantined, d.Name) {
					continue
				}
				t.ToolList = append(t.ToolList, serverTool{upstream.ToolName(s.Name, d.Name), d.Name, plain(d.Description)})
			}
		}
		if a.JSON {
			if err := a.PrintJSON(t); err != nil {
				return err
			}
		} else {
			a.printServer(t)
		}
		if s.State != upstream.Ready || s.Problem != "" {
			return exit.Reported
		}
		return nil
	})
}

// maxToolWidth is the maximum width of a displayed tool description, in
// columns.
const maxToolWidth = 100

// checkServerExists returns an error if there is no server with the given name.
func checkServerExists(set *setup.Toolset, name string) error {
	var names []string
	for _, s := range set.Servers() {
		if s.Name == name {
			return nil
		}
		names = append(names, s.Name)
	}
	hint := "list the servers: loadout servers"
	if len(names) > 0 {
		hint = "known servers: " + strings.Join(names, ", ")
	}
	return exit.Errorf(exit.NotFound, hint, "MCP server %q not found", name)
}

func (a *app) printServer(t serverTest) {
	fmt.Fprintf(a.Stdout, "%s is %s", a.Bold(t.Name), t.State)
	if t.Era != "" {
		fmt.Fprintf(a.Stdout, ", over %s, %s protocol era", t.Transport, t.Era)
	}
	fmt.Fprintf(a.Stdout, ", with %s.\n", console.Pluralize(len(t.ToolList), "tool"))
	for _, text := range []string{t.Error, t.Problem} {
		if text != "" {
			fmt.Fprintln(a.Stdout, plain(text))
		}
	}
	if t.Dir != "" {
		fmt.Fprintf(a.Stdout, "Working directory: %s\n", plain(t.Dir))
	}
	var rows [][]string
	for _, tool := range t.ToolList { // --json has the full descriptions
		rows = append(rows, []string{tool.Name, terminal.Clip(describe(tool.Description), maxToolWidth)})
	}
	a.PrintTable("  ", rows)
	if t.Stderr != "" && (a.Verbose || t.State != upstream.Ready) {
		fmt.Fprintf(a.Stdout, "\nStandard error:\n%s\n", plain(t.Stderr))
	}
}
