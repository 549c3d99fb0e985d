package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/script"
	"github.com/loadout-dev/loadout/sandbox"
	sandboxprocess "github.com/loadout-dev/loadout/sandbox/process"
)

// runFlags are the flags of loadout run.
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
		Long: `Run a script of a skill, isolated from this machine: it sees its skill, an empty
working directory, what is given with --in, and no network but what the skill asks
for. It starts in /work; what it writes to /work/out (LOADOUT_OUT) is what it hands
over. That you type this is your leave for this run.

Exits with 0 if the script did, and with 1 if it failed; --json has its own code.`,
		Example: `  loadout run pdf scripts/extract.py --in report.pdf --out texts -- /work/in/report.pdf
  echo '{"a":1}' | loadout run data check.py
  loadout run charts draw.js --json -- --width 800`,
		Args:              want(2, -1, "the name of a SKILL and one of its scripts"),
		ValidArgsFunction: a.completeScript,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := exclusive(cmd, "out", "folder"); err != nil {
				return err
			}
			if err := someTime(cmd, "timeout", o.timeout); err != nil {
				return err
			}
			if cmd.ArgsLenAtDash() < 0 && len(args) > 2 {
				return fail(exitUsage, "put -- before the arguments of the script: loadout run "+quoted(args[0])+" "+quoted(args[1])+" -- "+quoted(args[2])+" …",
					"run takes a skill and a script, and got %q", args[2])
			}
			return a.run(cmd.Context(), args, &o)
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&o.in, "in", nil, "give the script the file or directory at `PATH`, as /work/in/NAME (repeatable)")
	f.StringVar(&o.out, "out", "", "write what the script hands over into `DIR`")
	f.StringVar(&o.folder, "folder", "", "go on in the working folder with this `HANDLE`; new makes one")
	f.StringVar(&o.workspace, "workspace", "", "let the script read `DIR` as /workspace")
	f.BoolVar(&o.write, "write", false, "let it write there too")
	f.StringArrayVar(&o.secrets, "secret", nil, "give the script the variable `NAME` as the file /run/secrets/NAME (repeatable)")
	f.BoolVar(&o.host, "host-network", false, "give it this machine's network, without the allow-list")
	a.profileFlag(f)
	f.DurationVar(&o.timeout, "timeout", 0, "end it after this `TIME`, as 10s, if that is less than sandbox.seconds")
	return cmd
}

func (a *app) run(ctx context.Context, args []string, o *runFlags) error {
	rt, c, err := a.openScripts(ctx)
	if err != nil {
		return err
	}
	defer rt.Close()
	r, err := a.runOf(args, o)
	if err != nil {
		return err
	}
	if most := time.Duration(c.Sandbox.Seconds) * time.Second; o.timeout > most {
		a.note("--timeout %v is more than sandbox.seconds lets a run take; it is ended after %v", o.timeout, most)
	}
	line := &progressLine{a: a}
	r.Progress = line.show
	if !a.json {
		r.Stdout, r.Stderr = line.before(a.stdout), line.before(a.stderr)
	}
	res, err := rt.Run(ctx, r)
	line.end()
	a.usedScript(ctx, c, rt, args[0], res, err)
	switch {
	case isType[*script.NotFoundError](err):
		return fail(exitNotFound, "see its files: loadout show "+quoted(args[0])+a.flags(), "%w", err)
	case isType[*script.NotScriptError](err), isType[*script.OutsideError](err):
		return fail(exitUsage, "name one of its scripts; see: loadout show "+quoted(args[0])+a.flags(), "%w", err)
	case isType[*sandboxprocess.NotAllowedError](err):
		return fail(exitRefused, "look at it, and let it: loadout approve "+quoted(args[0])+" --unsandboxed"+a.flags()+"; or use another back end", "%w", err)
	case err != nil && res != nil && a.json: // it ran, and its files could not be kept
		return errors.Join(a.printJSON(res), err)
	case err != nil:
		return err
	}
	return a.printRan(res, o)
}

