package main

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/mcpserver"
)

// app is one run of the program.
type app struct {
	console.Console
	skills       []string
	config       string
	profileName  string // the profile named by --profile
	verbose      bool
	shutdownTime *atomic.Int64 // see setShutdownTimeout; may be nil
}

func newApp(env environment) *app {
	return &app{Console: console.Console{Stdin: env.stdin, Stdout: env.stdout, Stderr: env.stderr, Getenv: env.getenv}, shutdownTime: env.shutdownTime}
}

// setShutdownTimeout sets the time the command may take to shut down.
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
skill directories of Claude, Codex, Cursor, Gemini and others), tells an agent what
it needs to choose one, and loads instructions and files on demand.`,
		Example: `  loadout list                     list skills
  loadout connect claude-code      let Claude Code use them
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
		return help(cmd, args)
	}
	root.SetFlagErrorFunc(flagError)
	f := root.PersistentFlags()
	f.StringArrayVar(&a.skills, "skills", nil, "use only the skills in `DIR`, in an archive or in a SKILL.md (repeatable)")
	f.StringVar(&a.config, "config", "", "read the configuration `FILE` after the default ones")
	f.BoolVar(&a.JSON, "json", false, "print the result as JSON")
	f.BoolVar(&a.Quiet, "quiet", false, "print no notes about minor problems")
	f.BoolVar(&a.verbose, "verbose", false, "print log messages to standard error")
	a.addCommands(root)
	return root
}

