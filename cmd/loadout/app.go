package main

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/setup"
	"github.com/loadout-dev/loadout/internal/toolname"
)

// app holds the state of one run of the program.
type app struct {
	setup.Setup
	shutdownTime *atomic.Int64 // see setShutdownTimeout; may be nil
}

func newApp(env environment) *app {
	return &app{
		Setup:        setup.Setup{Console: console.Console{Stdin: env.stdin, Stdout: env.stdout, Stderr: env.stderr, Getenv: env.getenv}, DetectCaller: env.caller, Operator: env.operator, MoreSources: env.moreSources},
		shutdownTime: env.shutdownTime,
	}
}

// setShutdownTimeout sets the time that the command may take to shut down.
func (a *app) setShutdownTimeout(d time.Duration) {
	if a.shutdownTime != nil {
		a.shutdownTime.Store(int64(max(d, shutdownTimeout)))
	}
}

func (a *app) command() *cobra.Command {
	root := &cobra.Command{
		Use:   "loadout",
		Short: "Give any AI agent the right skill at the right moment",
		Long: `Loadout finds the skills you have (directories with a SKILL.md, archives, the
skill directories of Claude, Codex, Cursor, Gemini and others), tells an agent which
skills exist, and loads their instructions and files on demand.`,
		Example: `  loadout setup                    connect your agents to your skills
  loadout list                     list skills
  loadout add anthropics/skills    install skills
  loadout chat                     chat with an agent that uses them
  loadout doctor                   diagnose your setup`,
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return checkFlagValues(cmd)
		},
	}
	var version bool
	root.Flags().BoolVar(&version, "version", false, "print the version")
	commandGroup(root)
	help := root.RunE
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if version && len(args) == 0 {
			return a.printVersion()
		}
		if err := help(cmd, args); err != nil {
			return err
		}
		fmt.Fprintln(cmd.OutOrStdout(), "\nTo connect your agents to your skills, run: loadout setup")
		return nil
	}
	root.SetFlagErrorFunc(flagError)
	f := root.PersistentFlags()
	f.StringArrayVar(&a.Skills, "skills", nil, "use only the skills in `DIR`, in an archive or in a SKILL.md (repeatable)")
	f.StringVar(&a.ConfigFile, "config", "", "read the configuration `FILE` after the default ones")
	f.BoolVar(&a.JSON, "json", false, "print the result as JSON")
	f.BoolVar(&a.Quiet, "quiet", false, "print no notes about minor problems")
	f.BoolVar(&a.Verbose, "verbose", false, "print log messages to standard error")
	a.addCommands(root)
	return root
}

// addCommands adds the subcommands, in the groups shown in the help.
func (a *app) addCommands(root *cobra.Command) {
	for _, family := range []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{"use", "Find and run skills:", []*cobra.Command{a.listCommand(), a.searchCommand(), a.showCommand(), a.explainCommand(), a.runCommand()}},
		{"install", "Install skills:", []*cobra.Command{a.addCommand(), a.updateCommand(), a.verifyCommand(), a.removeCommand()}},
		{"write", "Write and publish skills:", []*cobra.Command{a.newCommand(), a.validateCommand(), a.scanCommand(), a.packCommand(), a.inspectCommand(), a.signCommand()}},
		{"agent", "Agents and MCP servers:", []*cobra.Command{a.setupCommand(), a.connectCommand(), a.disconnectCommand(), a.importCommand(), a.migrateCommand(), a.mcpCommand(), a.chatCommand(), a.serversCommand(), a.capabilitiesCommand()}},
		{"permission", "Permissions and secrets:", []*cobra.Command{a.approveCommand(), a.changesCommand(), a.trustCommand(), a.secretCommand(), a.sandboxCommand()}},
		{"hub", "Hub for a team:", []*cobra.Command{a.serveCommand(), a.applyCommand(), a.backupCommand(), a.restoreCommand()}},
		{"setup", "Setup and diagnosis:", []*cobra.Command{a.doctorCommand(), a.configCommand(), a.usageCommand(), a.manCommand(root), a.upgradeCommand(), a.versionCommand()}},
	} {
		root.AddGroup(&cobra.Group{ID: family.id, Title: family.title})
		for _, c := range family.commands {
			c.GroupID = family.id
		}
		root.AddCommand(family.commands...)
	}
	root.SetHelpCommand(helpCommand(root))
	root.SetHelpCommandGroupID("setup")
	root.SetCompletionCommandGroupID("setup")
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			commandGroup(c)
			c.Example = "  loadout completion bash > ~/.local/share/bash-completion/completions/loadout\n  source <(loadout completion zsh)"
		}
	}
}

// compatNames lists the supported earlier systems, for help texts.
func compatNames() string { return strings.Join(toolname.CompatSystems(), ", ") }
