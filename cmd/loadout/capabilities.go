package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/internal/usage"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/tools"
	"github.com/loadout-dev/loadout/upstream"
)

// capabilitiesFlags are the flags of loadout capabilities.
type capabilitiesFlags struct {
	files   []string
	connect bool
}

func (a *app) capabilitiesCommand() *cobra.Command {
	var o capabilitiesFlags
	cmd := &cobra.Command{
		Use:   "capabilities",
		Short: "List what an agent could do, and what a person is asked about first",
		Long: `List the skills and the tools of MCP servers that an agent can have here, how safe
each is, and whether a person is asked first: to call the tool, or to run the code of
the skill, whose instructions load without. It is decided as a call is, by your rules and
by what you approved; the call is decided again, by its arguments too.

Tools are those that are known from before. One of a server that was never connected
is not there, which is said: --connect connects the servers first. With --json it is
what a planner wants: available_skills, available_mcp_tools and planning_hints.`,
		Example: `  loadout capabilities
  loadout capabilities --connect
  loadout capabilities --json | jq '.planning_hints.capabilities[] | select(.requires_approval)'`,
		Args: want(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.capabilities(cmd.Context(), &o) },
	}
	cmd.Flags().StringArrayVar(&o.files, "mcp-config", nil, "also the MCP servers in `FILE`, of any client's form (repeatable)")
	cmd.Flags().BoolVar(&o.connect, "connect", false, "connect the MCP servers first, and ask them for their tools")
	a.profileFlag(cmd.Flags())
	return cmd
}

func (a *app) capabilities(ctx context.Context, o *capabilitiesFlags) error {
	return a.withServers(ctx, o.files, false, "", func(set *toolset, _ map[string]string, _ []string) error {
		var wrong map[string]string
		unknown := false
		if o.connect {
			done := a.progress("connecting")
			set.Recall(ctx) // those of skills that were approved too
			wrong = set.Connect(ctx, "")
			done()
		}
		done := a.progress("reading skills")
		p, err := set.Capabilities(ctx, &tools.Call{Principal: policy.Local()})
		done()
		if err != nil {
			return err
		}
		for _, s := range set.Servers() {
			if text := wrong[s.Name]; text != "" && s.Known != nil && s.Problem == "" {
				p.Problems = append(p.Problems, text) // of others it says why
			}
			unknown = unknown || s.Known == nil && s.State == upstream.Init
		}
		if a.json {
			a.measured(p)
			return a.printJSON(p)
		}
		a.capabilityTable(p)
		if unknown && !o.connect {
			given := ""
			for _, f := range o.files {
				given += " --mcp-config " + quoted(f)
			}
			a.note("to connect them, and see their tools: loadout capabilities --connect%s", given+a.profileFlags())
		}
		return nil
	})
}

// measured says of tools how long their calls took, where calls were counted.
func (a *app) measured(p *tools.Planning) {
	file := a.usageFile()
	if file == "" {
		return
	}
	report, err := usage.Read(usage.Options{Path: file})
	if err != nil {
		return // a hint is not worth failing for
	}
	for i, c := range p.Hints.Capabilities {
		if t, ok := report.Tool(c.Name); ok && c.Kind == tools.ToolCapability && t.P50 > 0 {
			p.Hints.Capabilities[i].LatencyHint = fmt.Sprintf("%.1f ms, the median of %d calls", t.P50, t.Calls)
		}
	}
}

func (a *app) capabilityTable(p *tools.Planning) {
	if len(p.Hints.Capabilities) == 0 {
		fmt.Fprintln(a.stdout, "There are no skills and no tools. To look around: loadout doctor")
	} else {
		rows := [][]string{{"ID", "SAFETY", "ASKS", "DESCRIPTION"}}
		for _, c := range p.Hints.Capabilities {
			asks := "no"
			if c.RequiresApproval {
				asks = "yes"
			}
			rows = append(rows, []string{c.ID, c.SafetyLevel.String(), asks, clip(plain(c.Description), toolText)})
		}
		a.table("", rows)
	}
	for _, text := range p.Problems {
		a.note("%s", text)
	}
}
