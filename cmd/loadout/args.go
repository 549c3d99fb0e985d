package main

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/editdistance"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/setup"
)

// argCount returns a function that checks the number of arguments. A negative
// maxArgs means no limit. description describes the expected arguments in the
// error message.
func argCount(minArgs, maxArgs int, description string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		name := strings.TrimPrefix(cmd.CommandPath(), "loadout ")
		hint := "loadout " + strings.TrimSuffix(strings.TrimPrefix(cmd.UseLine(), "loadout "), " [flags]") + "; see: " + cmd.CommandPath() + " --help"
		switch {
		case len(args) < minArgs:
			return exit.Errorf(exit.Usage, hint, "%s needs %s", name, description)
		case maxArgs == 0 && len(args) > 0:
			hint = "see: " + cmd.CommandPath() + " --help"
			if _, err := os.Stat(args[0]); err == nil && slices.Contains([]string{"list", "doctor", "mcp"}, name) {
				hint = "for the skills in that directory: " + cmd.CommandPath() + " --skills " + console.ShellQuote(args[0])
			}
			return exit.Errorf(exit.Usage, hint, "%s takes no arguments; got %q", name, args[0])
		case maxArgs > 0 && len(args) > maxArgs:
			return exit.Errorf(exit.Usage, hint, "%s takes %s; got %d arguments", name, description, len(args))
		}
		return nil
	}
}

// commandGroup makes cmd accept only subcommands.
func commandGroup(cmd *cobra.Command) *cobra.Command {
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknownCommand(cmd, args[0])
		}
		return cmd.Help()
	}
	return cmd
}

func unknownCommand(cmd *cobra.Command, name string) error {
	hint := "see: " + cmd.CommandPath() + " --help"
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		for i, n := range near {
			near[i] = cmd.CommandPath() + " " + n
		}
		hint = "did you mean: " + strings.Join(near, ", ") + "?"
	}
	return exit.Errorf(exit.Usage, hint, "unknown command %q", strings.TrimPrefix(cmd.CommandPath()+" ", "loadout ")+name)
}

// flagError adds a hint to a flag error.
func flagError(cmd *cobra.Command, err error) error {
	hint := "see: " + cmd.CommandPath() + " --help"
	if e, ok := err.(*pflag.NotExistError); ok {
		if near := suggestFlag(cmd, e.GetSpecifiedName()); near != "" {
			hint = "did you mean --" + near + "? " + hint
		}
	}
	if e, ok := err.(*pflag.InvalidValueError); ok {
		kind := map[string]string{"int": "a number", "bool": "true or false"}[e.GetFlag().Value.Type()]
		if kind != "" {
			return exit.Errorf(exit.Usage, hint, "--%s needs %s; got %q", e.GetFlag().Name, kind, e.GetValue())
		}
	}
	return exit.Errorf(exit.Usage, hint, "%w", err)
}

// suggestFlag returns the flag most similar to a misspelled name, or "".
func suggestFlag(cmd *cobra.Command, name string) string {
	best, least := "", 3
	visit := func(f *pflag.Flag) {
		far := editdistance.Distance([]rune(name), []rune(f.Name), least)
		if strings.HasPrefix(f.Name, name) && len(name) > 1 {
			far = 1
		}
		if far < least && far < len(name) && !f.Hidden {
			best, least = f.Name, far
		}
	}
	cmd.Flags().VisitAll(visit)
	cmd.InheritedFlags().VisitAll(visit)
	return best
}

// checkFlagValues rejects empty flag values. They usually result from an unset
// shell variable and would silently change the meaning of the command.
func checkFlagValues(cmd *cobra.Command) error {
	var err error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		empty := f.Value.String() == "" && f.Value.Type() == "string"
		if s, ok := f.Value.(pflag.SliceValue); ok {
			for _, v := range s.GetSlice() {
				empty = empty || v == ""
			}
		}
		if empty && err == nil {
			err = exit.Errorf(exit.Usage, "give it a value or omit it; is a shell variable unset?", "--%s is empty", f.Name)
		}
	})
	return err
}

// checkExclusive returns an error if both flags are given.
func checkExclusive(cmd *cobra.Command, a, b string) error {
	if cmd.Flags().Changed(a) && cmd.Flags().Changed(b) {
		return exit.Errorf(exit.Usage, "omit one of them; see: "+cmd.CommandPath()+" --help", "--%s and --%s cannot be used together", a, b)
	}
	return nil
}

// helpCommand returns the help command. Unlike Cobra's, it fails for unknown
// commands.
func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:               "help [COMMAND]",
		Short:             "Help about any command",
		Example:           "  loadout help list",
		ValidArgsFunction: completeCommands(root),
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return unknownCommand(cmd, rest[0])
			}
			cmd.InitDefaultHelpFlag()
			return cmd.Help()
		},
	}
}

// completeCommands returns a completion function for arguments that name a
// command.
func completeCommands(root *cobra.Command) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		var names []string
		if cmd, _, err := root.Find(args); err == nil {
			for _, c := range cmd.Commands() {
				if c.IsAvailableCommand() {
					names = append(names, fmt.Sprintf("%s\t%s", c.Name(), c.Short))
				}
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeFlag registers the values that the shell completes for a flag.
func completeFlag(cmd *cobra.Command, flag string, values ...string) {
	err := cmd.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return values, cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic(err) // programming error: no such flag
	}
}

// checkDuration returns an error if the flag is given and d is not positive.
func checkDuration(cmd *cobra.Command, flag string, d time.Duration) error {
	if cmd.Flags().Changed(flag) && d <= 0 {
		return exit.Errorf(exit.Usage, "give a duration such as 10s, 5m or 24h, or omit it", "--%s: %v is not positive", flag, d)
	}
	return nil
}

// registerInstallFlags adds the flags that select directories of installed
// skills.
func registerInstallFlags(o *setup.InstallFlags, f *pflag.FlagSet, both bool) {
	scope := "install in `SCOPE`: user (for you) or project (this project)"
	if both {
		scope = "use only skills installed in `SCOPE`: user (for you) or project (this project)"
	}
	f.StringVar(&o.Scope, "scope", "", scope)
	f.StringVar(&o.Dir, "dir", "", "use `DIR` instead of the default skills directory")
}

// loadConfigWithFlags loads the configuration, in which the flags of cmd override
// other sources. keys maps flags to configuration keys; cmd need not have all of the
// flags.
func (a *app) loadConfigWithFlags(cmd *cobra.Command, keys map[string]string) (*config.Config, error) {
	flags := map[string]string{}
	for name, key := range keys {
		f := cmd.Flags().Lookup(name)
		if f == nil || !f.Changed {
			continue
		}
		flags[key] = f.Value.String()
		switch f.Value.Type() {
		case "stringArray":
			all, err := cmd.Flags().GetStringArray(name)
			if err != nil {
				return nil, err
			}
			flags[key] = strings.Join(all, ",")
		case "duration":
			d, err := cmd.Flags().GetDuration(name)
			if err != nil {
				return nil, err
			}
			flags[key] = strconv.Itoa(int(math.Ceil(d.Seconds())))
		}
	}
	return a.LoadConfig(flags)
}