// progressLine is a line of progress that is over when there is something else
// to see, which may come from two goroutines.
type progressLine struct {
	a    *app
	mu   sync.Mutex
	done func() // ends what is shown, nil for nothing
}

func (p *progressLine) show(what string) {
	p.end()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = p.a.progress(what)
}

func (p *progressLine) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done != nil {
		p.done()
		p.done = nil
	}
}

func (p *progressLine) before(w io.Writer) io.Writer { return behindProgress{w, p} }

type behindProgress struct {
	io.Writer
	line *progressLine
}

func (w behindProgress) Write(b []byte) (int, error) {
	w.line.end()
	return w.Writer.Write(b)
}

// openScripts reads the configuration and the skills, for commands that run
// something.
func (a *app) openScripts(ctx context.Context) (*loadout.Runtime, *config.Config, error) {
	c, err := a.settings(nil)
	if err != nil {
		return nil, nil, err
	}
	hint := "see where it is set: loadout config show"
	if a.config != "" {
		hint += " --config " + quoted(a.config)
	}
	switch {
	case !c.Skills.Enabled:
		return nil, nil, fail(exitRefused, hint, "skills are switched off (skills.enabled)")
	case !c.Sandbox.Enabled:
		return nil, nil, fail(exitRefused, hint, "scripts are switched off (sandbox.enabled)")
	}
	rt, err := a.runtime(ctx, c, false)
	return rt, c, err
}

// runOf is the run that the flags ask for.
func (a *app) runOf(args []string, o *runFlags) (loadout.Run, error) {
	r := loadout.Run{
		Skill: args[0], Script: args[1], Args: args[2:], Typed: true, Out: o.out, Folder: o.folder,
		WriteWorkspace: o.write, HostNetwork: o.host, Timeout: o.timeout, Stdin: a.stdin,
	}
	if o.folder == "new" {
		r.Folder, r.Keep = "", true
	}
	var err error
	if r.Inputs, err = inputsOf(o.in); err != nil {
		return r, err
	}
	if err := notFile("out", o.out); err != nil {
		return r, err
	}
	if o.workspace == "" && o.write {
		return r, fail(exitUsage, "name the directory too: --workspace DIR", "--write is for a workspace")
	}
	if r.Workspace, err = workspaceDir(o.workspace); err != nil {
		return r, err
	}
	for _, name := range o.secrets {
		value := a.getenv(name)
		if value == "" {
			return r, fail(exitUsage, "set it for this command: "+name+"=… loadout run …", "--secret %s: that variable is not set", name)
		}
		r.Secrets = append(r.Secrets, sandbox.NewSecret(name, value))
	}
	return r, nil
}

// workspaceDir is the directory of --workspace, absolute; "" stays.
func workspaceDir(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	if err := notFile("workspace", path); err != nil {
		return "", err
	}
	dir, err := filepath.Abs(path)
	if err == nil {
		_, err = os.ReadDir(dir)
	}
	if real, e := filepath.EvalSymlinks(dir); e == nil && real == filepath.Dir(real) {
		return "", fail(exitUsage, "give a directory inside it", "--workspace %s: the whole file system cannot be given", path)
	}
	if err != nil {
		code, hint := missing(err, "the directory given with --workspace")
		return "", fail(code, hint, "%s: %w", path, reason(err))
	}
	return dir, nil
}

// notFile refuses a file where a directory is to be named.
func notFile(flag, path string) error {
	if path == "" {
		return nil
	}
	fi, err := os.Stat(path)
	if err == nil && !fi.IsDir() || errors.Is(err, syscall.ENOTDIR) {
		hint := "name a directory, or one that is to be made"
		if flag == "workspace" {
			hint = "name the directory that it is in; to give this file alone: --in " + quoted(path)
		}
		return fail(exitUsage, hint, "--%s %s: that is a file and not a directory", flag, path)
	}
	return nil
}

