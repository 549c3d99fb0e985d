package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/mcpserver"
)

// app is one run of the command.
type app struct {
	environment
	skills  []string
	config  string
	ghost   string // the profile that is chosen
	json    bool
	quiet   bool
	verbose bool
	typed   *bufio.Reader // what a person typed, once something was asked
}

func (a *app) command() *cobra.Command {
	root := &cobra.Command{
		Use:   "loadout",
		Short: "Give any AI agent the right skill at the right moment",
		Long: `Loadout finds the skills you have (folders with a SKILL.md, archives, the
directories of Claude, Codex, Cursor, Gemini and others), tells an agent what it
needs to choose one, and loads instructions and files on demand.`,
		Example: `  loadout list                     the skills that were found
  loadout connect claude-code      let Claude Code use them
  loadout mcp --http 127.0.0.1:8485
  loadout show pdf
  loadout doctor                   what was found where, and what is wrong`,
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return notEmpty(cmd)
		},
	}
	var version bool
	root.Flags().BoolVar(&version, "version", false, "print the version")
	group(root)
	help := root.RunE
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if version && len(args) == 0 {
			return a.version()
		}
		return help(cmd, args)
	}
	root.SetFlagErrorFunc(flagError)
	f := root.PersistentFlags()
	f.StringArrayVar(&a.skills, "skills", nil, "use only the skills in `DIR`, an archive or a SKILL.md (repeatable)")
	f.StringVar(&a.config, "config", "", "read this configuration `FILE` after the usual ones")
	f.BoolVar(&a.json, "json", false, "print one JSON document")
	f.BoolVar(&a.quiet, "quiet", false, "leave out problems that do not stop the command")
	f.BoolVar(&a.verbose, "verbose", false, "log to standard error what goes on")
	root.AddCommand(a.listCommand(), a.showCommand(), a.searchCommand(), a.explainCommand(), a.validateCommand(), a.scanCommand(), a.newCommand(),
		a.packCommand(), a.inspectCommand(), a.addCommand(), a.removeCommand(), a.updateCommand(), a.verifyCommand(), a.signCommand(), a.runCommand(), a.approveCommand(), a.trustCommand(), a.secretCommand(), a.sandboxCommand(), a.mcpCommand(), a.chatCommand(), a.serveCommand(), a.applyCommand(), a.backupCommand(), a.restoreCommand(), a.serversCommand(), a.capabilitiesCommand(), a.connectCommand(), a.importCommand(), a.doctorCommand(), a.usageCommand(), a.configCommand(), a.versionCommand())
	root.SetHelpCommand(helpCommand(root))
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			group(c)
			c.Example = "  loadout completion bash > ~/.local/share/bash-completion/completions/loadout\n  source <(loadout completion zsh)"
		}
	}
	return root
}

// flags repeats the flags that chose the skills, for the next command that a
// person is told to type.
func (a *app) flags() string {
	var b strings.Builder
	for _, d := range a.skills {
		b.WriteString(" --skills " + quoted(d))
	}
	if a.config != "" {
		b.WriteString(" --config " + quoted(a.config))
	}
	return b.String()
}

// profileFlags is flags with the profile, for commands that have both.
func (a *app) profileFlags() string {
	if a.ghost == "" {
		return a.flags()
	}
	return " --profile " + quoted(a.ghost) + a.flags()
}

