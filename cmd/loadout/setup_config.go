package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/internal/config"
)

type configOutput struct {
	Settings  []config.Value `json:"settings"`
	Files     []string       `json:"files"`
	Inherited []string       `json:"inherited"` // directories set by environment variables of an earlier system
	Ignored   []config.Note  `json:"ignored"`
}

func (a *app) configCommand() *cobra.Command {
	cmd := commandGroup(&cobra.Command{
		Use:   "config",
		Short: "Show the effective configuration, or an example",
		Long: `Show the effective configuration, or an example. Later sources override earlier ones:
defaults, your file, the project's file, the file given with --config, the environment,
and flags. Until you trust a project (loadout trust), its file can only add deny rules
and skill directories within the project.`,
		Example: "  loadout config show\n  loadout config example",
	})
	cmd.AddCommand(&cobra.Command{
		Use:     "show",
		Short:   "Show every setting and its source",
		Example: "  loadout config show\n  LOADOUT_SKILLS_HOME=0 loadout config show --json",
		Args:    argCount(0, 0, ""),
		RunE:    func(*cobra.Command, []string) error { return a.showConfig() },
	}, &cobra.Command{
		Use:   "example",
		Short: "Print a configuration file with every key and its default",
		Example: `  mkdir -p ~/.config/loadout
  loadout config example > ~/.config/loadout/loadout.yaml`,
		Args: argCount(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			if a.JSON {
				return a.PrintJSON(map[string]string{"file": config.FileName, "text": config.Example()})
			}
			fmt.Fprint(a.Stdout, config.Example())
			return nil
		},
	})
	return cmd
}

func (a *app) showConfig() error {
	c, err := config.Load(a.ConfigInput())
	if err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(configOutput{c.Values(), append([]string{}, c.Files...), append([]string{}, c.Inherited...), append([]config.Note{}, c.Notes...)})
	}
	var rows [][]string
	for _, v := range c.Values() {
		rows = append(rows, []string{v.Key, v.From, v.Text()})
	}
	a.PrintTable("", rows)
	for _, d := range c.Inherited {
		fmt.Fprintf(a.Stdout, "also read, from the variables of an earlier system: %s\n", plain(d))
	}
	for _, n := range c.Notes {
		a.Note("%s: %s", n.Where, n.Message)
	}
	return nil
}