// inputsOf are the files and directories of --in.
func inputsOf(paths []string) ([]loadout.Input, error) {
	var out []loadout.Input
	given := map[string]string{}
	for _, p := range paths {
		in, err := inputOf(p)
		if err != nil {
			return nil, err
		}
		if before, twice := given[in.Name]; twice {
			hint := "leave one of them out"
			if filepath.Clean(before) != filepath.Clean(p) {
				hint = "rename one of them, or give a directory that holds both"
			}
			return nil, fail(exitUsage, hint, "--in %s and --in %s would both be /work/in/%s", before, p, in.Name)
		}
		given[in.Name] = p
		out = append(out, in)
	}
	return out, nil
}

// inputOf is a file or directory that a person names.
func inputOf(p string) (loadout.Input, error) {
	abs, err := filepath.Abs(p)
	if err == nil {
		_, err = os.Stat(abs)
	}
	if err != nil {
		code, hint := missing(err, "the path given with --in")
		return loadout.Input{}, fail(code, hint, "%s: %w", p, reason(err))
	}
	dir, base := filepath.Split(abs)
	if base == "" {
		return loadout.Input{}, fail(exitUsage, "give a directory inside it", "%s: the whole file system cannot be given", p)
	}
	return loadout.Input{Name: base, FS: os.DirFS(dir), Path: base}, nil
}

// printRan says how a script ended; what it wrote was printed as it came.
func (a *app) printRan(res *loadout.Ran, o *runFlags) error {
	if a.json {
		if err := a.printJSON(res); err != nil {
			return err
		}
		if res.ExitCode != 0 {
			return errFound
		}
		return nil
	}
	for _, n := range res.Notes {
		a.note("%s", n)
	}
	if res.Truncated {
		a.note("more was written than is kept; only the beginning was shown")
	}
	if len(res.DeniedHosts) > 0 {
		a.note("refused connections to %s", strings.Join(res.DeniedHosts, ", "))
	}
	a.filesOf(res, o)
	if res.ExitCode == 0 {
		return nil
	}
	what := fmt.Sprintf("exited with code %d", res.ExitCode)
	switch {
	case res.Detail != "":
		what = "was ended (" + string(res.Reason) + "): " + res.Detail
	case res.Killed:
		what = "was ended: " + string(res.Reason)
	}
	return fail(exitFound, "for the result as data: add --json", "%s %s", res.Script, what)
}

// filesOf says what the script handed over, and where it is.
func (a *app) filesOf(res *loadout.Ran, o *runFlags) {
	where := o.out
	if res.Folder != "" {
		where = "the working folder " + res.Folder
	}
	switch {
	case len(res.Files) > 0 && where != "":
		a.note("%s in %s", counted(len(res.Files), "file"), where)
	case len(res.Files) > 0:
		a.note("%s handed over and not kept; with --out DIR they are", counted(len(res.Files), "file"))
	case res.Left > 0 && res.Folder == "":
		a.note("%s left in its working directory; what is to be kept goes to /work/out (LOADOUT_OUT), or use --folder new", counted(res.Left, "file"))
	}
}

// completeScript completes the skill, then its scripts.
func (a *app) completeScript(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return a.completeSkill(cmd, args, word)
	}
	a.quiet = true
	rt, err := a.open(cmd.Context())
	if err != nil || len(args) > 1 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer rt.Close()
	var names []string
	if e, err := rt.Catalog().Resolve(cmd.Context(), args[0]); err == nil {
		files, _ := rt.Catalog().Files(cmd.Context(), e) // what cannot be listed is not offered
		for _, f := range files {
			if f.Script && !strings.ContainsFunc(f.Path, unquotable) {
				names = append(names, f.Path)
			}
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// runError is the exit code and the next step for what kept a script from
// running.
func (a *app) runError(err error) (code int, hint string, ok bool) {
	if e, is := errors.AsType[*loadout.RefusedError](err); is {
		hint = e.Decision.Next
		if strings.HasPrefix(hint, "loadout approve") {
			hint = "look at it, and approve it: " + hint + a.flags()
		}
		return exitRefused, hint, true
	}
	return scriptError(err)
}
