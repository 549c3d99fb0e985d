package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/fileerror"
	sandboxprocess "github.com/loadout-dev/loadout/internal/sandbox/process"
	"github.com/loadout-dev/loadout/internal/script"
	"github.com/loadout-dev/loadout/internal/setup"
	"github.com/loadout-dev/loadout/sandbox"
)

// runFlags holds the flags of the run command.
type runFlags struct {
	in, secrets            []string
	out, folder, workspace string
	write, host            bool
	timeout                time.Duration
}

func (a *app) runCommand() *cobra.Command {
	var o runFlags
	cmd := &cobra.Command{
		Use:   "run SKILL SCRIPT [-- ARGS]",
		Short: "Run a script of a skill in the sandbox",
		Long: `Run a script of a skill in the sandbox. The script sees its skill, an empty working
directory (/work), the files given with --in, and only the network hosts that the skill
requests. The files that it writes to /work/out (LOADOUT_OUT) are its output. A
terminal receives only text, colors and changes to the current line; a pipe receives
everything. Typing this command approves this one run. If standard input or standard
error is redirected, and the skill is not approved, the command asks on the controlling
terminal. If an agent runs the command, or there is no terminal, the skill must be
approved with loadout approve NAME.

Exits with status 0 if the script succeeds and with status 1 if it fails. --json
includes the exit code of the script.`,
		Example: `  loadout run pdf scripts/extract.py --in report.pdf --out texts -- /work/in/report.pdf
  echo '{"a":1}' | loadout run data check.py
  loadout run charts draw.js --json -- --width 800`,
		Args:              argCount(2, -1, "the name of a SKILL and one of its scripts"),
		ValidArgsFunction: a.completeScript,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkExclusive(cmd, "out", "folder"); err != nil {
				return err
			}
			if err := checkDuration(cmd, "timeout", o.timeout); err != nil {
				return err
			}
			if cmd.ArgsLenAtDash() < 0 && len(args) > 2 {
				return exit.Errorf(exit.Usage, "put -- before the arguments of the script: loadout run "+console.ShellQuote(args[0])+" "+console.ShellQuote(args[1])+" -- "+console.ShellQuote(args[2])+" …",
					"unexpected argument %q after the skill and the script", args[2])
			}
			return a.runScript(cmd.Context(), args, &o)
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&o.in, "in", nil, "provide the file or directory `PATH` as /work/in/NAME (repeatable)")
	f.StringVar(&o.out, "out", "", "write the output files into `DIR`")
	f.StringVar(&o.folder, "folder", "", "continue in the working folder `HANDLE`; new creates one")
	f.StringVar(&o.workspace, "workspace", "", "let the script read `DIR` as /workspace")
	f.BoolVar(&o.write, "write", false, "let the script write to the workspace too")
	f.StringArrayVar(&o.secrets, "secret", nil, "provide the variable `NAME` as the file /run/secrets/NAME (repeatable)")
	f.BoolVar(&o.host, "host-network", false, "allow the host network, without the host allowlist")
	a.profileFlag(f)
	f.DurationVar(&o.timeout, "timeout", 0, "stop the script after `TIME`, such as 10s; at most sandbox.seconds")
	return cmd
}

// changesShutdownTimeout is the time allowed for shutdown if a script may change
// a workspace. Within this time, the program stops applying changes and discards
// the remaining ones.
const changesShutdownTimeout = 30 * time.Second

