package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/skillname"
)

type explainOutput struct {
	Name       string              `json:"name"`
	Candidates []catalog.Candidate `json:"candidates"`
}

func (a *app) explainCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain NAME",
		Short: "Explain which skill a name resolves to",
		Long: `List the skills to which a name could refer, in order of precedence. Show which one is
chosen and why the others are not: because of their scope, the order of sources, their
version, or a setting that hides them.`,
		Example: `  loadout explain pdf
  loadout explain pdf@>=2 --json`,
		Args:              argCount(1, 1, "the NAME of a skill"),
		ValidArgsFunction: a.completeSkill,
		RunE: func(cmd *cobra.Command, args []string) error {
			rt, err := a.OpenRuntime(cmd.Context())
			if err != nil {
				return err
			}
			defer rt.Close()
			snap := rt.Catalog().Snapshot()
			found := snap.Explain(args[0])
			_, missing := a.resolveSkill(cmd.Context(), rt, args[0])
			if a.JSON {
				if err := a.PrintJSON(explainOutput{args[0], append([]catalog.Candidate{}, found...)}); err != nil {
					return err
				}
			}
			if len(found) == 0 {
				return missing
			}
			if !a.JSON {
				a.printCandidates(args[0], found, missing)
			}
			return nil
		},
	}
	a.profileFlag(cmd.Flags())
	return cmd
}

// printCandidates prints the candidates for a name. If none was chosen, err is
// the reason.
func (a *app) printCandidates(name string, found []catalog.Candidate, err error) {
	var b strings.Builder
	fmt.Fprintf(&b, "Candidates for %s:\n", plain(name))
	for _, c := range found {
		mark := "  "
		if c.Chosen {
			mark = a.Green("→ ")
		}
		version := ""
		if c.Version != "" {
			version = " " + plain(c.Version)
		}
		full := c.Origin + "/" + c.Name
		if skillname.IsServed(c.Name, c.Origin) { // a skill of an MCP server
			full = c.Name
		}
		fmt.Fprintf(&b, "%s%s%s (%s)\n    %s\n", mark, a.Bold(plain(full)), version, c.Scope, plain(c.Path))
		a.WriteWrapped(&b, "    ", c.Reason, console.NoStyle)
	}
	if err != nil {
		fmt.Fprintf(&b, "None of them is chosen: %s\n", plain(err.Error()))
	}
	fmt.Fprint(a.Stdout, b.String())
}
