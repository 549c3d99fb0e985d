package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/execution"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/fileerror"
	"github.com/loadout-dev/loadout/internal/heldchange"
	"github.com/loadout-dev/loadout/internal/overlay"
	"github.com/loadout-dev/loadout/internal/setup"
	"github.com/loadout-dev/loadout/policy"
)

type changesFlags struct {
	apply, discard, yes bool
}

// changesOutput is the JSON output of the changes command.
type changesOutput struct {
	Dir     string        `json:"dir"`
	Changes []shownChange `json:"changes"` // in the order in which they are applied
	Others  []string      `json:"others"`  // other directories with held changes
}

// shownChange is a change that a sandboxed command made and that has not been
// applied yet, with a diff against the current file.
type shownChange struct {
	Path   string    `json:"path"`
	Op     string    `json:"op"`     // create, modify, mode or delete
	Reader string    `json:"reader"` // program that the file configures
	By     string    `json:"by"`     // name of the skill; "" for a command of an agent
	Time   time.Time `json:"time"`
	State  string    `json:"state"` // held, stale, applied, failed or discarded
	Error  string    `json:"error,omitempty"`
	Diff   string    `json:"diff,omitempty"`

	stored heldchange.Change
}

func (a *app) changesCommand() *cobra.Command {
	var o changesFlags
	cmd := &cobra.Command{
		Use:   "changes [DIR]",
		Short: "Review changes to files that configure programs or agents",
		Long: `Show the pending changes to the files of a directory. Loadout stores a change if a
script or an agent changes a file that configures programs or agents, such as CLAUDE.md,
a new skill or .git/hooks, and Loadout cannot ask you for confirmation. Changes are
stored until you apply or discard them, for up to 30 days. DIR is the workspace; the
default is the current directory.

--apply asks for confirmation and applies the changes shown. If a file was changed again
in the meantime, the pending change is stale and is never applied. Only you can apply
changes: --apply refuses if an agent runs it, or if it has no controlling terminal.`,
		Example: `  loadout changes
  loadout changes ~/src/project --apply
  loadout changes --discard`,
		Args: argCount(0, 1, "the DIR of a workspace"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkExclusive(cmd, "apply", "discard"); err != nil {
				return err
			}
			dir := "."
			if len(args) > 0 {
				dir = args[0]
			}
			return a.showChanges(cmd.Context(), dir, &o)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.apply, "apply", false, "apply the changes")
	f.BoolVar(&o.discard, "discard", false, "delete the changes without applying them")
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask for confirmation")
	return cmd
}

func (a *app) showChanges(ctx context.Context, dir string, o *changesFlags) error {
	state := a.StateDir()
	if state == "" {
		return exit.Errorf(exit.Failure, "set LOADOUT_STATE to a directory of yours", "no directory with pending changes")
	}
	store := heldchange.New(filepath.Join(state, "changes"))
	real, err := filepath.Abs(dir)
	if err == nil {
		real, err = filepath.EvalSymlinks(real)
	}
	if err != nil {
		code, hint := exit.FileHint(err, "the path of the workspace")
		return exit.Errorf(code, hint, "%s: %w", dir, fileerror.Cause(err))
	}
	presence := ""
	if o.apply {
		if presence, err = a.RequireUser(ctx, "", "changes", real, "--apply"); err != nil {
			return err
		}
	}
	list, err := store.List(real)
	if err != nil {
		return err
	}
	out := &changesOutput{Dir: real, Changes: []shownChange{}, Others: slices.DeleteFunc(store.Dirs(), func(d string) bool { return d == real })}
	for _, c := range list {
		out.Changes = append(out.Changes, newShownChange(real, c))
	}
	if !a.JSON {
		a.printChanges(out)
	}
	if len(list) > 0 && (o.apply || o.discard) {
		if err := a.resolveChanges(ctx, store, out, o, presence); err != nil {
			return err
		}
	}
	if a.JSON {
		return a.PrintJSON(out)
	}
	return nil
}

// newShownChange returns a change as it would be applied now.
func newShownChange(dir string, c heldchange.Change) shownChange {
	shown := shownChange{By: c.By, Time: c.Time, State: "held", stored: c}
	before, after, err := c.Contents(dir)
	h := execution.NewHeldChange(c.Path, string(c.Op), c.Reader, before, after)
	shown.Path, shown.Op, shown.Reader = h.Path, h.Op, h.Reader
	if c.Op != overlay.Mode && !c.Mode.IsDir() {
		shown.Diff = h.Diff
	}
	switch {
	case errors.Is(err, overlay.ErrStale):
		shown.State, shown.Diff, shown.Error = "stale", "", overlay.ErrStale.Error()
	case err != nil:
		shown.State, shown.Diff, shown.Error = "failed", "", err.Error()
	}
	return shown
}

func (a *app) printChanges(out *changesOutput) {
	var b strings.Builder
	for _, c := range out.Changes {
		by := "a command of an agent"
		if c.By != "" {
			by = "the skill " + c.By
		}
		fmt.Fprintf(&b, "%s %s (read by %s)\n%s\n", plain(c.Op), a.Bold(plain(c.Path)), plain(c.Reader), a.Faint(plain(fmt.Sprintf("by %s, %s", by, c.Time.Local().Format("2006-01-02 15:04")))))
		switch {
		case c.Error != "":
			fmt.Fprintf(&b, "%s: %s\n", a.Red(c.State), plain(c.Error))
		case c.Op == string(overlay.Mode):
			fmt.Fprintf(&b, "permissions %s\n", c.stored.Mode.Perm())
		}
		b.WriteString(safe(c.Diff) + "\n")
	}
	if len(out.Changes) == 0 {
		fmt.Fprintf(&b, "No pending changes in %s.\n", plain(out.Dir))
	}
	for _, dir := range out.Others {
		fmt.Fprintf(&b, "Other pending changes: loadout changes %s\n", plain(console.ShellQuote(dir)))
	}
	fmt.Fprint(a.Stdout, b.String())
}

// resolveChanges applies or discards the shown changes. presence is the
// evidence that the user applies them.
func (a *app) resolveChanges(ctx context.Context, store *heldchange.Store, out *changesOutput, o *changesFlags, presence string) error {
	if o.apply {
		yes, err := a.ConfirmUser(ctx, setup.Confirmation{Question: fmt.Sprintf("Apply %s?", console.Pluralize(len(out.Changes), "change")),
			Show: func() { a.printChanges(out) }, Args: []string{"changes", out.Dir, "--apply"}, Ask: true, Yes: o.yes})
		if err != nil {
			return err
		}
		if !yes {
			return exit.Errorf(exit.Refused, "to delete them: loadout changes "+console.ShellQuote(out.Dir)+" --discard", "no change applied")
		}
	}
	var done []heldchange.Change
	var paths, failed []string
	for i := range out.Changes {
		c := &out.Changes[i]
		c.resolve(out.Dir, o.apply)
		if c.State == "applied" || c.State == "discarded" {
			done, paths = append(done, c.stored), append(paths, c.Path)
		} else {
			failed = append(failed, c.Path+" ("+c.Error+")")
		}
	}
	if err := store.Remove(ctx, out.Dir, done); err != nil {
		return err
	}
	if o.apply {
		if err := a.Record(ctx, policy.Record{Action: "apply changes", Name: out.Dir, Decision: policy.Allow, Details: map[string]string{"presence": presence, "paths": strings.Join(paths, " ")}}); err != nil {
			return err
		}
	}
	if !a.JSON && len(done) > 0 {
		verb := "Discarded"
		if o.apply {
			verb = "Applied"
		}
		fmt.Fprintf(a.Stdout, "%s %s.\n", a.Green(verb), console.Pluralize(len(done), "change"))
	}
	if len(failed) > 0 {
		if a.JSON {
			if err := a.PrintJSON(out); err != nil {
				return err
			}
		}
		return exit.Errorf(exit.Failure, "make these changes yourself, or delete them: loadout changes "+console.ShellQuote(out.Dir)+" --discard", "not applied: %s", strings.Join(failed, ", "))
	}
	return nil
}

// resolve applies or discards the change.
func (c *shownChange) resolve(dir string, apply bool) {
	switch {
	case !apply:
		c.State, c.Error = "discarded", ""
		return
	case c.State != "held":
		return // stale
	}
	err := c.stored.Apply(dir)
	switch {
	case err == nil:
		c.State = "applied"
	case errors.Is(err, overlay.ErrStale):
		c.State, c.Error = "stale", overlay.ErrStale.Error()
	case errors.Is(err, fs.ErrPermission), errors.Is(err, os.ErrNotExist):
		c.State, c.Error = "failed", fileerror.Cause(err).Error()
	default:
		c.State, c.Error = "failed", err.Error()
	}
}