func (a *app) runScript(ctx context.Context, args []string, o *runFlags) error {
	rt, c, err := a.OpenScripts(ctx)
	if err != nil {
		return err
	}
	defer rt.Close()
	r, err := a.newRun(args, o)
	if err != nil {
		return err
	}
	if r.ByUser, err = a.isRunByUser(ctx, rt, args, o, c.Managed()); err != nil {
		return err
	}
	if most := time.Duration(c.Sandbox.Seconds) * time.Second; o.timeout > most {
		a.Note("--timeout %v exceeds sandbox.seconds; the script is stopped after %v", o.timeout, most)
	}
	if r.WriteWorkspace {
		a.setShutdownTimeout(changesShutdownTimeout)
	}
	line := &console.ProgressLine{Console: &a.Console}
	r.Progress = line.Show
	if !a.JSON {
		r.Stdout, r.Stderr = line.WrapWriter(a.Stdout), line.WrapWriter(a.Stderr)
	}
	a.askAboutChanges(&r, line)
	end := a.filterOutput(&r.Stdout, &r.Stderr)
	res, err := rt.Run(ctx, r)
	line.End()
	a.RecordScriptUse(ctx, c, rt, args[0], res, err)
	if e, ok := errors.AsType[*loadout.RefusedError](err); ok && e.NeedsApproval && !r.ByUser {
		if err = a.confirmUnapproved(ctx, args, o, e); err == nil {
			r.ByUser = true
			res, err = rt.Run(ctx, r)
			line.End()
			a.RecordScriptUse(ctx, c, rt, args[0], res, err)
		}
	}
	end()
	if res != nil {
		a.RemoveAnswered(ctx)
	}
	switch {
	case isType[*script.NotFoundError](err):
		return exit.Errorf(exit.NotFound, "list its files: loadout show "+console.ShellQuote(args[0])+a.SkillFlags(), "%w", err)
	case isType[*script.NotScriptError](err), isType[*script.OutsideError](err):
		return exit.Errorf(exit.Usage, "name one of its scripts; see: loadout show "+console.ShellQuote(args[0])+a.SkillFlags(), "%w", err)
	case isType[*sandboxprocess.NotAllowedError](err):
		return exit.Errorf(exit.Refused, "review it, then allow it: loadout approve "+console.ShellQuote(args[0])+" --unsandboxed"+a.SkillFlags()+"; or use another backend", "%w", err)
	case err != nil && res != nil && a.JSON: // the script ran, but its files could not be saved
		return errors.Join(a.PrintJSON(res), err)
	case err != nil:
		return err
	}
	return cmp.Or(a.printRun(res, o), ctx.Err()) // ctx: applying the changes was interrupted
}

// filterOutput removes control sequences from those output streams of a run
// that are terminals. The caller must call end after the run.
func (a *app) filterOutput(stdout, stderr *io.Writer) (end func()) {
	if a.JSON {
		return func() {}
	}
	var endOut, endErr func()
	*stdout, endOut = console.FilterOutput(a.Stdout, *stdout)
	*stderr, endErr = console.FilterOutput(a.Stderr, *stderr)
	return func() { endOut(); endErr() }
}

// newRun converts the arguments and flags to a run request.
func (a *app) newRun(args []string, o *runFlags) (loadout.Run, error) {
	r := loadout.Run{
		Skill: args[0], Script: args[1], Args: args[2:], FullOutput: true, OutputDir: o.out, Folder: o.folder,
		WriteWorkspace: o.write, HostNetwork: o.host, Timeout: o.timeout, Stdin: a.Stdin,
	}
	if o.folder == "new" {
		r.Folder, r.NewFolder = "", true
	}
	var err error
	if r.Inputs, err = openInputs(o.in); err != nil {
		return r, err
	}
	if err := setup.CheckDirectory("out", o.out); err != nil {
		return r, err
	}
	if o.workspace == "" && o.write {
		return r, exit.Errorf(exit.Usage, "add --workspace DIR", "--write needs --workspace")
	}
	if r.Workspace, err = setup.ResolveWorkspace(o.workspace); err != nil {
		return r, err
	}
	for _, name := range o.secrets {
		value := a.Getenv(name)
		if value == "" {
			return r, exit.Errorf(exit.Usage, "set it for this command: "+name+"=… loadout run …", "--secret %s: environment variable not set", name)
		}
		r.Secrets = append(r.Secrets, sandbox.NewSecret(name, value))
	}
	return r, nil
}

