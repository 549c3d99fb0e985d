package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/setup"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/tools"
)

// toolApproval is the JSON output of the approve command for a tool.
type toolApproval struct {
	Tool  string        `json:"tool"`
	ID    string        `json:"id"`
	Grant *policy.Grant `json:"grant"` // the recorded grant; null with --dry-run
}

// approveTool approves the calls of an MCP tool if there is no skill with the
// given name. skillErr is the error about the skill. approveTool returns
// skillErr if there is no such tool either.
func (a *app) approveTool(ctx context.Context, name string, o *approveFlags, skillErr error) error {
	if e, ok := errors.AsType[*catalog.NotFoundError](skillErr); !ok || e.Reason != "" {
		return skillErr
	}
	return a.withServers(ctx, nil, false, "", func(set *setup.Toolset, _ map[string]string, _ []string) error {
		found, err := findTool(ctx, set, name)
		if err == nil && len(found) == 0 && strings.ContainsAny(name, "._/:") {
			done := a.ShowProgress("connecting")
			set.OpenPermittedServers(ctx) // also servers of approved skills
			set.Connect(ctx, "")
			done()
			found, err = findTool(ctx, set, name)
		}
		switch {
		case err != nil:
			return err
		case len(found) == 0:
			return skillErr
		case len(found) > 1:
			var names []string
			for _, c := range found {
				names = append(names, c.Name)
			}
			return exit.Errorf(exit.Usage, "use one of "+strings.Join(names, ", "), "several tools are named %s", name)
		case len(o.digests) > 0 || o.expires > 0 || o.workspace || o.host || o.unsandboxed || o.allowedTools:
			return exit.Errorf(exit.Usage, "omit the flags for skills, or write a rule: policy.rules", "%s is a tool of an MCP server", found[0].Name)
		}
		return a.grantTool(ctx, set, &found[0], o)
	})
}

// grantTool shows a tool and records that the user approves its calls.
func (a *app) grantTool(ctx context.Context, set *setup.Toolset, t *tools.Capability, o *approveFlags) error {
	out := toolApproval{Tool: t.Name, ID: t.ID}
	show := func() {
		fmt.Fprintf(a.Stdout, "%s: %s\n%s\n", a.Bold(plain(t.Name)), t.SafetyLevel, plain(t.Description))
		if t.ReadOnly {
			fmt.Fprintln(a.Stdout, "It declares that it only reads data: agents can then call it with read_tool, too.")
		}
	}
	if !a.JSON {
		show()
	}
	if o.dryRun {
		if a.JSON {
			return a.PrintJSON(out)
		}
		return nil
	}
	args, hint := append([]string{"approve", t.Name}, a.SkillArgs()...), "on an unattended machine, write a rule: policy.rules"
	presence, err := a.RequireUser(ctx, hint, args...)
	if err != nil {
		return err
	}
	yes, err := a.ConfirmUser(ctx, setup.Confirmation{Question: "Let agents call this tool without a prompt?", Show: show, Args: args, Hint: hint, Ask: true, Yes: o.yes})
	if err == nil && !yes {
		err = exit.Errorf(exit.Refused, "to see it again: loadout approve "+console.ShellQuote(t.Name)+" --dry-run", "tool %s not approved", t.Name)
	}
	if err != nil {
		return err
	}
	user := policy.LocalUser()
	if err := set.Grant(ctx, &tools.Call{Name: t.Name, Principal: user, Presence: presence, ReadOnlyShown: !a.JSON}, policy.Always, false, user); err != nil {
		return err
	}
	if a.JSON {
		all, _, err := a.GrantStore().List(ctx)
		if i := slices.IndexFunc(all, func(g policy.Grant) bool { return g.Permissions.Call && g.Name == t.Name && g.Scope == policy.Always }); err == nil && i >= 0 {
			out.Grant = &all[i]
		}
		return a.PrintJSON(out)
	}
	fmt.Fprintf(a.Stdout, "\n%s Agents can call it without a prompt until its definition changes. To revoke: loadout approve --revoke %s\n", a.Green("Approved."), t.Name)
	return nil
}

// findTool returns the tools to which a name may refer. It accepts the names
// that rules, capabilities and clients use.
func findTool(ctx context.Context, set *setup.Toolset, name string) ([]tools.Capability, error) {
	all, _, err := set.Capabilities(ctx, &tools.Call{Principal: policy.LocalUser()})
	if err != nil {
		return nil, err
	}
	found, best := []tools.Capability(nil), len(spellings)
	for _, c := range all {
		if c.Kind != "mcp" {
			continue
		}
		switch rank := spellingRank(name, c.Name, strings.TrimPrefix(c.ID, "mcp.")); {
		case rank < best:
			found, best = []tools.Capability{c}, rank
		case rank == best && rank < len(spellings):
			found = append(found, c)
		}
	}
	return found, nil
}

// spellings lists functions that return spellings of a tool's name, in order of
// preference. joined has the form SERVER__TOOL.
var spellings = []func(joined, server, tool string) []string{
	func(joined, server, tool string) []string {
		return []string{joined, server + "." + tool, "mcp." + server + "." + tool}
	},
	func(joined, server, tool string) []string { return withClientPrefix(joined, server+"."+tool) },
	func(_, server, tool string) []string {
		return withClientPrefix(server+"__"+tool, server+"_"+tool, server+"/"+tool, server+":"+tool)
	},
	func(_, _, tool string) []string { return withClientPrefix(tool) },
}

// withClientPrefix returns each name as given and with the prefixes that
// clients add to it: "mcp", "loadout" or both.
func withClientPrefix(names ...string) []string {
	var out []string
	for _, n := range names {
		out = append(out, n)
		for _, sep := range []string{"__", "_", ".", "/", ":"} {
			out = append(out, "mcp"+sep+n, "loadout"+sep+n, "mcp"+sep+"loadout"+sep+n)
		}
	}
	return out
}

// spellingRank returns the index of the first function in spellings that returns
// name for a tool, or len(spellings) if none does. joined is as in spellings; long
// is SERVER.TOOL.
func spellingRank(name, joined, long string) int {
	server, tool, _ := strings.Cut(long, ".")
	for i, of := range spellings {
		if slices.Contains(of(joined, server, tool), name) {
			return i
		}
	}
	return len(spellings)
}
