package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/catalog"
)

type explainOutput struct {
	Name       string              `json:"name"`
	Candidates []catalog.Candidate `json:"candidates"`
}

func (a *app) explainCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain NAME",
		Short: "Say which skills a name could stand for, and why one wins",
		Long: `Say which skills a name could stand for, in order of precedence, which of them
it stands for, and why the others lose: by scope, by order of sources, by version,
or because a setting hides them.`,
		Example: `  loadout explain pdf
  loadout explain pdf@>=2 --json`,
		Args:              want(1, 1, "the NAME of a skill"),
		ValidArgsFunction: a.completeSkill,
		RunE: func(cmd *cobra.Command, args []string) error {
			rt, err := a.open(cmd.Context())
			if err != nil {
				return err
			}
			defer rt.Close()
			snap := rt.Catalog().Snapshot()
			found := snap.Explain(args[0])
			_, missing := a.resolve(cmd.Context(), rt, args[0])
			if a.json {
				if err := a.printJSON(explainOutput{args[0], append([]catalog.Candidate{}, found...)}); err != nil {
					return err
				}
			}
			if len(found) == 0 {
				return missing
			}
			if !a.json {
				a.explain(args[0], found, missing)
			}
			return nil
		},
	}
	a.profileFlag(cmd.Flags())
	return cmd
}

// explain prints the candidates; missing is why none of them was chosen.
func (a *app) explain(name string, found []catalog.Candidate, missing error) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s could stand for:\n", plain(name))
	for _, c := range found {
		mark := "  "
		if c.Chosen {
			mark = a.green("→ ")
		}
		version := ""
		if c.Version != "" {
			version = " " + plain(c.Version)
		}
		fmt.Fprintf(&b, "%s%s%s (%s)\n    %s\n", mark, a.bold(plain(c.Origin+"/"+c.Name)), version, c.Scope, plain(c.Path))
		a.wrap(&b, "    ", c.Reason, same)
	}
	if missing != nil {
		fmt.Fprintf(&b, "It stands for none of them: %s\n", plain(missing.Error()))
	}
	fmt.Fprint(a.stdout, b.String())
}
