package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/internal/setup"
)

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version, the commit and its date",
		Example: "  loadout version --json",
		Args:    argCount(0, 0, ""),
		RunE:    func(*cobra.Command, []string) error { return a.printVersion() },
	}
}

func (a *app) printVersion() error {
	v := setup.ReadVersion()
	if a.JSON {
		return a.PrintJSON(v)
	}
	commit := ""
	if v.Revision != "" {
		commit = " (commit " + v.Revision
		if !v.Date.IsZero() {
			commit += " of " + v.Date.UTC().Format(time.DateOnly)
		}
		commit += ")"
	}
	fmt.Fprintf(a.Stdout, "loadout %s%s, %s, %s\n", v.Version, commit, v.Go, v.Platform)
	return nil
}
