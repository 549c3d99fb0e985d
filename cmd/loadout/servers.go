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

	"github.com/loadout-dev/loadout/internal/running"
	"github.com/loadout-dev/loadout/skill"
	"github.com/loadout-dev/loadout/tools"
	"github.com/loadout-dev/loadout/upstream"
)

// serverInfo is a server in servers --json.
type serverInfo struct {
	Name      string         `json:"name"`
	Transport string         `json:"transport"`
	State     upstream.State `json:"state"`
	Era       string         `json:"era"`
	Tools     int            `json:"tools"`
	Error     string         `json:"error"`
	LatencyMS float64        `json:"latency_ms"`
	File      string         `json:"file"`
	ListedAt  *time.Time     `json:"listed_at,omitempty"` // when its tools were last read
	Problem   string         `json:"problem,omitempty"`   // what is wrong with its tools
}

type serversOutput struct {
	Servers  []serverInfo      `json:"servers"`
	Problems []string          `json:"problems"`
	Running  []running.Process `json:"running"` // what long-running processes have
}

// serverTool is a tool in servers test --json.
type serverTool struct {
	Name        string `json:"name"`
	Tool        string `json:"tool"` // as its server calls it
	Description string `json:"description"`
}

type serverTest struct {
	serverInfo
	Dir      string       `json:"dir,omitempty"` // that its command starts in
	ToolList []serverTool `json:"tool_list"`
	Stderr   string       `json:"stderr,omitempty"`
}

func (a *app) serversCommand() *cobra.Command {
	var files []string
	var offline bool
	cmd := &cobra.Command{
		Use:   "servers",
		Short: "Show the MCP servers, and whether they work",
		Long: `Show the MCP servers that you configured: each is connected and asked for its
tools. They are read from servers.yaml beside your configuration, and from the files
and directories of servers.files and servers.dirs, in the form of any client:

  mcpServers:
    files:  {command: npx, args: [-y, "@modelcontextprotocol/server-filesystem", /data]}
    search: {url: "https://mcp.example.com/mcp", headers: {Authorization: "Bearer ${SEARCH_TOKEN}"}}

READY is connected; DEGRADED does not answer, but its tools are known; DEAD could
not be connected; NOT_CONFIGURED lacks the value of a variable. Each has the time
that its start may take, which is two minutes for npx, uvx and the like. Servers of
skills that you approved are not listed: loadout servers test SKILL_SERVER shows one.`,
		Example: "  loadout servers\n  loadout servers --mcp-config servers.json --json\n  loadout servers test files",
		Args:    want(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.listServers(cmd.Context(), files, offline)
		},
	}
	cmd.PersistentFlags().StringArrayVar(&files, "mcp-config", nil, "also the MCP servers in `FILE`, of any client's form (repeatable)")
	cmd.Flags().BoolVar(&offline, "offline", false, "connect nothing; show what is known")
	cmd.AddCommand(a.loginCommands(&files)...)
	a.profileFlag(cmd.PersistentFlags())
	cmd.AddCommand(&cobra.Command{
		Use:     "test NAME",
		Short:   "Connect to one MCP server, and show its tools and what it says",
		Example: "  loadout servers test files",
		Args:    want(1, 1, "NAME"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.serversTest(cmd.Context(), args[0], files) },
	})
	cmd.AddCommand(&cobra.Command{
		Use:   "accept NAME",
		Short: "Accept the tools of an MCP server as they are defined now",
		Long: `Accept the tools of an MCP server as they are defined now. Tools that a server
defines otherwise than when they were first seen are held back where a skill brings
the server or it is marked pin: strict: a description that changes can mislead a
model.`,
		Example: "  loadout servers accept files",
		Args:    want(1, 1, "NAME"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.serversAccept(cmd.Context(), args[0], files) },
	})
	return cmd
}

