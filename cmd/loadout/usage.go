package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// want checks the number of arguments, and says in words what is missing.
// most below zero means any number.
func want(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		name := strings.TrimPrefix(cmd.CommandPath(), "loadout ")
		hint := "as: loadout " + strings.TrimSuffix(strings.TrimPrefix(cmd.UseLine(), "loadout "), " [flags]") + "; see: " + cmd.CommandPath() + " --help"
		switch {
		case len(args) < least:
			return fail(exitUsage, hint, "%s needs %s", name, what)
		case most == 0 && len(args) > 0:
			hint = "see: " + cmd.CommandPath() + " --help"
			if _, err := os.Stat(args[0]); err == nil && slices.Contains([]string{"list", "doctor", "mcp"}, name) {
				hint = "for the skills that are there: " + cmd.CommandPath() + " --skills " + quoted(args[0])
			}
			return fail(exitUsage, hint, "%s takes no arguments, and got %q", name, args[0])
		case most > 0 && len(args) > most:
			return fail(exitUsage, hint, "%s takes %s, and got %d arguments", name, what, len(args))
		}
		return nil
	}
}

// group is a command that only has others below it.
func group(cmd *cobra.Command) *cobra.Command {
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
	return fail(exitUsage, hint, "there is no command %q", strings.TrimPrefix(cmd.CommandPath()+" ", "loadout ")+name)
}

// flagError words what is wrong with a flag.
func flagError(cmd *cobra.Command, err error) error {
	hint := "see: " + cmd.CommandPath() + " --help"
	if e, ok := err.(*pflag.NotExistError); ok {
		if near := nearFlag(cmd, e.GetSpecifiedName()); near != "" {
			hint = "did you mean --" + near + "? " + hint
		}
	}
	if e, ok := err.(*pflag.InvalidValueError); ok {
		kind := map[string]string{"int": "a number", "bool": "true or false"}[e.GetFlag().Value.Type()]
		if kind != "" {
			return fail(exitUsage, hint, "--%s needs %s, and got %q", e.GetFlag().Name, kind, e.GetValue())
		}
	}
	return fail(exitUsage, hint, "%w", err)
}

// nearFlag is the flag that a misspelled one probably means, or "".
func nearFlag(cmd *cobra.Command, name string) string {
	best, least := "", 3
	visit := func(f *pflag.Flag) {
		far := distance(name, f.Name)
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

// distance is the edit distance of two short words.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

// notEmpty refuses flags that were given as "", as happens with a variable
// that is not set: it would silently mean something else.
func notEmpty(cmd *cobra.Command) error {
	var err error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		empty := f.Value.String() == "" && f.Value.Type() == "string"
		if s, ok := f.Value.(pflag.SliceValue); ok {
			for _, v := range s.GetSlice() {
				empty = empty || v == ""
			}
		}
		if empty && err == nil {
			err = fail(exitUsage, "give it a value or leave it out; is a variable not set?", "--%s is empty", f.Name)
		}
	})
	return err
}

// exclusive refuses two flags that cannot go together.
func exclusive(cmd *cobra.Command, a, b string) error {
	if cmd.Flags().Changed(a) && cmd.Flags().Changed(b) {
		return fail(exitUsage, "leave one of them out; see: "+cmd.CommandPath()+" --help", "--%s and --%s cannot go together", a, b)
	}
	return nil
}

// helpCommand is loadout help, which cobra's own answers with 0 whatever it
// is asked.
func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "Help about any command",
		Example: "  loadout help list",
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			var names []string
			if cmd, _, err := root.Find(args); err == nil {
				for _, c := range cmd.Commands() {
					if c.IsAvailableCommand() {
						names = append(names, fmt.Sprintf("%s\t%s", c.Name(), c.Short))
					}
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
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

// complete offers the values of a flag in the shell.
func complete(cmd *cobra.Command, flag string, values ...string) {
	err := cmd.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return values, cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic(err) // there is no such flag
	}
}

// someTime refuses a time that was given and is none, or lies behind.
func someTime(cmd *cobra.Command, flag string, d time.Duration) error {
	if cmd.Flags().Changed(flag) && d <= 0 {
		return fail(exitUsage, "give a time as 10s, 5m or 24h, or leave it out", "--%s: %v is no time at all", flag, d)
	}
	return nil
}
