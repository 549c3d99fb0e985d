package main

import (
	"fmt"
	"slices"
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

// command returns the command line with all commands.
func (a *app) command() *cobra.Command { return a.commandFor(nil) }

// commandFor returns the command line for the given arguments. If the first one is
// the name of a command, the other commands are missing, because creating all of
// them takes 0.4 ms at each start.
func (a *app) commandFor(args []string) *cobra.Command {
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
	root.SetHelpCommand(helpCommand(root))
	root.SetHelpCommandGroupID("setup")
	a.addCommands(root, args)
	return root
}

// family is a group of commands in the help.
type family struct {
	id, title string
	commands  []subcommand
}

type subcommand struct {
	name   string
	create func() *cobra.Command
}

func (a *app) families(root *cobra.Command) []family {
	return []family{
		{"use", "Find and run skills:", []subcommand{{"list", a.listCommand}, {"search", a.searchCommand}, {"show", a.showCommand}, {"explain", a.explainCommand}, {"run", a.runCommand}}},
		{"install", "Install skills:", []subcommand{{"add", a.addCommand}, {"update", a.updateCommand}, {"verify", a.verifyCommand}, {"remove", a.removeCommand}}},
		{"write", "Write and publish skills:", []subcommand{{"new", a.newCommand}, {"validate", a.validateCommand}, {"scan", a.scanCommand}, {"test", a.testCommand}, {"pack", a.packCommand}, {"inspect", a.inspectCommand},
			{"sign", a.signCommand}, {"publish", a.publishCommand}}},
		{"agent", "Agents and MCP servers:", []subcommand{{"setup", a.setupCommand}, {"connect", a.connectCommand}, {"disconnect", a.disconnectCommand}, {"import", a.importCommand}, {"migrate", a.migrateCommand},
			{"mcp", a.mcpCommand}, {"chat", a.chatCommand}, {"servers", a.serversCommand}, {"capabilities", a.capabilitiesCommand}}},
		{"permission", "Permissions and secrets:", []subcommand{{"approve", a.approveCommand}, {"changes", a.changesCommand}, {"trust", a.trustCommand}, {"secret", a.secretCommand}, {"sandbox", a.sandboxCommand}}},
		{"hub", "Hub for a team:", []subcommand{{"serve", a.serveCommand}, {"apply", a.applyCommand}, {"backup", a.backupCommand}, {"restore", a.restoreCommand}}},
		{"setup", "Setup and diagnosis:", []subcommand{{"doctor", a.doctorCommand}, {"config", a.configCommand}, {"usage", a.usageCommand}, {manName, func() *cobra.Command { return a.manCommand(root) }},
			{"upgrade", a.upgradeCommand}, {"version", a.versionCommand}}},
	}
}

// manName is the name of the command that reads all other commands.
const manName = "man"

// addCommands adds the subcommands for args, in the groups shown in the help.
func (a *app) addCommands(root *cobra.Command, args []string) {
	families := a.families(root)
	only := ""
	if len(args) > 0 && args[0] != manName && hasCommand(families, args[0]) {
		only = args[0]
	}
	for _, f := range families {
		root.AddGroup(&cobra.Group{ID: f.id, Title: f.title})
		for _, s := range f.commands {
			if only == "" || only == s.name {
				c := s.create()
				c.GroupID = f.id
				root.AddCommand(c)
			}
		}
	}
	if only == "" {
		addCompletion(root)
	} else {
		root.CompletionOptions.DisableDefaultCmd = true
	}
}

func hasCommand(families []family, name string) bool {
	return slices.ContainsFunc(families, func(f family) bool {
		return slices.ContainsFunc(f.commands, func(s subcommand) bool { return s.name == name })
	})
}

// addCompletion adds Cobra's command for completion.
func addCompletion(root *cobra.Command) {
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