func (a *app) serversAccept(ctx context.Context, name string, files []string) error {
	return a.withServers(ctx, files, false, "", func(set *toolset, _ map[string]string, _ []string) error {
		if err := known(set, name); err != nil {
			return err
		}
		changed, err := set.Accept(ctx, name)
		if err != nil {
			return fail(exitFound, "see what is wrong with it: loadout servers test "+name, "accept the tools of %s: %w", name, err)
		}
		if a.json {
			return a.printJSON(map[string]any{"name": name, "changed": append([]string{}, changed...)})
		}
		for _, s := range set.Servers() {
			if s.Name != name || s.Known == nil {
				continue
			}
			for _, t := range s.Known.Tools {
				if slices.Contains(changed, t.Name) {
					fmt.Fprintf(a.stdout, "%s now says of itself:\n  %s\n", a.bold(plain(t.Name)), plain(strings.Join(strings.Fields(t.Description), " ")))
				}
			}
		}
		fmt.Fprintf(a.stdout, "Accepted the tools of %s as they are now; %s had changed.\n", name, counted(len(changed), "tool"))
		return nil
	})
}

// withServers does something with the person's servers, of which it first
// connects the one of a name, or all for "".
func (a *app) withServers(ctx context.Context, files []string, connect bool, name string, do func(set *toolset, wrong map[string]string, findings []string) error) error {
	c, err := a.settings(nil)
	if err != nil {
		return err
	}
	p, err := a.profile(a.ghost)
	if err != nil {
		return err
	}
	rt, err := a.runtimeOf(ctx, c, false, chosen(p))
	if err != nil {
		return err
	}
	defer rt.Close()
	a.noteAbsent(ctx, c, p, rt)
	set, findings, err := a.toolsetOf(ctx, c, rt, toolsetOptions{files: files, profile: p, deadline: untilTried})
	if err != nil {
		return err
	}
	defer set.Close()
	var wrong map[string]string
	if connect {
		done := a.progress("connecting")
		wrong = set.Connect(ctx, name)
		done()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return do(set, wrong, findings)
}

func (a *app) listServers(ctx context.Context, files []string, offline bool) error {
	return a.withServers(ctx, files, !offline, "", func(set *toolset, wrong map[string]string, findings []string) error {
		out := serversOutput{Servers: []serverInfo{}, Problems: append([]string{}, findings...), Running: a.runningNow()}
		for _, s := range set.Servers() {
			out.Servers = append(out.Servers, infoOf(s, wrong))
		}
		if a.json {
			return a.printJSON(out)
		}
		if len(out.Servers) == 0 {
			none := "There are no MCP servers. Adopt those of a client with: loadout import CLIENT\nor write them into a file, see: loadout servers --help"
			if a.ghost != "" {
				none = "Profile " + plain(a.ghost) + " has no MCP servers that are here. To see all of yours: loadout servers" + a.flags()
			}
			fmt.Fprintln(a.stdout, none)
			a.showRunning(out.Running)
			return nil
		}
		rows := [][]string{{"NAME", "TRANSPORT", "STATE", "ERA", "TOOLS", "LATENCY", "ERROR"}}
		for _, s := range out.Servers {
			rows = append(rows, []string{s.Name, s.Transport, string(s.State), s.Era, strconv.Itoa(s.Tools), milliseconds(s.LatencyMS), skill.OneLine(cmp.Or(s.Error, s.Problem))})
		}
		a.serverTable("", rows)
		a.showRunning(out.Running)
		return nil
	})
}

// serverTable prints rows that end in what is wrong. A terminal has no room for
// that in a column: it stands below.
func (a *app) serverTable(indent string, rows [][]string) {
	if a.width() == 0 {
		a.table(indent, rows)
		return
	}
	var b strings.Builder
	short := make([][]string, len(rows))
	for i, r := range rows {
		last := len(r) - 1
		short[i] = r[:last]
		if i > 0 && r[last] != "" {
			fmt.Fprintf(&b, "\n%s%s\n", indent, a.bold(plain(r[0])))
			a.wrap(&b, indent+"  ", r[last], same)
		}
	}
	a.table(indent, short)
	fmt.Fprint(a.stdout, b.String())
}

// milliseconds is a latency for people, "" where there is none.
func milliseconds(ms float64) string {
	if ms <= 0 {
		return ""
	}
	return strconv.FormatFloat(ms, 'f', 1, 64) + " ms"
}

// infoOf tells of a server, of which connecting said what is wrong.
func infoOf(s tools.Server, wrong map[string]string) serverInfo {
	i := serverInfo{Name: s.Name, Transport: cmp.Or(s.Transport, transportOf(s.Config)), State: s.State, Era: s.Era, Tools: s.Tools, Error: s.Error, LatencyMS: float64(s.Latency.Microseconds()) / 1000,
		File: s.Config.File, Problem: s.Problem}
	if i.Error == "" && i.Problem == "" {
		i.Error = wrong[s.Name]
	}
	if more := moreTime(s.Config, i.Error); more != "" && wrong != nil {
		i.Error += "; " + more
	}
	if s.Known != nil {
		at := s.Known.At
		i.ListedAt = &at
		if s.State == upstream.Init {
			i.Tools = len(s.Known.Tools)
		}
	}
	return i
}

// transportOf is how a server will be reached, as far as its configuration says.
func transportOf(c *upstream.Config) string {
	switch {
	case c.Type != "":
		return c.Type
	case c.Command != "":
		return upstream.Stdio
	}
	return upstream.HTTP
}

func (a *app) serversTest(ctx context.Context, name string, files []string) error {
	return a.withServers(ctx, files, true, name, func(set *toolset, wrong map[string]string, _ []string) error {
		if err := known(set, name); err != nil {
			return err
		}
		all := set.Servers()
		s := all[slices.IndexFunc(all, func(s tools.Server) bool { return s.Name == name })]
		t := serverTest{serverInfo: infoOf(s, wrong), ToolList: []serverTool{}, Stderr: s.Stderr}
		if r := set.Resolved(s.Name); r != nil && r.Command != "" && r.Owner == "" {
			t.Dir = cmp.Or(r.Dir, ".")
			if abs, err := filepath.Abs(t.Dir); err == nil {
				t.Dir = abs
			}
		}
		if s.Known != nil {
			for _, d := range s.Known.Tools {
				if slices.Contains(s.Held, d.Name) {
					continue
				}
				t.ToolList = append(t.ToolList, serverTool{upstream.ToolName(s.Name, d.Name), d.Name, skill.OneLine(d.Description)})
			}
		}
		if a.json {
			if err := a.printJSON(t); err != nil {
				return err
			}
		} else {
			a.showServer(t)
		}
		if s.State != upstream.Ready || s.Problem != "" {
			return errFound
		}
		return nil
	})
}

// toolText is how many columns of what a tool says of itself people are shown.
const toolText = 100

// known fails where there is no server of a name.
func known(set *toolset, name string) error {
	var names []string
	for _, s := range set.Servers() {
		if s.Name == name {
			return nil
		}
		names = append(names, s.Name)
	}
	hint := "see those there are: loadout servers"
	if len(names) > 0 {
		hint = "there are " + strings.Join(names, ", ")
	}
	return fail(exitNotFound, hint, "there is no MCP server %q", name)
}

func (a *app) showServer(t serverTest) {
	fmt.Fprintf(a.stdout, "%s is %s", a.bold(t.Name), t.State)
	if t.Era != "" {
		fmt.Fprintf(a.stdout, ", over %s, of the %s era", t.Transport, t.Era)
	}
	fmt.Fprintf(a.stdout, ", with %s.\n", counted(len(t.ToolList), "tool"))
	for _, text := range []string{t.Error, t.Problem} {
		if text != "" {
			fmt.Fprintln(a.stdout, plain(text))
		}
	}
	if t.Dir != "" {
		fmt.Fprintf(a.stdout, "It starts in %s.\n", plain(t.Dir))
	}
	var rows [][]string
	for _, tool := range t.ToolList { // --json has all that they say
		rows = append(rows, []string{tool.Name, clip(tool.Description, toolText)})
	}
	a.table("  ", rows)
	if t.Stderr != "" && (a.verbose || t.State != upstream.Ready) {
		fmt.Fprintf(a.stdout, "\nIt wrote to standard error:\n%s\n", plain(t.Stderr))
	}
}
