package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/setup"
	"github.com/loadout-dev/loadout/internal/terminal"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/internal/usage"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/tools"
)

// capabilitiesFlags holds the flags of the capabilities command.
type capabilitiesFlags struct {
	files   []string
	connect bool
}

func (a *app) capabilitiesCommand() *cobra.Command {
	var o capabilitiesFlags
	cmd := &cobra.Command{
		Use:   "capabilities",
		Short: "List what an agent can do, and what needs approval",
		Long: `List the skills and MCP tools available to an agent, with the safety level of each and
whether it needs your approval. Tool calls and the code of skills may need approval;
loading the instructions of a skill never does. The list takes your rules and approvals
into account. When an agent makes a call, the call is checked again with its arguments.

By default, only tools known from earlier connections are listed, and servers that have
never been connected are reported separately. With --connect, the command first connects
to all servers. The --json output is for planners: available_skills, available_mcp_tools
and planning_hints.`,
		Example: `  loadout capabilities
  loadout capabilities --connect
  loadout capabilities --json | jq '.planning_hints.capabilities[] | select(.requires_approval)'`,
		Args: argCount(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.listCapabilities(cmd.Context(), &o) },
	}
	cmd.Flags().StringArrayVar(&o.files, "mcp-config", nil, "add the MCP servers in `FILE`, in the format of any client (repeatable)")
	cmd.Flags().BoolVar(&o.connect, "connect", false, "connect to the MCP servers first and list their tools")
	a.profileFlag(cmd.Flags())
	return cmd
}

func (a *app) listCapabilities(ctx context.Context, o *capabilitiesFlags) error {
	return a.withServers(ctx, o.files, false, "", func(set *setup.Toolset, _ map[string]string, _ []string) error {
		var wrong map[string]string
		unknown := false
		if o.connect {
			done := a.ShowProgress("connecting")
			set.OpenPermittedServers(ctx) // also servers of approved skills
			wrong = set.Connect(ctx, "")
			done()
		}
		done := a.ShowProgress("reading skills")
		all, problems, err := set.Capabilities(ctx, &tools.Call{Principal: policy.LocalUser()})
		done()
		if err != nil {
			return err
		}
		for _, s := range set.Servers() {
			if text := wrong[s.Name]; text != "" && s.Listing != nil && s.Problem == "" {
				problems = append(problems, text) // the others report their own problem
			}
			unknown = unknown || s.Listing == nil && s.State == upstream.Init
		}
		if a.JSON {
			if err := a.addMeasuredHints(all); err != nil {
				return err
			}
			return a.PrintJSON(newCapabilitiesOutput(all, problems))
		}
		a.printCapabilities(all, problems)
		if unknown && !o.connect {
			given := ""
			for _, f := range o.files {
				given += " --mcp-config " + console.ShellQuote(f)
			}
			a.Note("to connect to them and list their tools: loadout capabilities --connect%s", given+a.ProfileFlags())
		}
		return nil
	})
}

// capabilitiesOutput is the output of loadout capabilities --json. Its form is
// stable. Empty lists are [], not null.
type capabilitiesOutput struct {
	Skills []string `json:"available_skills"`    // names, in the order of the hints
	Tools  []string `json:"available_mcp_tools"` // names to call the tools by
	Hints  struct {
		Capabilities []tools.Capability `json:"capabilities"`
	} `json:"planning_hints"`
	Problems []string `json:"problems"`
}

func newCapabilitiesOutput(all []tools.Capability, problems []string) *capabilitiesOutput {
	out := &capabilitiesOutput{Skills: []string{}, Tools: []string{}, Problems: append([]string{}, problems...)}
	out.Hints.Capabilities = append([]tools.Capability{}, all...)
	for _, c := range all {
		if c.Kind == "skill" {
			out.Skills = append(out.Skills, c.Name)
		} else {
			out.Tools = append(out.Tools, c.Name)
		}
	}
	return out
}

// addMeasuredHints replaces hints with values recorded on this machine, and adds
// the price of a skill's instructions with the default model.
func (a *app) addMeasuredHints(all []tools.Capability) error {
	c, err := a.LoadConfig(nil)
	if err != nil {
		return err
	}
	report := &usage.Report{}
	if file := a.UsageFile(); file != "" {
		if r, err := usage.Read(usage.Options{Path: file}); err == nil { // the hints are optional
			report = r
		}
	}
	model := setup.ChooseModel(c, setup.ModelFlags{}).Name
	price, priced := c.Models.Price(model)
	for i := range all {
		addLatency(&all[i], report)
		if priced && all[i].Kind == "skill" {
			all[i].CostHint += ", " + plain(usage.Price(price).InputHint(all[i].Tokens, model))
		}
	}
	return nil
}

// addLatency sets the latency hint of a tool, or of a skill with scripts, if the
// report has recorded times.
func addLatency(k *tools.Capability, report *usage.Report) {
	hint := report.ToolLatency(k.Name)
	if k.Kind == "skill" {
		hint = plain(report.ScriptLatency(k.Key))
	}
	k.LatencyHint = cmp.Or(hint, k.LatencyHint)
}

func (a *app) printCapabilities(all []tools.Capability, problems []string) {
	if len(all) == 0 {
		fmt.Fprintln(a.Stdout, "No skills or tools found. To find out why: loadout doctor")
	} else {
		rows := [][]string{{"ID", "SAFETY", "APPROVAL", "DESCRIPTION"}}
		for _, c := range all {
			asks := "no"
			if c.RequiresApproval {
				asks = "yes"
			}
			rows = append(rows, []string{c.ID, c.SafetyLevel.String(), asks, terminal.Clip(plain(c.Description), maxToolWidth)})
		}
		a.PrintTable("", rows)
	}
	for _, text := range problems {
		a.Note("%s", text)
	}
}
