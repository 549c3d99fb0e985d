package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/internal/config"
)

type configOutput struct {
	Settings []config.Value `json:"settings"`
	Files    []string       `json:"files"`
	Ignored  []config.Note  `json:"ignored"`
}

func (a *app) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show the configuration in force, or an example",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(&cobra.Command{
		Use:     "show",
		Short:   "Show every setting and where its value comes from",
		Example: "  loadout config show\n  LOADOUT_SKILLS_HOME=0 loadout config show --json",
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return a.configShow() },
	}, &cobra.Command{
		Use:     "example",
		Short:   "Print a configuration file with every key and its default",
		Example: "  loadout config example > ~/.config/loadout/loadout.yaml",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprint(a.stdout, config.Example())
			return err
		},
	})
	return cmd
}

func (a *app) configShow() error {
	c, err := config.Load(a.configInput())
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(configOutput{c.Values(), append([]string{}, c.Files...), append([]config.Note{}, c.Notes...)})
	}
	var rows [][]string
	for _, v := range c.Values() {
		rows = append(rows, []string{v.Key, v.From, v.Text()})
	}
	a.table(rows)
	for _, n := range c.Notes {
		a.note("%s: %s", n.Where, n.Message)
	}
	return nil
}
