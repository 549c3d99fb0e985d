package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/catalog"
)

type explainOutput struct {
	Name       string              `json:"name"`
	Candidates []catalog.Candidate `json:"candidates"`
}

func (a *app) explainCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "explain NAME",
		Short: "Say which skills a name could stand for, and why one wins",
		Example: `  loadout explain pdf
  loadout explain pdf@>=2 --json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeSkill,
		RunE: func(cmd *cobra.Command, args []string) error {
			rt, err := a.open(cmd.Context())
			if err != nil {
				return err
			}
			defer rt.Close()
			snap := rt.Catalog().Snapshot()
			found := snap.Explain(args[0])
			if a.json {
				if err := a.printJSON(explainOutput{args[0], append([]catalog.Candidate{}, found...)}); err != nil {
					return err
				}
			}
			if len(found) == 0 {
				_, err := snap.Get(args[0])
				return err
			}
			if !a.json {
				a.explain(args[0], found)
			}
			return nil
		},
	}
}

func (a *app) explain(name string, found []catalog.Candidate) {
	fmt.Fprintf(a.stdout, "%s could stand for:\n", safe(name))
	for _, c := range found {
		mark := "  "
		if c.Chosen {
			mark = "→ "
		}
		version := ""
		if c.Version != "" {
			version = " " + c.Version
		}
		fmt.Fprintf(a.stdout, "%s%s%s (%s)\n    %s\n    %s\n", mark, a.bold(safe(c.Origin+"/"+c.Name)), safe(version), c.Scope, safe(c.Path), safe(c.Reason))
	}
}
