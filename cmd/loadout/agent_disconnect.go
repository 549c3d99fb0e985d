package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/internal/clientconfig"
	"github.com/loadout-dev/loadout/internal/exit"
)

func (a *app) disconnectCommand() *cobra.Command {
	var o connectOptions
	var all bool
	cmd := &cobra.Command{
		Use:   "disconnect (CLIENT | --all)",
		Short: "Remove Loadout from the configuration of MCP clients",
		Long: `Remove the entry for Loadout from the configuration file of an MCP client, or from
those of all clients. A file that has not been changed since is restored byte for byte,
and a file that Loadout created is deleted. From any other file, only the entry is
removed. If Loadout replaced one of your entries and cannot restore it, the backup that
contains it is kept. An entry that does not start Loadout is not removed.

"disconnect CLIENT" is the same as "connect CLIENT --undo". --all changes your own files,
not those of projects. It asks once; without a terminal or with --json, it only shows the
changes unless --yes is given. If an agent runs disconnect --all, it refuses. Servers that
were imported stay in Loadout until you run "loadout import CLIENT --undo".`,
		Example: `  loadout disconnect cursor
  loadout disconnect cursor --scope project
  loadout disconnect --all`,
		Args: argCount(0, 1, "the name of a CLIENT or --all"),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return clientconfig.Names(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, f := range []string{"scope", "file"} {
				if err := checkExclusive(cmd, "all", f); err != nil {
					return err
				}
			}
			switch {
			case all == (len(args) > 0):
				return exit.Errorf(exit.Usage, "see: loadout disconnect --help", "disconnect needs either the name of a CLIENT or --all")
			case all:
				return a.disconnectAll(cmd.Context(), o)
			}
			o.undo = true
			return a.connectClient(cmd.Context(), args[0], o)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&all, "all", false, "disconnect all clients")
	f.StringVar(&o.scope, "scope", "", "`SCOPE` of the entry: user (all your projects) or project (for everyone)")
	f.StringVar(&o.name, "name", clientconfig.DefaultName, "`NAME` of the entry")
	f.StringVar(&o.file, "file", "", "edit `FILE` instead of the client's default file")
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask for confirmation")
	completeFlag(cmd, "scope", string(clientconfig.User), string(clientconfig.Project))
	return cmd
}

func (a *app) disconnectAll(ctx context.Context, o connectOptions) error {
	args := []string{"disconnect", "--all"}
	if o.name != clientconfig.DefaultName {
		args = append(args, "--name", o.name)
	}
	s := &clientSetup{app: a, args: args, verb: "disconnect"}
	for _, c := range clientconfig.All() {
		target := a.clientTarget(c, clientconfig.User, "")
		planned := map[string]bool{}
		for _, t := range append([]clientconfig.Target{target}, target.Others()...) {
			change, err := clientconfig.PlanUndo(t, o.name)
			var key string
			switch {
			case err != nil:
				key = err.Error() // names the file
			case change.Action != clientconfig.None:
				key = change.File
			}
			if key != "" && !planned[key] {
				planned[key] = true
				s.plans = append(s.plans, clientPlan{client: c, change: change, err: err,
					planAgain: func() (*clientconfig.Change, error) { return clientconfig.PlanUndo(t, o.name) }})
			}
		}
	}
	return s.run(ctx, o.yes)
}