// openInputs opens the files and directories given with --in.
func openInputs(paths []string) ([]loadout.Input, error) {
	var out []loadout.Input
	given := map[string]string{}
	for _, p := range paths {
		in, err := openInput(p)
		if err != nil {
			return nil, err
		}
		if before, twice := given[in.Name]; twice {
			hint := "omit one of them"
			if filepath.Clean(before) != filepath.Clean(p) {
				hint = "rename one of them, or give a directory that contains both"
			}
			return nil, exit.Errorf(exit.Usage, hint, "--in %s and --in %s would have the same path /work/in/%s", before, p, in.Name)
		}
		given[in.Name] = p
		out = append(out, in)
	}
	return out, nil
}

// openInput opens a file or directory named by the user.
func openInput(p string) (loadout.Input, error) {
	abs, err := filepath.Abs(p)
	if err == nil {
		_, err = os.Stat(abs)
	}
	if err != nil {
		code, hint := exit.FileHint(err, "the path given with --in")
		return loadout.Input{}, exit.Errorf(code, hint, "%s: %w", p, fileerror.Cause(err))
	}
	dir, base := filepath.Split(abs)
	if base == "" {
		return loadout.Input{}, exit.Errorf(exit.Usage, "give a directory below it", "%s: the root of the file system is not allowed", p)
	}
	return loadout.Input{Name: base, FS: os.DirFS(dir), Path: base}, nil
}

// printRun prints the result of a script whose output was already printed while
// it ran.
func (a *app) printRun(res *loadout.RunResult, o *runFlags) error {
	if a.JSON {
		if err := a.PrintJSON(res); err != nil {
			return err
		}
		if res.ExitCode != 0 {
			return exit.Reported
		}
		return nil
	}
	for _, n := range res.Notes {
		a.Note("%s", n)
	}
	if res.Truncated {
		a.Note("output too long; only the beginning is shown")
	}
	if len(res.DeniedHosts) > 0 {
		a.Note("refused connections to %s", strings.Join(res.DeniedHosts, ", "))
	}
	a.printFileNote(res, o)
	if res.ExitCode == 0 {
		return nil
	}
	what := fmt.Sprintf("exited with code %d", res.ExitCode)
	switch {
	case res.Detail != "":
		what = "was stopped (" + string(res.Reason) + "): " + res.Detail
	case res.Killed:
		what = "was stopped: " + string(res.Reason)
	}
	return exit.Errorf(exit.Failure, "for the result as JSON, add --json", "%s %s", res.Script, what)
}

// printFileNote prints how many output files a script wrote, and where they are.
func (a *app) printFileNote(res *loadout.RunResult, o *runFlags) {
	where := o.out
	if res.Folder != "" {
		where = "the working folder " + res.Folder
	}
	switch {
	case len(res.Files) > 0 && where != "":
		a.Note("%s in %s", console.Pluralize(len(res.Files), "file"), where)
	case len(res.Files) > 0:
		a.Note("%s discarded; save them with --out DIR", console.Pluralize(len(res.Files), "file"))
	case res.UnsavedFiles > 0 && res.Folder == "":
		a.Note("%s left in the working directory; write files to /work/out (LOADOUT_OUT) to save them, or use --folder new", console.Pluralize(res.UnsavedFiles, "file"))
	}
}

// completeScript completes the skill, then the name of one of its scripts.
func (a *app) completeScript(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return a.completeSkill(cmd, args, word)
	}
	a.Quiet = true
	rt, err := a.OpenRuntime(cmd.Context())
	if err != nil || len(args) > 1 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer rt.Close()
	var names []string
	if e, err := rt.Catalog().Resolve(cmd.Context(), args[0]); err == nil {
		files, _ := rt.Catalog().ListFiles(cmd.Context(), e) // without a listing, nothing is completed
		for _, f := range files {
			if f.Script && !strings.ContainsFunc(f.Path, console.NeedsQuoting) {
				names = append(names, f.Path)
			}
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// classifyRunError returns the exit code and hint for errors that prevent a
// script from running.
func (a *app) classifyRunError(err error) (code int, hint string, ok bool) {
	if e, is := errors.AsType[*loadout.RefusedError](err); is {
		if hint = a.ApproveHint(e); e.NeedsApproval {
			hint = "review it, then approve it: " + hint
		}
		return exit.Refused, hint, true
	}
	return classifyScriptError(err)
}