// addCommands adds the subcommands in families, which structure the help.
func (a *app) addCommands(root *cobra.Command) {
	for _, family := range []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{"use", "Find and run skills:", []*cobra.Command{a.listCommand(), a.searchCommand(), a.showCommand(), a.explainCommand(), a.runCommand()}},
		{"install", "Install skills:", []*cobra.Command{a.addCommand(), a.updateCommand(), a.verifyCommand(), a.removeCommand()}},
		{"write", "Write and publish skills:", []*cobra.Command{a.newCommand(), a.validateCommand(), a.scanCommand(), a.packCommand(), a.inspectCommand(), a.signCommand()}},
		{"agent", "Agents and MCP servers:", []*cobra.Command{a.connectCommand(), a.importCommand(), a.mcpCommand(), a.chatCommand(), a.serversCommand(), a.capabilitiesCommand()}},
		{"permission", "Permissions and secrets:", []*cobra.Command{a.approveCommand(), a.trustCommand(), a.secretCommand(), a.sandboxCommand()}},
		{"hub", "Hub for a team:", []*cobra.Command{a.serveCommand(), a.applyCommand(), a.backupCommand(), a.restoreCommand()}},
		{"setup", "Setup and diagnosis:", []*cobra.Command{a.doctorCommand(), a.configCommand(), a.usageCommand(), a.versionCommand()}},
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

// skillFlags returns the flags that select the skills, for a command in a hint.
func (a *app) skillFlags() string {
	var b strings.Builder
	for _, d := range a.skills {
		b.WriteString(" --skills " + console.ShellQuote(d))
	}
	if a.config != "" {
		b.WriteString(" --config " + console.ShellQuote(a.config))
	}
	return b.String()
}

// profileFlags returns skillFlags with the profile, for commands that have both.
func (a *app) profileFlags() string {
	if a.profileName == "" {
		return a.skillFlags()
	}
	return " --profile " + console.ShellQuote(a.profileName) + a.skillFlags()
}

// loadConfig reads the configuration. flags are the values of flags by key.
func (a *app) loadConfig(flags map[string]string) (*config.Config, error) {
	in := a.configInput()
	in.Flags = flags
	if in.File != "" {
		if _, err := os.Stat(in.File); errors.Is(err, fs.ErrNotExist) {
			return nil, exit.Errorf(exit.NotFound, "check the path given with --config", "%s: %w", in.File, exit.FileCause(err))
		}
	}
	c, err := config.Load(in)
	if err != nil {
		return nil, err
	}
	for _, n := range c.Notes {
		a.Note("%s: %s", n.Where, n.Message)
	}
	return c, nil
}

func (a *app) configInput() config.Input {
	dir, err := os.Getwd()
	if err != nil {
		dir = "."
	}
	return config.Input{WorkDir: dir, Home: a.home(), Getenv: a.Getenv, File: a.config, Trusted: a.isTrustedFile}
}

func (a *app) home() string {
	if h := a.Getenv("HOME"); h != "" {
		return h
	}
	h, _ := os.UserHomeDir()
	return h
}

// cacheDir returns the cache directory, or "" if there is none.
func (a *app) cacheDir() string {
	if d := a.Getenv("LOADOUT_CACHE"); d != "" {
		return d
	}
	if d := a.Getenv("XDG_CACHE_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "loadout")
	}
	if h := a.home(); h != "" {
		return filepath.Join(h, ".cache", "loadout")
	}
	return ""
}

// newRuntime opens the skills that the configuration and the flags select.
func (a *app) newRuntime(ctx context.Context, c *config.Config, watch bool) (*loadout.Runtime, error) {
	p, err := a.findProfile(a.profileName)
	if err != nil {
		return nil, err
	}
	rt, err := a.newRuntimeWith(ctx, c, watch, profileSkills(p))
	if err == nil {
		a.noteMissingSkills(ctx, c, p, rt)
	}
	return rt, err
}

// newRuntimeWith is newRuntime with only the chosen skills, or with all skills if
// chosen is empty. It adds the directories in more.
func (a *app) newRuntimeWith(ctx context.Context, c *config.Config, watch bool, chosen []string, more ...loadout.SourceLocation) (*loadout.Runtime, error) {
	filter := catalogFilter(c)
	filter.Select = chosen
	if _, err := catalog.New(nil, &catalog.Options{Filter: filter}); err != nil {
		return nil, exit.Errorf(exit.Usage, "see where it is set: loadout config show", "configuration: skills.allow: %w", err)
	}
	sources, err := a.skillSources(c, more...)
	if err != nil {
		return nil, err
	}
	scripts, err := a.scriptOptions(c)
	if err != nil {
		return nil, err
	}
	defer a.ShowProgress("reading skills")()
	return loadout.New(ctx, &loadout.Options{Sources: sources, Filter: filter, Watch: watch && c.Skills.Watch, Scripts: scripts, Logger: a.logger()})
}

// openRuntime loads the configuration and opens the skills.
func (a *app) openRuntime(ctx context.Context) (*loadout.Runtime, error) {
	c, err := a.loadConfig(nil)
	if err != nil {
		return nil, err
	}
	return a.newRuntime(ctx, c, false)
}

func (a *app) skillSources(c *config.Config, more ...loadout.SourceLocation) ([]catalog.Source, error) {
	o := &loadout.SourceOptions{Home: a.home(), NoHome: !c.Skills.Home, NoProject: !c.Skills.Project, NoBundled: !c.Skills.Bundled,
		Depth: c.Skills.Depth, CacheDir: a.cacheDir()}
	if _, err := os.Getwd(); err != nil {
		if !o.NoProject && len(a.skills) == 0 {
			a.Note("skills of the project ignored: cannot read the working directory: %v", exit.FileCause(err))
		}
		o.NoProject, o.WorkDir = true, string(filepath.Separator)
	}
	for _, d := range c.Skills.Dirs {
		switch {
		case !c.FromProject(d):
			o.Extra = append(o.Extra, loadout.SourceLocation{Path: d, Scope: catalog.User})
		case c.Skills.Project:
			o.Extra = append(o.Extra, loadout.SourceLocation{Path: d, Scope: catalog.Project})
		}
	}
	for _, d := range c.Inherited {
		o.Extra = append(o.Extra, loadout.SourceLocation{Path: d, Scope: catalog.User})
	}
	if len(a.skills) > 0 {
		o.NoHome, o.NoProject, o.NoBundled, o.Extra = true, true, true, nil
		for _, d := range a.skills {
			path, err := filepath.Abs(d)
			if err == nil {
				_, err = os.Stat(path)
			}
			if err != nil {
				code, hint := exit.FileHint(err, "the path given with --skills")
				return nil, exit.Errorf(code, hint, "%s: %w", d, exit.FileCause(err))
			}
			o.Extra = append(o.Extra, loadout.SourceLocation{Path: path, Scope: catalog.Project})
		}
	}
	o.Extra = append(o.Extra, more...)
	return loadout.DefaultSources(o)
}

func (a *app) logger() *slog.Logger {
	if !a.verbose {
		return nil
	}
	return slog.New(slog.NewTextHandler(a.Stderr, nil))
}

// compatNames returns the supported earlier systems, for help texts.
func compatNames() string { return strings.Join(mcpserver.CompatSystems(), ", ") }
