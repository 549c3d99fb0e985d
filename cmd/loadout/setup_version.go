package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/internal/setup"
)

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
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
	revision := ""
	if v.Revision != "" {
		revision = " (" + v.Revision + ")"
	}
	fmt.Fprintf(a.Stdout, "loadout %s%s, %s, %s\n", v.Version, revision, v.Go, v.Platform)
	return nil
}