// quoted is a word as a shell reads it.
func quoted(s string) string {
	if s != "" && !strings.ContainsFunc(s, unquotable) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// unquotable reports whether a character could mean something to a shell.
func unquotable(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("@%+=:,./_-~", r)
}

// settings reads the configuration, with the flags of this command by key.
func (a *app) settings(flags map[string]string) (*config.Config, error) {
	in := a.configInput()
	in.Flags = flags
	if in.File != "" {
		if _, err := os.Stat(in.File); errors.Is(err, fs.ErrNotExist) {
			return nil, fail(exitNotFound, "check the path given with --config", "%s: %w", in.File, reason(err))
		}
	}
	c, err := config.Load(in)
	if err != nil {
		return nil, err
	}
	for _, n := range c.Notes {
		a.note("%s: %s", n.Where, n.Message)
	}
	return c, nil
}

func (a *app) configInput() config.Input {
	dir, err := os.Getwd()
	if err != nil {
		dir = "."
	}
	return config.Input{WorkDir: dir, Home: a.home(), Getenv: a.getenv, File: a.config, Trusted: a.trustsFile}
}

func (a *app) home() string {
	if h := a.getenv("HOME"); h != "" {
		return h
	}
	h, _ := os.UserHomeDir()
	return h
}

// cacheDir is where the index is kept, "" where there is no place for it.
func (a *app) cacheDir() string {
	if d := a.getenv("LOADOUT_CACHE"); d != "" {
		return d
	}
	if d := a.getenv("XDG_CACHE_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "loadout")
	}
	if h := a.home(); h != "" {
		return filepath.Join(h, ".cache", "loadout")
	}
	return ""
}

// runtime reads the skills that the configuration and the flags name.
func (a *app) runtime(ctx context.Context, c *config.Config, watch bool) (*loadout.Runtime, error) {
	p, err := a.profile(a.ghost)
	if err != nil {
		return nil, err
	}
	rt, err := a.runtimeOf(ctx, c, watch, chosen(p))
	if err == nil {
		a.noteAbsent(ctx, c, p, rt)
	}
	return rt, err
}

// runtimeOf is runtime with only the chosen skills, where there are any.
func (a *app) runtimeOf(ctx context.Context, c *config.Config, watch bool, chosen []string, more ...loadout.Place) (*loadout.Runtime, error) {
	filter := filterOf(c)
	filter.Select = chosen
	if _, err := catalog.New(nil, &catalog.Options{Filter: filter}); err != nil {
		return nil, fail(exitUsage, "see where it is set: loadout config show", "configuration: skills.allow: %w", err)
	}
	sources, err := a.sources(c, more...)
	if err != nil {
		return nil, err
	}
	scripts, err := a.scripts(c)
	if err != nil {
		return nil, err
	}
	defer a.progress("reading skills")()
	return loadout.New(ctx, &loadout.Options{Sources: sources, Filter: filter, Watch: watch && c.Skills.Watch, Scripts: scripts, Logger: a.logger()})
}

// open reads the configuration and the skills, for commands that need no more.
func (a *app) open(ctx context.Context) (*loadout.Runtime, error) {
	c, err := a.settings(nil)
	if err != nil {
		return nil, err
	}
	return a.runtime(ctx, c, false)
}

func (a *app) sources(c *config.Config, more ...loadout.Place) ([]catalog.Source, error) {
	o := &loadout.SourceOptions{Home: a.home(), NoHome: !c.Skills.Home, NoProject: !c.Skills.Project, NoBundled: !c.Skills.Bundled,
		Depth: c.Skills.Depth, CacheDir: a.cacheDir()}
	if _, err := os.Getwd(); err != nil {
		if !o.NoProject && len(a.skills) == 0 {
			a.note("the skills of the project are left out, as the working directory is gone or cannot be read: %v", reason(err))
		}
		o.NoProject, o.WorkDir = true, string(filepath.Separator)
	}
	for _, d := range c.Skills.Dirs {
		switch {
		case !c.FromProject(d):
			o.Extra = append(o.Extra, loadout.Place{Path: d, Scope: catalog.User})
		case c.Skills.Project:
			o.Extra = append(o.Extra, loadout.Place{Path: d, Scope: catalog.Project})
		}
	}
	for _, d := range c.Inherited {
		o.Extra = append(o.Extra, loadout.Place{Path: d, Scope: catalog.User})
	}
	if len(a.skills) > 0 {
		o.NoHome, o.NoProject, o.NoBundled, o.Extra = true, true, true, nil
		for _, d := range a.skills {
			path, err := filepath.Abs(d)
			if err == nil {
				_, err = os.Stat(path)
			}
			if err != nil {
				code, hint := missing(err, "the path given with --skills")
				return nil, fail(code, hint, "%s: %w", d, reason(err))
			}
			o.Extra = append(o.Extra, loadout.Place{Path: path, Scope: catalog.Project})
		}
	}
	o.Extra = append(o.Extra, more...)
	return loadout.DefaultSources(o)
}

func (a *app) logger() *slog.Logger {
	if !a.verbose {
		return nil
	}
	return slog.New(slog.NewTextHandler(a.stderr, nil))
}

// note prints a problem that does not stop the command.
func (a *app) note(format string, args ...any) {
	if !a.quiet {
		fmt.Fprintln(a.stderr, "loadout: "+plain(fmt.Sprintf(format, args...)))
	}
}

// compatNames is for help texts.
func compatNames() string { return strings.Join(mcpserver.Compats(), ", ") }
